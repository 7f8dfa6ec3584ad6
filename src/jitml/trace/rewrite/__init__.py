"""Source rewriting: the user's syntax tree into code that calls hooks. Imports nothing of what is traced."""
