"""The clock of a store's handle, which draws the times of writes (R3)."""

from tenure.protocol.replication.row.versions import Version


class WriteClock:
    """Draws times in microseconds: each above all that it drew or saw before.

    So the writes of one handle are ordered as they were made, even if the wall clock goes back. If
    it went back so far that replicas refuse such times, they begin anew with it. In an ordered
    table only writes of different rows lose their order then: what a row has is asked first (R4).
    """

    def __init__(self) -> None:
        self._last = 0

    def draw(self, wall: int) -> int:
        """A time for a write, at `wall` on the machine's clock."""
        self._last = max(wall, self._last + 1)
        return self._last

    def begin_anew(self) -> None:
        """Draw the wall clock's time next, whatever was drawn or seen before."""
        self._last = 0

    def see(self, version: Version) -> None:
        """Some replica has this version: draw above it from here on."""
        self._last = max(self._last, version.time)
