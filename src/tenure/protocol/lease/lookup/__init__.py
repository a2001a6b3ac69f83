"""What a lookup decides: where keys are, and what was lost."""
