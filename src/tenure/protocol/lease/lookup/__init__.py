"""The decisions of a lookup: where keys are, and which state was lost."""
