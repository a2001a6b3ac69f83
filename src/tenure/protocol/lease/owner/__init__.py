"""What an owner decides: what it may believe, and how its state moves."""
