"""`tenure simulate`: the command, how far it is, and what came of it."""
