"""The limits of a server and of a client, so that no peer can make them grow without bound."""

OBJECT_LEASES = 1_000_000
"""The object leases of a server: some 200 MB. Those of inactive readers go first (V17)."""
ITEMS_WHILE_INACTIVE = 1_000
"""The most items kept for a reader without a volume lease: sending more costs more than
reconnecting (V17).
"""
KNOWN_WRITES = 100_000
"""The most writes whose numbers a server remembers. Older ones are covered by the floor of their
range (V15).
"""
READERS = 100_000
"""The most clients of one server; each costs some hundred bytes, and a connection of the process
that runs the server.
"""
LISTED = 100_000
"""The most entries that one request asks about; a client with more asks about the others when it
reads.
"""
LISTED_BYTES = 8 << 20
"""The most bytes of all listed keys: a server takes no longer requests than twice that."""
WRITES = 10_000
"""The most writes that wait at one time, asked for by the application or by clients."""
FETCHES_OF_A_READER = 10_000
"""The most fetches of one reader that wait for a load at one time."""
MISSED_DEADLINES = 3
"""How many deadlines in a row a reader may miss: then it gets no volume lease for a while (V20)."""
