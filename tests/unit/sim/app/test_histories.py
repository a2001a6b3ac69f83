"""Conclusions from answers, also from those that took long."""

import pytest

from lab.worlds.entity.checkers import Told, ToldLoss
from lab.worlds.entity.entries import PlacedOp, Point
from lab.worlds.entity.history import LedgerHistory, Lost
from lab.worlds.services.document_history import DocumentChange, DocumentHistory
from tenure.base.ranges import KeyRange
from tenure.sim.kernel.checkers import Violation

CHANGE = DocumentChange({"a": "x"}, is_whole=True)


def written(history: DocumentHistory, version: str, now: int) -> None:
    history.written(history.ask(now), None, history.begin(CHANGE), version, now)


def test_a_document_that_is_absent_was_lost_after_it_was_last_known() -> None:
    history = DocumentHistory("d", is_durable=False)
    written(history, "5.1.j", 10)
    history.absent(history.ask(30), 31)
    assert history.losses == [Lost("d", 10, 31)]


def test_a_late_answer_says_nothing_of_what_was_written_since() -> None:
    """Seed 20 of the services: absent, asked before the document was written once more."""
    history = DocumentHistory("d", is_durable=False)
    written(history, "5.1.j", 10)
    asked = history.ask(20)
    written(history, "11.1.j", 30)
    history.absent(asked, 40)
    assert history.losses == [Lost("d", 10, 40)]


def refused(there: str) -> DocumentHistory:
    """An update was refused, and what it would have written was seen before."""
    history = DocumentHistory("d", is_durable=False)
    written(history, "5.1.j", 10)
    asked, number = history.ask(20), history.begin(DocumentChange({"a": "y"}, is_whole=True))
    history.read(history.ask(30), "5.2.j", {"a": "y"})
    history.refused(asked, "*", there, number, 40)
    return history


@pytest.mark.parametrize("there", ["", "11.1.j"])
def test_a_refusal_after_a_loss_may_be_of_a_repetition(there: str) -> None:
    """Seed 1 of the services: made, lost with its answer and the document, and asked once more."""
    refused(there).check_sections()


def test_what_is_refused_while_the_document_lives_is_not_made() -> None:
    with pytest.raises(Violation, match="nobody says so"):
        refused("5.3.j").check_sections()


def made_after_it_was_seen(version: str) -> DocumentHistory:
    """The answer of an update comes late, with this version; what it writes was seen before."""
    history = DocumentHistory("d", is_durable=False)
    written(history, "5.1.j", 10)
    asked, number = history.ask(20), history.begin(DocumentChange({"a": "y"}, is_whole=True))
    history.read(history.ask(30), "5.2.j", {"a": "y"})
    written(history, "5.3.j", 40)
    history.written(asked, None, number, version, 50)
    return history


def test_an_update_that_was_lost_with_its_document_may_be_made_again() -> None:
    """Seed 50844 of the services: the client had no answer, and repeated it by itself."""
    made_after_it_was_seen("11.1.j").check_sections()


def test_no_update_is_made_twice_while_the_document_lives() -> None:
    with pytest.raises(Violation, match="nobody says so"):
        made_after_it_was_seen("5.4.j").check_sections()


def test_what_is_stored_is_not_absent() -> None:
    history = DocumentHistory("d", is_durable=True)
    written(history, "5.1.j", 10)
    with pytest.raises(Violation, match="what is stored is kept"):
        history.absent(history.ask(30), 31)


def test_a_late_answer_of_an_empty_ledger_says_nothing_of_a_later_one() -> None:
    history = LedgerHistory("k", is_durable=False)
    assert history.see(PlacedOp(5, 1, "x"), Point(), 10, 11) is None
    after = history.newest
    assert history.see(PlacedOp(11, 1, "y"), after, 30, 31) == Lost("k", 10, 31, 0, {"": 10})
    assert history.see(PlacedOp(8, 0, ""), after, 20, 40) == Lost("k", 10, 40, 0, {"": 10})
    assert history.newest == Point(11, 1)


def test_a_ledger_that_begins_anew_has_lost_the_newest() -> None:
    history = LedgerHistory("k", is_durable=False)
    history.see(PlacedOp(5, 1, "x"), Point(), 10, 11)
    history.see(PlacedOp(5, 2, "y"), Point(5, 1), 20, 21)
    assert history.see(PlacedOp(7, 0, ""), Point(5, 2), 30, 31) == Lost("k", 20, 31, 0, {"": 20})


def told_early(*, by: str) -> bool:
    """A process is told of a loss before a process, `by`, asks for what the lost ledger does."""
    told = Told(since=5, name="p0")
    everything = (KeyRange(b"", None),)
    told.tellings.append(ToldLoss(20, everything, frozenset({7})))
    history = LedgerHistory("k", is_durable=False)
    history.begins(10, journal=7)
    history.see(PlacedOp(10, 1, "x"), Point(), 12, 13, "p0")
    history.see(PlacedOp(10, 2, "y"), Point(10, 1), 30, 31, by)
    lost = history.see(PlacedOp(40, 1, "z"), Point(), 41, 42, "p1")
    assert lost is not None
    assert not told.of(lost._replace(journal=8)), "a lookup of the same journal may have found it"
    return told.of(lost)


def test_a_process_whose_lookup_follows_a_later_journal_knows_that_ledgers_of_before_are_lost() -> (
    None
):
    """Seed 410581 of entities: for others, who did not know yet, the owner went on for a while."""
    assert told_early(by="p1")
    assert not told_early(by="p0")
