"""`custom_jvp`, `custom_vjp`: functions whose derivative the user knows better."""

from __future__ import annotations

import functools
import inspect
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from jitml.autograd.api.calls import Called, Container, of_its_own, trace_call, with_captured
from jitml.autograd.api.custom_rules import trace_backward_rule, trace_forward_rule, trace_jvp_rule, varies
from jitml.autograd.core.differentiation_orders import levels
from jitml.autograd.tape.calls import converted
from jitml.autograd.tape.custom import call_with_jvp, call_with_vjp, is_taped, not_given
from jitml.autograd.tape.tape import current_tape
from jitml.diagnostics.tracebacks import entry
from jitml.errors import DerivativeError
from jitml.functions import FunctionLike, require_function
from jitml.ir import ops
from jitml.ir.graph import Value
from jitml.trace.environment.guarded_loads import load, observe, place_of
from jitml.trace.environment.pickling import reduced
from jitml.trace.hooks.convert import convert
from jitml.trace.record.recording import active_trace, current_trace, user_source

Function = Callable[..., Any]
Rule = TypeVar("Rule", bound=Function)
P = ParamSpec("P")
R = TypeVar("R")

if TYPE_CHECKING:
    from jitml.typing.functions import FunctionObject as Typed  # says what its methods are to objects of other classes
else:
    Typed = Generic


class _Custom(Typed[P, R], FunctionLike, ABC):
    """What functions with a rule of their own have in common. Outside of derivatives they are the plain function.

    There, too, the arrays that they return are new ones, copies of arguments that are returned: under a derivative, results have
    slopes of their own.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Function

    @entry
    def __init__(self, f: Callable[P, R], nondiff_argnums: int | Sequence[int] = ()) -> None:
        require_function(type(self).__name__, f)
        functools.update_wrapper(self, f)
        self.function = f
        self.name = str(getattr(f, "__qualname__", None) or getattr(f, "__name__", f))
        self.nondiff_argnums = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        count = _most_positional(f)
        for n in self.nondiff_argnums:
            if count is not None and not -count <= n < count:
                raise ValueError(f"{type(self).__name__}: nondiff_argnums names argument {n}, but {self.name} takes {count}")
        if current_trace() is not None:  # made inside: at each call another one
            active_trace().outside.own[id(self)] = self

    @entry
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if current_trace() is None:
            if is_taped((args, kwargs)):
                return self._on_tape(self._positional(args, kwargs))
            if current_tape() is not None:
                result = of_its_own(converted(self.function)(*args, **kwargs))
                if is_taped(result) and not is_taped((args, kwargs)):
                    raise not_given(self.name)
                return result
            return of_its_own(self.function(*args, **kwargs))
        if not levels():
            return of_its_own(convert(self.function)(*args, **kwargs))
        given = self._positional(args, kwargs)
        self._require_given(len(given))
        constant = {n % len(given): given[n] for n in self.nondiff_argnums}
        arguments = Container.of(tuple(arg for n, arg in enumerate(given) if n not in constant))

        def whole(f: Function, *varying: Any) -> Any:
            remaining = iter(varying)
            return convert(f)(*(constant[n] if n in constant else next(remaining) for n in range(len(given))))

        call = trace_call(self.name, functools.partial(whole, self.function), arguments, 0)
        results = self._record(arguments, call, whole, [constant[n] for n in sorted(constant)], levels() - 1)
        return call.result.show_alike(results)

    def _on_tape(self, args: tuple[Any, ...]) -> Any:
        """A call in a function that is differentiated as it runs."""
        self._require_given(len(args))
        constant = {n % len(args): args[n] for n in self.nondiff_argnums}

        def whole(f: Function, *varying: Any) -> Any:
            remaining = iter(varying)
            return f(*(constant[n] if n in constant else next(remaining) for n in range(len(args))))

        varying = [arg for n, arg in enumerate(args) if n not in constant]
        return self._taped(varying, whole, [constant[n] for n in sorted(constant)])

    @abstractmethod
    def _taped(self, varying: Sequence[Any], whole: Function, constant: Sequence[Any]) -> Any:
        """Enter the call on the tape; its result."""

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in their places, with defaults for those that are not given: what the rule gets."""
        if isinstance(self.function, (np.ufunc, types.BuiltinFunctionType)) and not kwargs:
            return args  # whose signatures tell of much that is not meant here, as out=None, or of nothing
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            if kwargs:
                raise self._by_keyword(kwargs) from None
            return args
        bound = signature.bind(*args, **kwargs)
        given = set(bound.arguments)
        bound.apply_defaults()
        if passed := [name for name in bound.kwargs if name in given or name not in signature.parameters]:
            raise self._by_keyword(passed)
        return bound.args

    def _by_keyword(self, names: Iterable[str]) -> DerivativeError:
        return DerivativeError(
            f"{self.name}: its rule cannot be given arguments by keyword ({', '.join(names)})",
            source=user_source(),
            remedy="Let them be passed by position too.",
        )

    def _require_given(self, count: int) -> None:
        for n in self.nondiff_argnums:
            if not -count <= n < count:
                raise DerivativeError(
                    f"{self.name}: nondiff_argnums names argument {n}, and it is called with {count}", source=user_source()
                )

    @abstractmethod
    def _record(self, arguments: Container, call: Called, whole: Function, constant: list[Any], level: int) -> Sequence[Value]:
        """Record the call with its rule; its results.

        Args:
            whole: calls a function with the arguments that vary, and the others in their places.
            constant: those others.
            level: how often the rule may be differentiated.
        """

    def _seen(self, name: str) -> Any:
        """An attribute that holds rules, guarded: `defjvp` and `defvjp` may set others later."""
        value, trace = getattr(self, name), active_trace().root
        slot = place_of(trace, self)
        if slot is None:
            return value
        full = f"{trace.host.name(slot)}.{name}"
        return observe(trace, value, load(trace, getattr, slot, name, full), full)

    def _no_rule(self, method: str) -> DerivativeError:
        return DerivativeError(
            f"{self.name} is to be differentiated, and has no rule",
            source=user_source(),
            remedy=f"Set it with {self.name}.{method}.",
        )

    def __reduce__(self) -> str | tuple[Any, ...]:
        made = reduced(self, type(self), self.function, self.nondiff_argnums)
        rules = {name: value for name, value in vars(self).items() if name in ("rule", "rules")}
        return made if isinstance(made, str) else (*made, rules)  # rules may hold this object: they are set when there is one

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def _require_rules(method: str, *rules: Any) -> None:
    for rule in rules:
        if not callable(rule):
            raise TypeError(f"{method}: a rule is a function, not {rule!r}")


