"""Of messages that have not ended, only so much is kept of one token, and each must go on."""

from tenure.base.instants import Instant, seconds
from tenure.transport.unfinished_messages import (
    BYTES_A_SECOND,
    FREE_BYTES,
    GRACE_NS,
    KEPT_BYTES,
    UnfinishedMessages,
)

MIB = 1 << 20
NOW = Instant(0)


class Socket:
    def __init__(self, unfinished: UnfinishedMessages) -> None:
        self.unfinished = unfinished
        self.is_cut_off = False

    def cut_off(self) -> None:
        self.is_cut_off = True
        self.unfinished.ended(self)


def test_of_one_token_the_message_that_began_first_gives_way() -> None:
    unfinished = UnfinishedMessages()
    sockets = [Socket(unfinished) for _ in range(200)]
    for at, each in enumerate(sockets):
        unfinished.kept(each, (f"10.0.0.{at}", "token"), 16 * MIB - 1, NOW)
    kept = [each for each in sockets if not each.is_cut_off]
    assert kept == sockets[-4:]
    assert len(unfinished) == 4


def test_an_address_has_its_bound_whatever_tokens_come_from_it_and_others_have_theirs() -> None:
    unfinished = UnfinishedMessages()
    other = Socket(unfinished)
    unfinished.kept(other, ("10.0.0.2", "b"), KEPT_BYTES, NOW)
    sockets = [Socket(unfinished) for _ in range(8)]
    for at, each in enumerate(sockets):
        unfinished.kept(each, ("10.0.0.1", f"token {at}"), 16 * MIB, NOW)
    assert [each.is_cut_off for each in sockets] == [True] * 4 + [False] * 4
    assert not other.is_cut_off


def test_a_message_that_ends_or_is_small_counts_no_more() -> None:
    unfinished = UnfinishedMessages()
    sockets = [Socket(unfinished) for _ in range(3)]
    for size in (KEPT_BYTES // 2, FREE_BYTES):
        for each in sockets[:2]:
            unfinished.kept(each, ("a",), size, NOW)
    unfinished.kept(sockets[2], ("a",), KEPT_BYTES, NOW)
    assert not any(each.is_cut_off for each in sockets)
    assert len(unfinished) == 1


def test_a_message_must_go_on() -> None:
    unfinished = UnfinishedMessages()
    slow = Socket(unfinished)
    unfinished.kept(slow, ("a",), 2 * BYTES_A_SECOND * 100, NOW)
    assert not unfinished.is_stuck(slow, Instant(GRACE_NS + seconds(200)))
    assert unfinished.is_stuck(slow, Instant(GRACE_NS + seconds(201)))
    unfinished.kept(slow, ("a",), BYTES_A_SECOND * 202, Instant(GRACE_NS + seconds(201)))
    assert not unfinished.is_stuck(slow, Instant(GRACE_NS + seconds(201)))
    unfinished.kept(slow, ("a",), 0, Instant(GRACE_NS + seconds(201)))
    assert not unfinished.is_stuck(slow, Instant(seconds(10_000)))
