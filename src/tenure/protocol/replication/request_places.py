"""The places for requests that a node coordinates at once, and who has them.

One client could take all of them, with requests that are as slow as they can be. So a name, which
is that of a token or an address, may have so many times as many as are left. Whoever is alone has
most of them, and there are always some for whoever comes. (Choudhury and Hahne bound the queues of
a switch in this way.)
"""

from collections import Counter

TIMES = 3
"""One name has three quarters of the places at most, and two that take all they can 43 % each."""
PLACE_BYTES = 256 << 10
"""A larger request takes several places, as it is kept in memory until it is answered: a thousand
places are 256 MiB.
"""


def places_of(size: int) -> int:
    """The places that a request of so many bytes takes."""
    return 1 + size // PLACE_BYTES


class RequestPlaces:
    """Counts the places that each name has."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._by: Counter[str] = Counter()
        self.taken = 0

    def take(self, name: str, places: int) -> bool:
        """Take places, if the name may have them."""
        left = self._count - self.taken - places
        if left < 0 or self._by[name] + places > TIMES * left:
            return False
        self._by[name] += places
        self.taken += places
        return True

    def leave(self, name: str, places: int) -> None:
        """Give back what was taken."""
        self.taken -= places
        self._by[name] -= places
        if not self._by[name]:
            del self._by[name]
