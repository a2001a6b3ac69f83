"""Words that every layer speaks. Pure: no I/O, no clock, no thread, no global randomness."""
