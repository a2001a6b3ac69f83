"""One owner for every key, in a pool of ordinary Python processes."""

__version__ = "0.1.0"
