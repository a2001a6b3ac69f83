"""What a server and a client keep at most, so that no peer can make them grow without bound."""

OBJECT_LEASES = 1_000_000
"""The object leases of a server: some 200 MB. Those of inactive readers go first (V17)."""
ITEMS_WHILE_INACTIVE = 1_000
"""Kept for a reader without a volume lease: to send more costs more than to reconnect (V17)."""
KNOWN_WRITES = 100_000
"""Whose numbers a server remembers. What is older is covered by the floor of its range (V15)."""
READERS = 100_000
"""Clients of one server; each is some hundred bytes, and a connection of whoever runs it."""
LISTED = 100_000
"""Entries that one request asks about; a client with more asks about the others when it reads."""
LISTED_BYTES = 8 << 20
"""The most bytes of all listed keys: a server takes no longer requests than twice that."""
WRITES = 10_000
"""That wait at one time, asked by the application or by clients."""
FETCHES_OF_A_READER = 10_000
"""That wait for a load at one time."""
MISSED_DEADLINES = 3
"""Running, after which a reader gets no volume lease for a while (V20)."""
