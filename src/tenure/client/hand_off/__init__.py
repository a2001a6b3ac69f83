"""State that moves with its range, straight from owner to owner (rule P13)."""
