"""The objects: in memory with their history, and on disk."""
