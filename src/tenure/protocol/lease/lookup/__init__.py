"""The decisions of a lookup: where keys are, and what was lost."""
