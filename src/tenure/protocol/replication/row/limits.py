"""The most that rows, names, values and mutations may take."""

NAME_BYTES = 65_535
"""A row's key, and the name of a column or super column: what two bytes can count."""
VALUE_BYTES = 16 << 20
"""One value. What is larger belongs into files, with its name in a column."""
MUTATION_BYTES = 32 << 20
"""All names and values of one mutation, which is written as a whole."""
MUTATION_EDITS = 65_536
"""The columns and markers of one mutation: it is admitted in one step."""
WHOLE_BYTES = 1 << 30
"""The most bytes of a message in parts, and of everything that a node puts together at one time.
Both ends have the message in memory, so a row that is larger cannot be replicated.
"""
PART_BYTES = 16 << 20
"""The bytes of each part but the last."""
MESSAGE_ENTRIES = WHOLE_BYTES // 32
"""The most entries or rows in one message. Each takes 32 bytes at least, so more do not fit."""
SUMS_BYTES = 1_024 * 64 * 16
"""All inner sums of a range: see `sums`."""
PAGE_COLUMNS = 10_000
"""The most columns, super columns or rows that one page may be asked for."""
PAGE_BYTES = 16 << 20
"""A page ends with the column that brings its names and values above this, so that memory stays
bounded.
"""
PART_ENTRIES = 20_000
"""The most entries in one replica's answer about a section: tombstones are told too, and do not
fill a page.
"""
LISTED_ROWS = 1_000
"""The most rows that one answer lists."""
LISTED_BYTES = 1 << 20
"""It ends with the row whose key brings it above this: it may have the longest keys."""
SUMMED_ROWS = 50_000
"""The most rows of which inner sums are made in one step: five times what a range of ten million
rows has in one sum. Whoever writes can choose keys that are all in the same one.
"""
STEP_ENTRIES = 512
"""Entries that are looked at in one step, after which everything else has its turn."""
STEP_BYTES = 1 << 20
"""The same, as the bytes of their keys and values: reading these takes as long."""
AHEAD_US = 60_000_000
"""How far a write's time may lie past the clock of a replica (R3). A time far ahead would outlast
everything that is written in the meantime."""
LAST_US = (1 << 63) - 1
"""The last time that there is."""
HORIZON_LAG_US = 600_000_000
"""How old a tombstone becomes before it may go: who gives times of their own has so long (R23)."""
