"""Random NumPy programs as source text: how they are written, run both ways, and made small.

* choices.py      what Hypothesis decides
* scope.py        the program so far, and what its names hold at the place where it is being written
* inputs.py       arguments: dtypes, shapes, layouts, overlap, special values
* forms.py        templates of expressions and statements
* expressions.py  what a statement computes
* writes.py       what a simple statement does
* statements.py   what the others do
* things/         objects, and passages of real code
* people.py       programs as people write them around them
* breaks.py       programs with statements that cannot be compiled
* program.py      whole programs
* outcomes.py     one program, eagerly and compiled: do they agree?
* shrinking.py    a smaller program that fails in the same way
"""
