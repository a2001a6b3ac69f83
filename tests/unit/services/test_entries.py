"""A queue keeps a bounded number of entries, and a loss takes the place of those that
it dropped.
"""

import pytest

from tenure.services.queues import entries
from tenure.services.queues.entries import (
    FORMER,
    MOST_LOST,
    NOTHING_REACHED,
    QueueEntry,
    QueueLoss,
    SourcePlace,
    with_room,
)


def message(number: int) -> QueueEntry:
    return QueueEntry(number, 0.0, b"1")


def test_the_loss_that_takes_the_place_of_the_oldest_has_room_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "ENTRIES", entries.ENTRIES._replace(most=3))
    kept = with_room([message(number) for number in range(1, 5)])
    assert [each.number for each in kept] == [2, 3, 4]
    assert kept[0].loss == QueueLoss(dropped=2)
    again = with_room([*kept, message(5)])
    assert [each.number for each in again] == [3, 4, 5]
    assert again[0].loss == QueueLoss(dropped=3)


def test_a_loss_that_is_dropped_is_in_the_loss_in_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entries, "ENTRIES", entries.ENTRIES._replace(most=2))
    began = QueueEntry(1, 0.0, loss=QueueLoss(began=True))
    one = QueueEntry(2, 0.0, loss=QueueLoss(pools={"p": ("a", "b"), "q": ("x",)}))
    other = QueueEntry(3, 0.0, loss=QueueLoss(pools={"p": ("b", "c")}))
    kept = with_room([began, one, other, message(4)])
    assert [each.number for each in kept] == [3, 4]
    assert kept[0].loss == QueueLoss(began=True, pools={"p": ("a", "b", "c"), "q": ("x",)})


def test_keys_that_were_lost_take_room(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = QueueEntry(1, 0.0, loss=QueueLoss(pools={"p": ("k" * 300,)}))
    monkeypatch.setattr(entries, "QUEUE_BYTES", entries.QUEUE_BYTES._replace(most=400))
    assert with_room([loss]) == [loss]
    kept = with_room([loss, message(2)])
    assert kept == [QueueEntry(2, 0.0, loss=QueueLoss(dropped=1, pools={"p": ("k" * 300,)}))]


def test_a_queue_that_nobody_reads_is_bounded_whatever_it_watches_and_loses() -> None:
    kept: list[QueueEntry] = []
    for number in range(1, 40):
        keys = tuple(f"{number}-{each}".ljust(500, "k") for each in range(MOST_LOST))
        kept = with_room([*kept, QueueEntry(number, 0.0, loss=QueueLoss(pools={"p": keys}))])
        assert sum(each.size for each in kept) <= entries.QUEUE_BYTES.most
    assert kept[0].loss == QueueLoss(began=True), "whoever reads it asks for everything"


def place(epoch: str, number: int = 1) -> SourcePlace:
    return SourcePlace("home", epoch, number)


def test_of_a_source_that_lost_its_journal_the_last_former_ones_are_known() -> None:
    there = NOTHING_REACHED.after(place("9.1.a"), 1)
    assert not there.former, "there was none before"
    there = there.after(place("9.2.a"), 2)
    assert not there.former, "it is the same one"
    for number, journal in enumerate("bcdef", 3):
        there = there.after(place(f"1.1.{journal}"), number)
    assert there.former == ("b", "c", "d", "e")
    assert len(there.former) == FORMER
    assert there.is_past("99.9.e"), "its numbers say nothing here"
    assert there.is_past("0.9.f")
    assert not there.is_past("1.1.f")
    assert not there.is_past("1.2.f")
    assert not there.is_past("1.1.0")
