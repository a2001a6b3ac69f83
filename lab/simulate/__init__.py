"""`python -m lab simulate`: the command, and what came of it."""