def _most_positional(f: Function) -> int | None:
    """How many positional arguments it takes; None if any number, or if it does not say."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


class custom_jvp(_Custom[P, R]):  # used as a function
    """A function with a derivative of your own: a rule for its tangent, which serves forward and reverse mode.

    A tangent says how a value changes when the arguments move in some direction.

    Args:
        f: a function of arrays, floats and containers of them.
        nondiff_argnums: positions of arguments that the rule gets as they are, before the others.

    The rule, set by `defjvp`, is called as `rule(primals, tangents)` and returns the result and its tangent, which has to be
    linear in the tangents.

    Calls that are differentiated raise:
        DerivativeError: there is no rule, it returns something else, or a tangent that is seen not to be zero where those given
            are.

    >>> import numpy as np, jitml
    >>> @custom_jvp
    ... def log1pexp(x):
    ...     return np.log1p(np.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return log1pexp(x), dx * (1 - 1 / (1 + np.exp(x)))
    >>> jitml.grad(log1pexp)(100.0)
    np.float64(1.0)
    """

    rule: Function | None = None

    @entry
    def defjvp(self, rule: Rule) -> Rule:
        """Set the rule; returns it, so that this decorates."""
        _require_rules("defjvp", rule)
        self.rule = rule
        return rule

    @entry
    def defjvps(self, *rules: Function | None) -> None:
        """Set a rule for each argument, in the order of the parameters; the result is one array or number, its tangent their sum.

        Args:
            rules: `rule(dx, result, *args)` gives the tangent of the result by one argument. None: it is zero.

        >>> import numpy as np, jitml
        >>> f = jitml.custom_jvp(lambda x, y: np.sin(x) * y)
        >>> f.defjvps(lambda dx, out, x, y: np.cos(x) * y * dx, None)
        >>> jitml.grad(f, argnums=(0, 1))(0.0, 2.0)
        (np.float64(2.0), np.float64(0.0))
        """
        if self.nondiff_argnums:
            raise ValueError("custom_jvp: defjvps has no place for nondiff_argnums; use defjvp")
        _require_rules("defjvps", *(rule for rule in rules if rule is not None))

        called: Function = self

        def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(rules) != len(primals):
                raise DerivativeError(
                    f"{self.name} has rules for {len(rules)} arguments, and is called with {len(primals)}", source=user_source()
                )
            out = called(*primals)
            moved = [convert(of)(dx, out, *primals) for of, dx in zip(rules, tangents) if of is not None and dx is not None]
            return out, sum(moved[1:], moved[0]) if moved else np.zeros_like(out)

        self.rule = rule

    def _taped(self, varying: Sequence[Any], whole: Function, constant: Sequence[Any]) -> Any:
        if self.rule is None:
            raise self._no_rule("defjvp")
        return call_with_jvp(self.name, varying, whole, self.function, functools.partial(self.rule, *constant))

    def _record(self, arguments: Container, call: Called, whole: Function, constant: list[Any], level: int) -> Sequence[Value]:
        function = self._seen("rule")
        if function is None:
            raise self._no_rule("defjvp")
        values = arguments.values()
        varying = tuple(n for n, v in enumerate(values) if varies(v))
        rule = trace_jvp_rule(self.name, functools.partial(convert(function), *constant), arguments, call, level)
        captured = tuple(dict.fromkeys((*call.captured, *rule.captured)))
        results: Sequence[Value] = ops.custom_jvp(
            *values,
            *captured,
            call=with_captured(call.graph, len(values), call.captured, captured),
            rule=with_captured(rule.graph, len(values), rule.captured, captured, len(varying)),
            varying=varying,
            name=self.name,
        )
        return results


class custom_vjp(_Custom[P, R]):  # used as a function
    """A function with a derivative of your own: a rule for reverse mode, which `grad` uses.

    A cotangent says how much some final number changes with a value. The rule gets that of the result, and gives those of the
    arguments.

    Args:
        f: a function of arrays, floats and containers of them.
        nondiff_argnums: positions of arguments that `bwd` gets as they are, before the others.

    The rule, set by `defvjp`, is a pair: `fwd(*args)` returns the result and residuals, whatever `bwd` needs; `bwd(residuals,
    ct)` returns a tuple of cotangents, one for each argument, None for zero. Forward mode works too where `bwd` is plainly
    linear in `ct`.

    >>> import numpy as np, jitml
    >>> @custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    >>> jitml.grad(lambda x: 10 * clip_gradient(x))(2.0)
    np.float64(1.0)
    """

    rules: tuple[Function, Function] | None = None

    @entry
    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Set the rule."""
        _require_rules("defvjp", fwd, bwd)
        self.rules = fwd, bwd

    def _taped(self, varying: Sequence[Any], whole: Function, constant: Sequence[Any]) -> Any:
        if self.rules is None:
            raise self._no_rule("defvjp")
        fwd, bwd = self.rules
        return call_with_vjp(self.name, varying, whole, fwd, functools.partial(bwd, *constant))

    def _record(self, arguments: Container, call: Called, whole: Function, constant: list[Any], level: int) -> Sequence[Value]:
        rules = self._seen("rules")
        if rules is None:
            raise self._no_rule("defvjp")
        fwd, bwd = rules
        values = arguments.values()
        forward, residuals = trace_forward_rule(self.name, functools.partial(whole, fwd), arguments, call, level)
        kept = forward.graph.outputs[len(call.graph.outputs) :]
        rule = functools.partial(convert(bwd), *constant)
        backward = trace_backward_rule(self.name, rule, arguments, call, (residuals, kept), level)
        captured = tuple(dict.fromkeys((*call.captured, *forward.captured, *backward.captured)))
        # What the backward rule captures is handed to it as residuals are.
        first = with_captured(forward.graph, len(values), forward.captured, captured)
        handed = dict(zip(captured, first.inputs[len(values) :]))
        cotangents = sum(map(varies, call.graph.outputs))
        results: Sequence[Value] = ops.custom_vjp(
            *values,
            *captured,
            call=with_captured(call.graph, len(values), call.captured, captured),
            forward=replace(first, outputs=(*first.outputs, *(handed[v] for v in backward.captured))),
            backward=with_captured(backward.graph, len(kept), backward.captured, backward.captured, cotangents),
            varying=tuple(n for n, v in enumerate(values) if varies(v)),
            name=self.name,
        )
        return results
