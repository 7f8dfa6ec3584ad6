"""Frames: a function written anew, in which each run of statements without a break is a section.

Every statement stays in its place, at its own line. A run becomes

    .s3t = None
    if .s3 is not None:                                # None as long as the section is not used
        try: .s3t = (a, c)                             # what is alive before the run
        except NameError: pass                         # a name is not bound: Python may have no need of it
        else: .s3t = .s3(*.s3t)
    if .s3t is not None and type(.s3t) is tuple:
        (b, d), .s3t = .s3t, None                      # what it has bound and is alive after it; None for what is bound in vain
    else:
        <the statements, as written>
        if .s3t is not None: .s3t.seen()               # a turn of plain Python, which is timed

so nothing is resumed: a section answers, or has changed nothing, and then the statements run in the user's own frame. A name that
begins with a point is none of the user's: no source can have it.

A statement that runs as Python may have parts that are sections (`expressions.py`). What a break is in, a loop, say, is *opened*:
its head runs as Python, and its blocks have sections of their own. So are loops while their own section is not compiled yet: one
that is entered once and runs for long has a compiled body after a while.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jitml.records import dataclass, field, replace
from jitml.sections.call_sites import GROWING, CalleeCalls, Site, may_be_users
from jitml.sections.expressions import CutStep, Cutter
from jitml.sections.live_names import NONE, Live, Names, before, binds, loads, loop_head, surely
from jitml.trace.rewrite.syntax import SCOPES, inside, parts, placed, within

Place = tuple[int, int, int, int]  # lines and columns of a statement, where it begins and ends

TUPLE, TYPE = ".tuple", ".type"
HELD = "__jm_held__"
_PART, _POINT = ".e0", "__jm_point_"
_TEMPLATE = """
__jm_t = None
if __jm_s is not None:
    try: __jm_t = ({takes})
    except NameError: pass
    else: __jm_t = __jm_s(*__jm_t)
