"""A pool with something to see on every part of the dashboard, for as long as one looks."""
