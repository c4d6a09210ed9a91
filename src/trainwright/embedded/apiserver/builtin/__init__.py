"""The built-in kinds: which there are (kinds.py), and for each its defaults, rules and columns."""
