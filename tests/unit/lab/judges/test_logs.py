"""Each thing that may be wrong with a log is complained of, and nothing else is."""

from random import Random

import pytest

from lab.judges.logs import Added, AnyLogCall, LookedAtLog, ReadWhole, complaints
from lab.judges.operations import Told

WHOLE = ReadWhole("judge", "a", 1000, 1001, ("one", "two", "three"))


def added(text: str, count: int, began: int, ended: int, told: Told = "written") -> Added:
    return Added("writer", "a", began, ended, text, told, count)


def looked(count: int, last: str, began: int, ended: int) -> LookedAtLog:
    return LookedAtLog("reader", "a", began, ended, count, tuple(last.split()))


RIGHT = (added("one", 1, 10, 20), added("two", 2, 30, 40), added("three", 3, 50, 60))


def said(*calls: AnyLogCall, whole: ReadWhole = WHOLE) -> list[str]:
    return sorted(each.promise for each in complaints([*calls, whole]))


def test_what_is_right_is_not_complained_of() -> None:
    looks = (
        looked(0, "", 12, 15),  # beside the first
        looked(1, "one", 12, 15),
        looked(1, "one", 35, 45),
        looked(2, "one two", 35, 36),
        looked(3, "two three", 70, 80),
        added("lost", 0, 5, 99, "unknown"),
        added("refused", 0, 5, 6, "not written"),
    )
    assert said(*RIGHT, *looks) == []


@pytest.mark.parametrize(
    ("wrong", "promise"),
    [
        (added("four", 4, 70, 80), "what was acknowledged is there"),
        (added("three", 2, 25, 45), "what was acknowledged stays in its place"),
        (added("two", 0, 30, 40, "not written"), "what was not begun is not there"),
        (looked(2, "one other", 41, 50), "what was seen stays"),
        (looked(4, "three four", 70, 80), "what was seen stays"),
        (looked(1, "one", 41, 45), "nothing is older than an answer before"),
        (looked(0, "", 21, 25), "nothing is older than an answer before"),
        (looked(2, "one two", 22, 25), "nothing is seen before it begins"),
    ],
)
def test_what_is_wrong_is_complained_of(wrong: AnyLogCall, promise: str) -> None:
    assert promise in said(*RIGHT, wrong)


def test_a_call_that_had_its_place_from_somebody_earlier_is_complained_of() -> None:
    late = added("two", 2, 70, 80)
    assert said(RIGHT[0], RIGHT[2], late) == ["nothing is older than an answer before"]


def test_what_is_there_twice_is_complained_of() -> None:
    whole = ReadWhole("judge", "a", 1000, 1001, ("one", "one"))
    assert "a call takes effect once" in said(RIGHT[0], whole=whole)


def test_two_readings_that_agree_with_no_order_are_complained_of() -> None:
    later, earlier = looked(3, "three", 55, 56), looked(2, "two", 57, 58)
    assert said(*RIGHT[:2], added("three", 3, 50, 60), later, earlier) == [
        "nothing is older than an answer before"
    ]


def test_a_log_that_was_not_read_at_the_end_is_complained_of() -> None:
    assert [each.promise for each in complaints(RIGHT)] == ["every log is read at the end"]


@pytest.mark.parametrize("seed", range(20))
def test_a_log_that_really_was_one_is_never_complained_of(seed: int) -> None:
    """Calls take effect at an instant between their beginning and their end."""
    dice, texts, calls, now = Random(seed), list[str](), list[AnyLogCall](), 0
    for number in range(200):
        now += dice.randrange(1, 4)
        began, ended = now - dice.randrange(30), now + dice.randrange(30)
        if dice.random() < 0.3:
            texts.append(str(number))
            told: Told = dice.choice(("written", "written", "unknown"))
            calls.append(added(str(number), len(texts), began, ended, told))
        else:
            calls.append(looked(len(texts), " ".join(texts[-3:]), began, ended))
    assert said(*calls, whole=ReadWhole("judge", "a", 1000, 1001, tuple(texts))) == []
