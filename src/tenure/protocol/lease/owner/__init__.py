"""The decisions of an owner: what it may believe, and how its state moves."""
