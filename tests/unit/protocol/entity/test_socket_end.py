"""The numbers of a socket's frames at its edge."""

import pytest

from tenure.protocol.entity.socket_end import NumberedFrames, Numbering, SocketEnd


def came(
    journal: int, lease: int, first: int, *frames: str, found: int | None = None, begun: int = 1
) -> NumberedFrames:
    return NumberedFrames(Numbering(journal, lease, begun), found, first, frames)


def test_each_frame_is_taken_once_and_a_missing_one_is_asked_for() -> None:
    end = SocketEnd()
    assert end.take(came(7, 3, 1, "a", "b")) == ("a", "b")
    assert end.take(came(7, 3, 2, "b", "c")) == ("c",)
    assert end.take(came(7, 4, 5, "e")) == "missing"
    assert end.take(came(7, 4, 4, "d", "e")) == ("d", "e")


def test_what_an_earlier_owner_says_late_is_not_taken() -> None:
    end = SocketEnd()
    assert end.take(came(7, 5, 1, "a")) == ("a",)
    assert end.take(came(7, 4, 2, "late")) == ()


def test_the_numbers_of_a_new_journal_begin_anew() -> None:
    """A manager with another journal gives smaller ones, and nobody has an earlier lease then."""
    end = SocketEnd()
    assert end.take(came(7, 500, 1, "a")) == ("a",)
    assert end.take(came(8, 2, 2, "b")) == ("b",)
    assert end.take(came(7, 501, 3, "late")) == ()
    assert end.take(came(8, 3, 3, "c")) == ("c",)


def test_an_owner_that_has_found_all_frames_goes_on() -> None:
    end = SocketEnd()
    assert end.take(came(7, 3, 1, "a", found=0)) == ("a",)
    assert end.take(came(7, 4, 3, "c", found=2)) == "missing"
    assert end.take(came(7, 4, 2, "b", "c", found=2)) == ("b", "c")
    assert end.take(came(7, 4, 4, "d", found=2)) == ("d",)


@pytest.mark.parametrize(
    ("journal", "lease", "begun"),
    [(7, 4, 1), (8, 1, 1), (7, 3, 2)],
    ids=["the next owner", "of another journal", "the same owner"],
)
@pytest.mark.parametrize(("first", "frames"), [(1, ("x",)), (2, ("y",)), (3, ()), (4, ("z",))])
def test_an_owner_that_has_found_fewer_frames_than_have_come_is_not_followed(
    journal: int, lease: int, begun: int, first: int, frames: tuple[str, ...]
) -> None:
    end = SocketEnd()
    assert end.take(came(7, 3, 1, "a", "b", found=0)) == ("a", "b")
    assert end.take(came(journal, lease, first, *frames, found=1, begun=begun)) == "forked"


def test_what_an_owner_says_late_of_before_it_began_again_is_not_taken() -> None:
    end = SocketEnd()
    assert end.take(came(7, 3, 1, "a", found=0, begun=2)) == ("a",)
    assert end.take(came(7, 3, 2, "late", found=0, begun=1)) == ()


def test_an_end_that_is_passed_on_knows_whom_it_follows() -> None:
    end = SocketEnd()
    assert end.take(came(7, 3, 1, "a", found=0, begun=2)) == ("a",)
    end = SocketEnd.of(end.passed(unanswered=0))
    assert end.take(came(7, 3, 2, "late", found=0, begun=1)) == ()
    assert end.take(came(7, 3, 2, "b", found=0, begun=2)) == ("b",)
    assert end.take(came(7, 3, 3, "c", found=1, begun=3)) == "forked"
