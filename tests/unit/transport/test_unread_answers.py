"""Of answers that are not read, only so much is kept for one token, and for one address."""

from tenure.transport.unread_answers import FREE_BYTES, UNREAD_BYTES, UnreadAnswers

MIB = 1 << 20


class Socket:
    def __init__(self, unread: UnreadAnswers, size: int = 0) -> None:
        self.unread = unread
        self.unread_bytes = size
        self.is_cut_off = False

    def cut_off(self) -> None:
        self.is_cut_off = True
        self.unread_bytes = 0
        self.unread.ended(self)


def test_of_one_token_the_connections_at_which_most_waits_are_ended() -> None:
    unread = UnreadAnswers()
    sockets = [Socket(unread, (16 + at) * MIB) for at in range(100)]
    for at, each in enumerate(sockets):
        unread.sent(each, (f"10.0.0.{at}", "token"))
        assert sum(one.unread_bytes for one in sockets[: at + 1]) <= UNREAD_BYTES
    assert not sockets[0].is_cut_off


def test_an_address_has_its_bound_whatever_tokens_come_from_it_and_others_have_theirs() -> None:
    unread = UnreadAnswers()
    other = Socket(unread, UNREAD_BYTES)
    unread.sent(other, ("10.0.0.2", "b"))
    sockets = [Socket(unread, UNREAD_BYTES // 4) for _ in range(8)]
    for at, each in enumerate(sockets):
        unread.sent(each, ("10.0.0.1", f"token {at}"))
    assert sum(not each.is_cut_off for each in sockets) == 4
    assert not other.is_cut_off


def test_what_was_read_meanwhile_counts_no_more() -> None:
    unread = UnreadAnswers()
    first, second = Socket(unread, UNREAD_BYTES), Socket(unread, UNREAD_BYTES)
    unread.sent(first, ("a",))
    first.unread_bytes = 0
    unread.sent(second, ("a",))
    assert not first.is_cut_off
    assert not second.is_cut_off
    first.unread_bytes = FREE_BYTES
    unread.sent(first, ("a",))
    assert len(unread) == 1
