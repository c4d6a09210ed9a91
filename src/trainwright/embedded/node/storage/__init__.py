"""Volumes: their content, the tokens in them, and the directories that claims are bound to."""
