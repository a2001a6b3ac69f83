"""Decisions about attempts: nothing is sent twice that must not be, and no try is endless."""

from itertools import islice, product
from random import Random

import pytest

from tenure.errors import NoOwner, OutcomeUnknown, TenureError
from tenure.routing.trying import (
    LONGEST_PAUSE,
    MOST_TRIED,
    SHORTEST_PAUSE,
    Attempted,
    Fail,
    InDoubt,
    Pause,
    Refused,
    Send,
    Trying,
    Unsent,
    Wanted,
    judge,
)

HERE, THERE = "http://here", "http://there"
OUTCOMES: tuple[Attempted, ...] = (Refused(None), Refused(THERE), Unsent("x"), InDoubt("x"))


def trying(method: str = "POST", *, keyed: bool = False, deadline: float = 60.0) -> Trying:
    return Trying(Wanted("ann", method, "/carts/ann", keyed), deadline, Random(1))


@pytest.mark.parametrize("method", ["POST", "PATCH", "GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
@pytest.mark.parametrize("keyed", [True, False])
def test_no_order_of_outcomes_has_it_sent_again_after_it_may_have_been_done(
    method: str, keyed: bool
) -> None:
    for outcomes in product(OUTCOMES, repeat=4):
        follow(method, keyed, outcomes)


def follow(method: str, keyed: bool, outcomes: tuple[Attempted, ...]) -> None:
    it = trying(method, keyed=keyed)
    may_repeat = keyed or method not in ("POST", "PATCH")
    step, now = it.begin(HERE), 0.0
    for outcome in outcomes:
        assert isinstance(step, Send)
        step = it.after(outcome, now, HERE)
        if isinstance(outcome, InDoubt) and not may_repeat:
            assert isinstance(step, Fail)
            assert isinstance(step.error, OutcomeUnknown)
            return
        if isinstance(step, Pause):
            now += step.seconds
            step = it.resume(now, HERE)
    assert isinstance(step, Send)


def test_it_waits_where_nobody_has_the_key_and_goes_on_where_it_is_found() -> None:
    it = trying()
    step = it.begin(None)
    assert isinstance(step, Pause)
    assert step.seconds <= SHORTEST_PAUSE
    assert step.not_at is None
    assert isinstance(it.resume(1, None), Pause)
    assert it.resume(2, HERE) == Send(HERE)


def test_pauses_grow_to_a_bound_and_begin_anew_when_the_key_has_moved() -> None:
    it = trying()
    it.begin(HERE)
    pauses = []
    for _ in range(10):
        step = it.after(Refused(None), 0, HERE)
        assert isinstance(step, Pause)
        assert step.not_at == HERE
        pauses.append(step.seconds)
        it.resume(0, HERE)
    assert pauses[0] <= SHORTEST_PAUSE
    assert LONGEST_PAUSE / 2 <= pauses[-1] <= LONGEST_PAUSE
    assert isinstance(it.after(Refused(None), 0, HERE), Pause)
    assert it.resume(0, THERE) == Send(THERE)
    step = it.after(Refused(None), 0, THERE)
    assert isinstance(step, Pause)
    assert step.seconds <= SHORTEST_PAUSE


def test_each_better_place_is_asked_once_between_pauses() -> None:
    it = trying()
    it.begin(HERE)
    assert it.after(Refused(THERE), 0, HERE) == Send(THERE)
    assert isinstance(it.after(Refused(HERE), 0, HERE), Pause)
    it.resume(0, HERE)
    assert it.after(Refused(THERE), 0, HERE) == Send(THERE)


def test_who_names_another_place_with_each_refusal_is_not_followed_for_ever() -> None:
    """Each is a connection: an owner that lies would have a process use up its files."""
    it = trying()
    it.begin(HERE)
    lies = (Refused(f"http://liar:{number}") for number in range(1_000))
    steps = [it.after(lie, 0, HERE) for lie in islice(lies, MOST_TRIED)]
    assert [type(each) for each in steps] == [Send] * (MOST_TRIED - 1) + [Pause]
    assert it.resume(0, HERE) == Send(HERE)


def test_at_the_deadline_it_says_whether_it_may_have_been_done() -> None:
    cases: list[tuple[str, Attempted, type[TenureError]]] = [
        ("PUT", Refused(None), NoOwner),
        ("PUT", InDoubt("x"), OutcomeUnknown),
        ("GET", InDoubt("x"), NoOwner),
    ]
    for method, outcome, error in cases:
        it = trying(method, deadline=1)
        it.begin(HERE)
        step = it.after(outcome, 1, HERE)
        assert isinstance(step, Fail)
        assert type(step.error) is error
    it = trying("PUT", deadline=1)
    it.begin(HERE)
    it.after(InDoubt("x"), 0, HERE)
    step = it.resume(1, None)
    assert isinstance(step, Fail)
    assert isinstance(step.error, OutcomeUnknown)


def test_a_body_that_is_gone_is_not_sent_again() -> None:
    cases: list[tuple[Attempted, type[TenureError]]] = [
        (Refused(THERE), NoOwner),
        (InDoubt("x"), OutcomeUnknown),
    ]
    for outcome, error in cases:
        it = trying("PUT")
        it.begin(HERE)
        step = it.after(outcome, 0, HERE, has_body=False)
        assert isinstance(step, Fail)
        assert type(step.error) is error


NOTHING: dict[str, str] = {}


def test_what_answers_mean() -> None:
    assert judge(200, NOTHING.get) is None
    assert judge(421, NOTHING.get) == Refused(None)
    assert judge(421, {"Tenure-Owner": THERE}.get) == Refused(THERE)
    assert judge(503, {"Tenure-Outcome": "not-begun"}.get) is None
    assert isinstance(judge(503, {"Tenure-Outcome": "unknown"}.get), InDoubt)
    assert judge(500, {"Tenure-Outcome": "unknown"}.get) is None
