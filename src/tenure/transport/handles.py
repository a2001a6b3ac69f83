"""Another handle of a connection: it stays open when its event loop closes the first."""

import os
import socket as sockets
from typing import Protocol


class HasHandle(Protocol):
    """A socket, or what an event loop shows of one."""

    def fileno(self) -> int:
        """The number of its handle."""
        ...


def another_handle(known: HasHandle | None) -> sockets.socket | None:
    """Duplicate the connection's handle: no event loop takes the duplicate away, and uvloop's own
    handle shuts nothing down. None if the connection has ended already.
    """
    try:
        return None if known is None else sockets.socket(fileno=os.dup(known.fileno()))
    except OSError:
        return None