if __jm_t is not None and __jm_type(__jm_t) is __jm_tuple: {answered}
else: pass
"""
_ALWAYS = (  # run as written wherever a function is split
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.Lambda, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Delete, ast.Raise),
)
_BLOCKS = ("body", "orelse", "finalbody")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_TRIES = (ast.Try, ast.TryStar)
_WORK = (ast.Call, ast.BinOp, ast.Subscript, ast.Compare, ast.AugAssign)
_USING_UP = {
    *("sum", "any", "all", "min", "max", "list", "tuple", "set", "dict", "frozenset", "sorted", "join", "fsum", "fromiter")
}


def place(node: ast.stmt | ast.expr) -> Place:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


@dataclass(frozen=True, slots=True)
class StatementRun:
    """A run of statements that is tried as a section.

    node: a function of what they take in, which returns what they give.
    name: of the cell in which the section is.
    exact: whether exceptions in it may be handled in this function: then what they leave behind is seen.
    unsure: whether its end may be reached without all that it gives being bound.
    is_inside: whether it is in a loop of the frame.
    """

    node: ast.FunctionDef
    name: str
    takes: tuple[str, ...]
    exact: bool
    unsure: bool
    is_inside: bool

    @property
    def place(self) -> Place:
        first, last = self.node.body[0], self.node.body[-1]
        return (*place(first)[:2], *place(last)[2:])

    @property
    def key(self) -> tuple[Any, ...]:
        """What it begins and ends with, takes in and gives."""
        return self.place, self.takes, ast.unparse(self.node.body[-1]), self.exact


@dataclass(frozen=True, slots=True)
class _Around:
    """Where a block stands: in a `try` whose handlers see what it has done, in a loop; `ready` are names that may be bound."""

    exact: bool = False
    is_inside: bool = False
    ready: Names = NONE

    def after(self, statement: ast.stmt) -> _Around:
        return replace(self, ready=self.ready | binds([statement]))


@dataclass
class FrameWriter:
    """Writes the frame of one function.

    Args:
        node: the function, or one that stands for a run of statements.
        names: its locals.
        breaks: statements that run as Python.
        left_out: runs that are no faster as sections.
        asks: whether something else may be called in place of what is named.
        is_part: whether the function stands for a run of statements.
        seen, changed: names that functions inside of the whole function see, and that they bind.

    Attributes:
        runs: the sections that the new function calls.
        sites: its calls that are asked for (`call_sites.py`).
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef
    names: Names
    breaks: frozenset[Place]
    left_out: frozenset[Place]
    asks: Callable[[ast.expr], bool]
    is_part: bool = False
    seen: Names = NONE
    changed: Names = NONE
    runs: list[StatementRun] = field(default_factory=list)
    sites: dict[str, Site] = field(default_factory=dict)
    _own: Names = NONE

    def write(self) -> Any:
        """The node of the new function."""
        inner = [x for x in inside([self.node]) if isinstance(x, SCOPES) and x is not self.node]
        self.seen |= (loads(inner) | loads(_lazy([self.node]))) & self.names
        self._own = self.names
        self.names |= {_PART}
        self.changed |= frozenset(
            name for x in inner for part in inside([x]) if isinstance(part, ast.Nonlocal) for name in part.names
        )
        made = copy.copy(self.node)
        made.args, made.decorator_list, made.returns = _without_annotations(self.node.args), [], None
        parameters = frozenset(x.arg for x in inside([self.node.args]) if isinstance(x, ast.arg))
        made.body = self._block(self.node.body, Live(), _Around(ready=parameters))
        return made

    def _block(self, statements: Sequence[ast.stmt], live: Live, around: _Around) -> list[ast.stmt]:
        written: list[ast.stmt] = []
        run: list[ast.stmt] = []
        begins = around  # where the run does
        for n, statement in enumerate(statements):
            if _lets_go(statement, around.ready):
                written += [*self._run(run, live.then(before(statements[n:], live)), begins), statement]
                run = []
            elif self._ends_run(statement):
                written += self._run([*run, statement], live, begins)
                run = []
            elif self._is_clean(statement):
                run.append(statement)
            else:
                cutter = self._cutter(statement, around)
                rest = cutter.cut(statement) or statement
                written += self._steps(cutter.steps, run, live.then(before(statements[n:], live)), begins, around)
                others = frozenset(step.name for step in cutter.steps if not may_be_users(step.value))
                rests = self._opened(rest, live.then(before(statements[n + 1 :], live)), around, others)
                written += _freed(cutter.steps, rests)
                run = []
            around = around.after(statement)
            begins = begins if run else around
        return written + self._run(run, live, begins)

    def _cutter(self, statement: ast.stmt, around: _Around) -> Cutter:
        """Nothing is cut where exceptions may be handled: what was evaluated before one would be held by its names."""

        def may_be_part(node: ast.expr) -> bool:
            return not around.exact and place(node) not in self.breaks and self._is_clean(_assigned(_PART, node, node)[0])

        return Cutter(may_be_part, place(statement) in self.breaks, self._own)

    def _steps(
        self, steps: Sequence[CutStep], run: list[ast.stmt], live: Live, begins: _Around, around: _Around
    ) -> list[ast.stmt]:
        """The run before a statement that is cut, and what is evaluated of that first: a part may join the run."""
        names = frozenset(step.name for step in steps)
        self.names |= names
        live = live.then(live.after | names)
        written: list[ast.stmt] = []
        for step in steps:
            if step.is_part:
                run = [*run, *_assigned(step.name, step.value, step.value)]
            written += self._run(run, live, begins)  # each by itself: of several on a line, it is not known which was refused
            run, begins = [], around
            if not step.is_part:
                written += _assigned(step.name, self._calls(around).visit(copy.deepcopy(step.value)), step.value)
        return written + self._run(run, live, begins)

    def _ends_run(self, statement: ast.stmt) -> bool:
        """Whether a section may end with it: a `return` of something that is computed."""
        if not isinstance(statement, ast.Return) or statement.value is None or place(statement) in self.breaks:
            return False
        if self.is_part and statement is self.node.body[-1] and not _is_work([statement]):
            return False  # what the run gives: the sections in front of it are those that the whole function will have
        if binds([statement]) & self.seen or self.changed & loads([statement]):
            return False
        return not any(_runs_as_written(x) for x in inside([statement.value])) and not _lazy([statement])

    def _is_clean(self, statement: ast.stmt) -> bool:
        """Whether a statement may be part of a section."""
        bound = binds([statement])
        if bound & self.seen or not bound <= self.names or self.changed & (loads([statement]) | bound) or self._grows(statement):
            return False  # its names are cells or globals, which functions that it calls may look at
        if _lazy([statement]):
            return False
        stack: list[tuple[ast.AST, bool]] = [(statement, False)]
        while stack:
            node, is_inside = stack.pop()
            if (
                _runs_as_written(node)
                or isinstance(node, ast.Return)
                or (isinstance(node, ast.stmt) and place(node) in self.breaks)
            ):
                return False
            if isinstance(node, (ast.Break, ast.Continue)) and not is_inside:
                return False
            outside = node.orelse if isinstance(node, _LOOPS) else []  # what leaves it there leaves the loop around
            in_loop = is_inside or isinstance(node, _LOOPS)
            stack += [(child, is_inside if child in outside else in_loop) for child in parts(node)]
        return True

    def _grows(self, statement: ast.stmt) -> bool:
        """Whether a container of the frame's gets what is there already: taken in, it would be another one each time."""
        match statement:
            case ast.Expr(ast.Call(func=ast.Attribute(value=grown, attr=attr), args=arguments)) if attr in GROWING:
                while isinstance(grown, ast.Subscript):  # one of those in it
                    grown = grown.value
                is_own = isinstance(grown, ast.Name) and grown.id in self.names
                return is_own and not any(isinstance(x, _WORK) for x in inside(arguments))
        return False

    def _opened(self, statement: ast.stmt, live: Live, around: _Around, others: Names = NONE) -> list[ast.stmt]:
        """A statement that stays in the frame; what stands in it may be sections.

        Args:
            others: names of ours for what is no function of the user's.
        """
        if isinstance(statement, SCOPES):
            return [statement]
        made: Any = copy.copy(statement)
        inside = live
        block = around
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            head = loop_head(statement, live)
            inside, block = live.inside_loop(head), replace(around.after(statement), is_inside=True)
        elif isinstance(statement, _TRIES):
            every = live.after | live.leave | live.again | live.caught | binds([statement]) | loads([statement])
            live = inside = Live(every, every, every, every)
            block = around = replace(around.after(statement), exact=True)
        elif isinstance(statement, (ast.With, ast.AsyncWith)):  # its manager may swallow an exception
            every = live.after | binds([statement]) & self.names
            inside = replace(live, after=every, caught=every | live.caught)
            block = replace(around.after(statement), exact=True)
        else:  # an `if` whose test, or a `match` whose pattern, binds names
            block = around.after(statement)
        calls = self._calls(block if isinstance(statement, ast.While) else around, others)
        for part, value in ast.iter_fields(statement):
            if part in ("handlers", "cases"):
                setattr(made, part, [self._holder(x, inside, block) for x in value])
            elif part in _BLOCKS:
                where = (inside, block) if part == "body" else (live, around)
                setattr(made, part, self._block(value, *where))
            elif isinstance(value, ast.AST):
                setattr(made, part, calls.visit(copy.deepcopy(value)))
            elif isinstance(value, list):
                setattr(made, part, [calls.visit(copy.deepcopy(x)) if isinstance(x, ast.AST) else x for x in value])
        return [made]

    def _calls(self, around: _Around, others: Names = NONE) -> CalleeCalls:
        return CalleeCalls(self.asks, self.sites, others, is_inside=around.is_inside)

    def _holder(self, holder: Any, live: Live, around: _Around) -> Any:
        """A handler of exceptions, or a case of a match."""
        made = copy.copy(holder)
        made.body = self._block(holder.body, live, around)
        return made

    def _run(self, statements: list[ast.stmt], live: Live, around: _Around) -> list[ast.stmt]:
        """The statements, with a section before them if that can be worth it."""
        if not statements or not _is_work(statements):
            return statements
        if (loads(statements) & self.names) - around.ready - binds(statements):
            return self._plain(statements, live, around)  # what no statement before binds would be a global in a section
        first, last = statements[0], statements[-1]
        result = last.value if isinstance(last, ast.Return) else None
        gives = sorted(binds(statements) & live.after & self.names) if result is None else []
        takes = sorted(before(statements, Live(frozenset(gives))) & around.ready)
        maybe = frozenset(gives) - surely(statements)
        node, name = self._function(statements, takes, gives), f".s{len(self.runs)}"
        run = StatementRun(node, name, tuple(takes), around.exact, bool(maybe), around.is_inside)
        if run.place in self.left_out:
            return self._plain(statements, live, around)
        self.runs.append(run)
        answered = _answered(gives, self._let_go(statements, live, around)) if result is None else "return __jm_t[0]"
        begin, ask, test = _template(run.name, takes, answered, first)
        plain = self._plain(statements, live, around)
        seen = _statements("if __jm_t is not None: __jm_t.seen()", last, run.name)
        if result is None:
            plain += seen
        elif any(isinstance(x, (ast.Call, ast.BinOp)) for x in inside([result])):
            plain[-1:] = [*_assigned(".r", result, last), *seen, *_statements("return __jm_r", last)]
        else:
            plain[-1:] = [*seen, last]
        test.orelse = plain
        return [begin, ask, test]

    def _let_go(self, statements: Sequence[ast.stmt], live: Live, around: _Around) -> list[str]:
        """Names that hold something before the run, and in Python something else after it that nobody reads."""
        read = live.after | live.leave | live.again | live.caught
        return sorted((surely(statements) & self.names & around.ready) - read)

    def _plain(self, statements: Sequence[ast.stmt], live: Live, around: _Around) -> list[ast.stmt]:
        """The statements, for the time in which the section is not compiled; loops in them have sections in their bodies."""
        written: list[ast.stmt] = []
        for n, statement in enumerate(statements):
            if any(isinstance(x, _LOOPS) for x in within([statement])):
                written += self._opened(statement, live.then(before(statements[n + 1 :], live)), around)
            else:
                written.append(statement)
            around = around.after(statement)
        return written

    def _function(self, statements: Sequence[ast.stmt], takes: Sequence[str], gives: Sequence[str]) -> ast.FunctionDef:
        """What is traced for a section: the statements, as a function that returns a tuple."""
        first, last = statements[0], statements[-1]
        result = ast.Tuple([ast.Name(name, ast.Load()) for name in gives], ast.Load())
        if isinstance(last, ast.Return):
            assert last.value is not None
            result.elts = [copy.deepcopy(last.value)]
            statements = statements[:-1]
            returned = ast.copy_location(ast.Return(ast.copy_location(result, last.value)), last)
        else:
            returned = _at(ast.Return(result), last)
        made: ast.FunctionDef = ast.parse("def f(): pass").body[0]  # type: ignore[assignment]  # it is one
        made.args.args = [ast.arg(name) for name in takes]
        made.name = self.node.name
        _at(made, first)
        made.body = [*copy.deepcopy(list(statements)), returned]
        return made


