"""The bounds on what waits at the connections from one address: who is read, and who is ended."""

from tenure.transport.link_bounds import Backlog, LinkLimits

LIMITS = LinkLimits(
    read_bytes=50,
    most_bytes=100,
    asks_of_an_address=3,
    read_bytes_of_an_address=120,
    most_bytes_of_an_address=150,
)


class Line:
    """A connection that notes what its backlog says to it."""

    def __init__(self, backlog: Backlog) -> None:
        self.asks = self.waiting_bytes = self.looked = 0
        self.ended: list[str] = []
        backlog.links.add(self)

    def end(self, why: str) -> None:
        self.ended.append(why)

    def look_for_room(self) -> None:
        self.looked += 1


def test_a_connection_at_which_too_much_waits_ends() -> None:
    """Answers to calls that were begun still come, when nothing more is read."""
    backlog = Backlog(LIMITS)
    line = Line(backlog)
    backlog.add(line, size=100)
    assert not backlog.may_read(line)
    assert line.ended == []
    backlog.add(line, size=1)
    assert line.ended == ["more than 100 bytes wait there"]


def test_of_too_much_at_many_connections_the_one_with_the_most_ends() -> None:
    backlog = Backlog(LIMITS)
    lines = [Line(backlog) for _ in range(3)]
    for line, size in zip(lines, (50, 60, 40), strict=True):
        backlog.add(line, size=size)
    assert [line.ended for line in lines] == [[], [], []]
    backlog.add(lines[2], size=1)
    assert [bool(line.ended) for line in lines] == [False, True, False]
