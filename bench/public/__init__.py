"""Public NumPy programs, plain and jitted: are answers the same, what is refused, what does the first call cost, what is gained?

* lists/          which programs: repository, commit, file, functions to decorate, a seeded recipe of arguments, the call
* programs.py     reads them
* checkouts.py    imports a file or notebook of a checkout as a module of its own, with stand-ins for plotting libraries
* outcomes.py     what a call left behind, and how two outcomes differ
* child.py        one program in a process of its own
* scripts.py      whole scripts as people run them, by `scripts.toml`
* report.py       the table and the summary

The programs' code is no part of this project: it is read from checkouts.
"""