def with_held(node: ast.FunctionDef, held: Sequence[str]) -> ast.FunctionDef:
    """A section's function that takes in some names as attributes of one object."""
    if not held:
        return node
    made = copy.copy(node)
    made.args = copy.deepcopy(node.args)
    made.args.args = [ast.arg(HELD), *(a for a in node.args.args if a.arg not in held)]
    taken = [ast.parse(f"{name} = {HELD}.{name}").body[0] for name in held]
    made.body = [*(_at(x, node.body[0]) for x in taken), *node.body]
    return placed(made)


def _lets_go(statement: ast.stmt, ready: Names) -> bool:
    """`file = None`: what the name has held ends there, before anything that follows, as with `del`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=None)):
            return name in ready
    return False


def _runs_as_written(node: ast.AST) -> bool:
    match node:
        case ast.comprehension(is_async=1):
            return True
        case ast.Call(func=ast.Name(id="super"), args=[]):  # reads the frame's first argument, whichever a section's is
            return True
    return isinstance(node, _ALWAYS)


def _lazy(nodes: Sequence[ast.AST]) -> list[ast.GeneratorExp]:
    """Generators that may go on later, and then see what their names have become: those that no function uses up at once."""
    every = inside(nodes)
    used = {id(x) for call in every if isinstance(call, ast.Call) and _uses_up(call.func) for x in call.args}
    return [x for x in every if isinstance(x, ast.GeneratorExp) and id(x) not in used]


def _uses_up(function: ast.expr) -> bool:
    return getattr(function, "id", getattr(function, "attr", "")) in _USING_UP


def _is_work(statements: Sequence[ast.stmt]) -> bool:
    """Whether there is enough to be worth the call of a section: a loop, a call, or several operations."""
    nodes = within(statements)
    calls = sum(isinstance(x, (ast.Call, *_LOOPS, ast.ListComp, ast.MatMult)) for x in nodes)
    return bool(calls) or sum(isinstance(x, _WORK) for x in nodes) > 1


def _without_annotations(arguments: ast.arguments) -> ast.arguments:
    """Parameters whose defaults are set afterwards."""
    made = copy.deepcopy(arguments)
    for a in (*made.posonlyargs, *made.args, *made.kwonlyargs, made.vararg, made.kwarg):
        if a is not None:
            a.annotation = None
    made.defaults = [ast.Constant(None) for _ in made.defaults]
    made.kw_defaults = [x and ast.Constant(None) for x in made.kw_defaults]
    return made


def _template(section: str, takes: Sequence[str], answered: str, where: ast.stmt) -> Iterator[Any]:
    text = _TEMPLATE.format(takes="".join(f"{_spelled(name)}, " for name in takes), answered=answered)
    return iter(_statements(text, where, section))


def _spelled(name: str) -> str:
    """A name as text that can be parsed."""
    return name.replace(".", _POINT)


def _answered(gives: Sequence[str], let_go: Sequence[str]) -> str:
    """What is done with an answer; what the frame holds no more by then goes when it does in Python, as files and memory are."""
    target = f"({', '.join(map(_spelled, gives))},), " if gives else ""
    rest = ", ".join([*map(_spelled, let_go), "__jm_t"])
    return f"{target}{rest} = {'__jm_t, ' if gives else ''}{', '.join(['None'] * (len(let_go) + 1))}"


def _statements(text: str, where: ast.stmt, section: str = "") -> list[Any]:
    """Statements of ours, at a place of the user's."""
    names = {"__jm_t": f"{section}t", "__jm_r": ".r", "__jm_type": TYPE, "__jm_tuple": TUPLE, "__jm_s": section}
    found = ast.parse(text).body
    for node in inside(found):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id).replace(_POINT, ".")
    return [_at(node, where) for node in found]


def _assigned(name: str, value: ast.expr, where: ast.stmt | ast.expr) -> list[ast.stmt]:
    return [ast.copy_location(ast.Assign([_at(ast.Name(name, ast.Store()), where)], value), where)]


def _freed(steps: Sequence[CutStep], rests: list[ast.stmt]) -> list[ast.stmt]:
    """What is left of a statement that was cut; the names of its parts hold nothing any longer than Python would."""
    last = rests[-1]
    test = last.test.id if isinstance(last, ast.If) and isinstance(last.test, ast.Name) else None
    names = [ast.Name(step.name, ast.Store()) for step in steps if step.name != test]
    if not names or isinstance(last, ast.Return):
        return rests
    freed: ast.stmt = ast.Assign(names, ast.Constant(None))  # type: ignore[arg-type]  # a list of expressions
    freed = _at(freed, last)
    return [freed, *rests] if test else [*rests, freed]


def _at(node: Any, where: Any) -> Any:
    for part in inside([node]):
        ast.copy_location(part, where)
    return node
