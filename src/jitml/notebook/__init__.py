"""Notebooks: what IPython and Jupyter show of jitml's objects, and magics (`%load_ext jitml`).

Nothing else imports this: it comes when a notebook asks for it.
"""
