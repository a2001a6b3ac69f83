"""The limits of a server and of a client, so that no peer can make them grow without bound."""

from typing import Final

from tenure.base.keys import KEY_BYTES

NONCE_LIMIT = 1 << 63
"""What is drawn at random lies below this: nonces of clients, numbers of readers, epochs."""
VALUE_BYTES: Final = 4 << 20
"""The most bytes of an object's value: as many as a chunk of hand-off state has, so that both can
carry the same values.
"""
OBJECT_KEY_BYTES: Final = 2 * KEY_BYTES
"""The most bytes of an object's key: the user's key, after the key that it has in its pool."""
WRITES_PER_CHUNK: Final = 1_000
"""The most writes in a chunk of what is known of them. Each takes a few hundred bytes if keys are
long, so a chunk is sent in milliseconds.
"""
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
