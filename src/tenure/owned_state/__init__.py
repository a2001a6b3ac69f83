"""State that a process has in memory for the keys that it owns, one operation at a time."""
