"""A cap on the requests that wait for one owner's answer (PRS 3.3).

Requests pile up at a slow owner; without a cap, a client's memory and connections go to the slowest
of all owners. Above the cap a request fails at once, and nothing of it is sent.
"""

from threading import Lock

from tenure.base.names import shown
from tenure.errors import ConfigurationError, Overloaded

MOST_OUTSTANDING = 1000
"""Far more than an owner in Python answers in a second, far less than a process has sockets."""


class Outstanding:
    """Requests that wait for an answer, by address. From any thread."""

    def __init__(self, most: int) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise ConfigurationError(
                "outstanding is how many requests may wait for one owner, 1 or more, not "
                f"{shown(most)}"
            )
        self._most = most
        self._lock = Lock()
        self._waiting: dict[str, int] = {}

    def begin(self, address: str) -> None:
        """Count a request until `end`. Raises Overloaded if there are too many."""
        with self._lock:
            waiting = self._waiting.get(address, 0)
            if waiting >= self._most:
                raise Overloaded(
                    f"{self._most} requests of this client wait for {address} already, so no "
                    "further one is sent to it; wait for some of them, or allow more with "
                    "outstanding="
                )
            self._waiting[address] = waiting + 1

    def end(self, address: str) -> None:
        """A request no longer waits."""
        with self._lock:
            waiting = self._waiting.pop(address) - 1
            if waiting:
                self._waiting[address] = waiting
