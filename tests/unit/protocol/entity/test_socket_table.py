"""The table of an entity's sockets against a dict, and what a change of one among many copies."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.protocol.entity.envelope import Envelope, TurnChanges
from tenure.protocol.entity.socket_entry import SocketEntry
from tenure.protocol.entity.socket_table import MOST_PARTS, PART_SOCKETS, SocketTable

LEASE = 1, 1


def entry(number: int) -> SocketEntry:
    return SocketEntry("http://edge", b"", number)


def of(count: int) -> dict[bytes, SocketEntry]:
    return {b"socket" + i.to_bytes(4, "big"): entry(i) for i in range(count)}


IDS = st.binary(max_size=2)
CHANGES = st.dictionaries(IDS, st.none() | st.integers(0, 9).map(entry), max_size=4)


@given(
    st.dictionaries(IDS, st.integers(0, 9).map(entry), max_size=400), st.lists(CHANGES, max_size=5)
)
def test_it_is_a_dict_that_never_changes(
    first: dict[bytes, SocketEntry], changes: list[dict[bytes, SocketEntry | None]]
) -> None:
    table, naive = SocketTable.of(first), dict(first)
    versions = [(table, dict(naive))]
    for each in changes:
        table = table.after(each)
        naive |= {id_: it for id_, it in each.items() if it is not None}
        naive = {id_: it for id_, it in naive.items() if each.get(id_, it) is not None}
        versions.append((table, dict(naive)))
    for said, wanted in versions:
        assert (len(said), said.plain()) == (len(wanted), wanted)
        assert set(said) == set(said.keys()) == set(wanted)
        assert all(said[id_] is it and id_ in said for id_, it in wanted.items())
        assert all(said.get(id_) is it for id_, it in wanted.items())
        assert b"not there" not in said
        assert (said.get(b"not there"), said.get(b"not there", 7)) == (None, 7)


def test_it_has_few_parts_for_few_sockets_and_grows_and_shrinks() -> None:
    table = SocketTable.of(of(PART_SOCKETS))
    assert list(table) == list(of(PART_SOCKETS)), "in the order in which they came"
    table = table.after(of(3 * PART_SOCKETS * MOST_PARTS))
    assert len(table._parts) == MOST_PARTS
    table = table.after(dict.fromkeys(list(table)[10:]))
    assert (len(table._parts), len(table)) == (1, 10)


def test_a_change_of_one_socket_among_many_copies_few_of_them() -> None:
    kept = Envelope(sockets=SocketTable.of(of(10_000)))
    new = b"another socket"
    connecting, hearing, leaving = (TurnChanges() for _ in range(3))
    connecting.opened[new] = entry(0)
    hearing.received = new, 1
    leaving.gone = new
    for changes in (connecting, hearing, leaving):
        before = kept.sockets
        kept, _ = kept.after(changes, b"", LEASE, 0.0, None)
        assert isinstance(before, SocketTable)
        assert isinstance(kept.sockets, SocketTable)
        pairs = zip(before._parts, kept.sockets._parts, strict=True)
        copied = [len(now) for was, now in pairs if was is not now]
        assert sum(copied) < 4 * PART_SOCKETS
    assert kept.confirmed(dict.fromkeys(of(10_000), 0)) is kept, "nothing was on its way"


def test_sockets_share_what_is_sent_to_all_and_a_slow_one_keeps_its_own() -> None:
    slow, frames = b"socket" + bytes(4), ("good evening",)
    kept = Envelope(sockets=SocketTable.of(of(1_000)))
    changes = TurnChanges()
    changes.frames = dict.fromkeys(kept.sockets, frames)
    for _ in range(2):
        kept, (push,) = kept.after(changes, b"", LEASE, 0.0, None)
        assert push.frames is frames
        kept = kept.confirmed({id_: first for id_, first, _ in push.sockets if id_ != slow})
    assert {len(each.unread) for id_, each in kept.sockets.items() if id_ != slow} == {0}
    entries = kept.after(changes, b"", LEASE, 0.0, None)[0].sockets
    assert all(each.unread is frames for id_, each in entries.items() if id_ != slow)
    assert entries[slow].unread == frames * 3
