"""A leader counts copies, and a lie about them costs little."""

from collections.abc import Iterator
from itertools import pairwise

from tenure.protocol.lease.messages import Copy, Held
from tests.unit.protocol.lease.desk import at, marks
from tests.unit.protocol.lease.leader.test_moving import (
    HANDED,
    HELD,
    IMPORTED,
    NUMBER,
    SOURCE,
    A,
    ask,
    ordered,
    right,
    taker_asks,
    three_owners,
)


def test_a_copy_counts_until_the_range_is_somebodys_under_another_number() -> None:
    desk = ordered()
    assert taker_asks(desk, 2, (), *IMPORTED).copies == HELD
    ask(desk, 2.1, (), Copy(start=b"", end=None, number=NUMBER, taker=SOURCE))
    assert taker_asks(desk, 2.2, (), *IMPORTED).copies == ()


def test_a_copy_counts_where_the_table_still_says_so() -> None:
    desk = ordered()
    ask(desk, 2, (Held(start=b"", end=b"m", number=NUMBER),))
    assert taker_asks(desk, 2.1, (), *IMPORTED).copies == (
        Held(start=b"", end=b"m", number=NUMBER),
    )


def test_a_lie_about_copies_costs_the_liar_only() -> None:
    """The taker has never heard of it; it takes nothing, and the loss is signalled."""
    desk = three_owners()
    ask(desk, 1, (), *HANDED)
    [lease] = taker_asks(desk, 1.1).leases
    assert lease.handed == NUMBER
    assert marks(taker_asks(desk, 1.2)) == []
    assert right(desk).since == right(desk).number


class Counted(tuple[Copy, ...]):
    """How often it was gone through."""

    __slots__ = ()
    times = 0

    def __iter__(self) -> Iterator[Copy]:
        Counted.times += 1
        return super().__iter__()


def test_a_request_with_many_copies_costs_a_few_looks_at_each() -> None:
    """However many ranges it does not list: a lie must not keep the manager busy for an hour."""
    desk = ordered()
    bounds = list(pairwise(i.to_bytes(2, "big") for i in range(400)))
    held = tuple(Held(start=start, end=end, number=NUMBER) for start, end in bounds[::2])
    copies = (Copy(start=start, end=end, number=1, taker=7) for start, end in bounds)
    desk.ask(at(2), SOURCE, A, held, copies=Counted(copies))
    assert len(desk.pool.table.rights) > len(held)
    assert Counted.times <= 3
