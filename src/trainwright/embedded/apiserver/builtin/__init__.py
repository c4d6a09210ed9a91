"""The built-in kinds, one class each (kind.py, kinds.py), with their defaults, rules and columns."""
