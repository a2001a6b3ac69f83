"""Schedules of requests that say by a fingerprint what their owner holds: what they prove, and when
they prove nothing.
"""

from typing import Any

from tenure.protocol.lease.messages import (
    Leased,
    LeaseRequest,
    LeaseResponse,
    ShortRequest,
    ShortResponse,
)
from tenure.protocol.lease.timing import DEFAULT, Timing
from tests.simulation.actors import OwnerActor
from tests.simulation.stage import REQUESTS, RESPONSES, Stage
from tests.simulation.stories import FAST, HIGH, KEY, LOW, SLOW, ends_badly

OTHER = b"z"


def two_owners_at_rest() -> tuple[Stage, OwnerActor, OwnerActor]:
    """Each has its half, and asks in short."""
    stage = Stage()
    stage.prefer((LOW, ("o",)), (HIGH, ("p", "o")))
    stage.manager("a")
    o, p = stage.owner("o"), stage.owner("p")
    stage.run(14)
    assert (stage.holders(KEY), stage.holders(OTHER)) == (["o"], ["p"])
    return stage, o, p


def sent_since(stage: Stage, before: int, *kinds: type) -> list[type]:
    return [type(each.what) for each in stage.sent[before:] if isinstance(each.what, kinds)]


def test_who_has_nothing_new_to_say_asks_and_is_answered_in_short() -> None:
    """P4, P5: the fingerprint says what the list would, and the term is prolonged by it."""
    stage, o, _ = two_owners_at_rest()
    before, number = len(stage.sent), o.number_of(KEY)
    stage.run(30)
    assert set(sent_since(stage, before, *REQUESTS, *RESPONSES)) == {ShortRequest, ShortResponse}
    assert o.seconds_left > 8
    assert o.number_of(KEY) == number


def a_grant_that_its_owner_never_hears_of() -> None:
    stage, o, p = two_owners_at_rest()
    answers = stage.hold(*RESPONSES, sender="a", receiver="o")
    p.close()
    stage.run_until(
        lambda: any(each.mark == "granted" for answer in answers.caught for each in marks(answer))
    )
    answers.end()
    before = len(stage.sent)
    stage.run_until(lambda: stage.holders(OTHER) == ["o"], at_most=5)
    assert sent_since(stage, before, *REQUESTS)[:2] == [ShortRequest, LeaseRequest]
    assert o.number_of(OTHER) is not None


def marks(answer: Any) -> tuple[Leased, ...]:  # noqa: ANN401 - whatever was caught
    return answer.what.leases if isinstance(answer.what, LeaseResponse) else ()


def test_a_fingerprint_of_less_than_the_table_gives_is_asked_again_in_full() -> None:
    """P5: the answer that granted more is lost. The fingerprint of what was held before says
    nothing; the list that follows disclaims the grant, which is then made again.
    """
    a_grant_that_its_owner_never_hears_of()
    ends_badly(a_grant_that_its_owner_never_hears_of, without="fingerprint-not-compared")


def test_a_new_leader_is_told_all_before_it_is_asked_in_short() -> None:
    """P2, P19: it has never told a fingerprint, and remembers none; that of the first counts for
    nothing, since its nonce is another.
    """
    stage, o, _ = two_owners_at_rest()
    number, before = o.number_of(KEY), len(stage.sent)
    stage.managers["a"].kill()
    b = stage.manager("b")
    stage.run_until(lambda: b.leads)
    stage.run(15)
    to_b = [each.what for each in stage.sent[before:] if each.receiver == "b"]
    asked = [type(each) for each in to_b if isinstance(each, REQUESTS) and each.incarnation == 1]
    assert asked[0] is LeaseRequest
    assert asked[-1] is ShortRequest
    assert o.number_of(KEY) == number


def a_short_answer_comes_late_with_all_clocks_at_the_bound(timing: Timing = DEFAULT) -> None:
    stage = Stage(timing)
    stage.prefer((LOW, ("o", "p")))
    stage.manager("a", rate=FAST)
    stage.owner("o", rate=SLOW)
    stage.run(8)
    stage.owner("p")
    answers = stage.hold(ShortResponse, sender="a", receiver="o")
    stage.run_until(lambda: bool(answers.caught))
    stage.part("o", "a")
    stage.run(0.9)
    answers.last.deliver()
    stage.run_until(lambda: stage.holders(KEY) == ["p"], at_most=14)


def test_a_short_answer_counts_from_when_its_request_was_sent() -> None:
    """P3."""
    a_short_answer_comes_late_with_all_clocks_at_the_bound()
    ends_badly(
        a_short_answer_comes_late_with_all_clocks_at_the_bound,
        without="term-from-receipt",
        promise="freed too early",
    )


def test_a_short_answer_after_the_end_of_the_term_renews_nothing() -> None:
    """P5, P6: what it renews has run out meanwhile, on the owner's clock."""
    stage, o, _ = two_owners_at_rest()
    answers = stage.hold(*RESPONSES, sender="a", receiver="o")
    requests = stage.hold(*REQUESTS, sender="o")
    stage.run_until(lambda: bool(requests.caught))
    stage.run(0.1)
    o.stop()
    requests.caught[0].deliver()
    stage.run(13)
    answers.end_and_deliver()
    o.go_on()
    assert stage.holders(KEY) == []
    requests.end()
    stage.run_until(lambda: stage.holders(KEY) == ["o"], at_most=20)
