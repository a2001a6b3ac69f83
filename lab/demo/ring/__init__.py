"""`python -m lab demo columns`: a store on nodes that are killed, added and moved."""
