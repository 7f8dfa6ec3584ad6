"""The environment: arguments, globals, cells and objects from outside, how each is read and guarded."""
