"""The numbers of a socket's frames at its edge."""

from tenure.protocol.entity.socket_end import SocketEnd


def test_each_frame_is_taken_once_and_a_missing_one_is_asked_for() -> None:
    end = SocketEnd()
    assert end.take((7, 3), 1, ("a", "b")) == ("a", "b")
    assert end.take((7, 3), 2, ("b", "c")) == ("c",)
    assert end.take((7, 4), 5, ("e",)) == "missing"
    assert end.take((7, 4), 4, ("d", "e")) == ("d", "e")


def test_what_an_earlier_owner_says_late_is_not_taken() -> None:
    end = SocketEnd()
    assert end.take((7, 5), 1, ("a",)) == ("a",)
    assert end.take((7, 4), 2, ("late",)) == ()


def test_the_numbers_of_a_new_journal_begin_anew() -> None:
    """A manager with another journal gives smaller ones, and nobody has an earlier lease then."""
    end = SocketEnd()
    assert end.take((7, 500), 1, ("a",)) == ("a",)
    assert end.take((8, 2), 2, ("b",)) == ("b",)
    assert end.take((7, 501), 3, ("late",)) == ()
    assert end.take((8, 3), 3, ("c",)) == ("c",)
