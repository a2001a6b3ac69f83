"""What `tenure doctor` finds in the answers of managers."""

from collections.abc import Iterator

from msgspec.structs import replace

from tenure.cli.doctor import Finding, examine
from tenure.cli.status import AskedManager
from tenure.manager.answers import RivalAnswer, StatusAnswer
from tests.unit.cli.test_status import answer

A, B = "0c9e6679a1b24d3f", "1c9e6679a1b24d3f"


def leader(url: str, journal: str, *rivals: RivalAnswer) -> StatusAnswer:
    return replace(answer(url, proven=True, lsn=1), journal_id=journal, rivals=rivals)


def wrong(*answers: StatusAnswer) -> Iterator[Finding]:
    asked = [AskedManager(each.url, each) for each in answers]
    return (each for each in examine(asked) if each.result == "wrong")


def test_where_all_is_well_nothing_is_wrong() -> None:
    assert list(wrong(leader("a", A))) == []


def test_two_living_leaders_of_two_journals_are_named_with_the_way_out() -> None:
    [finding] = wrong(leader("a", A), leader("b", B))
    assert finding.check == "one journal"
    assert f"a leads {A}" in finding.what
    assert f"b leads {B}" in finding.what
    assert "tenure resolve --keep" in finding.way_out


def test_a_leader_that_has_stopped_says_beside_whom_and_where() -> None:
    told = RivalAnswer(B, "http://other", pool="rooms")
    [finding] = wrong(leader("a", A, told))
    assert "a has stopped granting in the pool 'rooms': http://other leads" in finding.what
    [finding] = wrong(leader("a", A, RivalAnswer(B, "http://other")))
    assert "in all pools" in finding.what


def test_a_leader_whose_journal_is_over_is_nobodys_rival() -> None:
    over = replace(leader("b", B), is_over=True)
    assert list(wrong(leader("a", A), over)) == []


def test_nodes_that_were_not_believed_are_named() -> None:
    doubted = replace(leader("a", A), store_troubles={"mail": ("somebody speaks for n1",)})
    [finding] = wrong(doubted)
    assert (finding.check, finding.what) == (
        "nodes of the store",
        "mail: somebody speaks for n1",
    )
