"""The rules of a topic: numbers, the log that all targets share, gaps, and time to live."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import ServiceRefusal
from tenure.services.pubsub.topic import RememberedTopics
from tenure.services.pubsub.topic_state import (
    GONE_SECONDS,
    LOG_BYTES,
    LOG_MESSAGES,
    LOG_SECONDS,
    MOST_GONE,
    STEP,
    SUBSCRIBERS,
    Delivery,
    DeliveryOutcome,
    TopicState,
    short_name,
)


def subscribed(*targets: str, seconds: float = 1e6) -> TopicState:
    state = TopicState()
    for each in targets:
        state.subscribe(each, 0.0, seconds, "e1")
    return state


def numbers(delivery: Delivery) -> list[int]:
    return [each.number for each in delivery.messages]


def take(state: TopicState, now: float, *, refused: frozenset[str] = frozenset()) -> None:
    outcomes = [
        DeliveryOutcome(each.id, 0, is_refused=True)
        if each.target in refused
        else DeliveryOutcome(each.id, state.number, is_refused=False)
        for each in state.due(now, set())
    ]
    state.report(state.epoch, outcomes, now)


def test_a_message_is_due_to_all_who_had_subscribed_and_to_nobody_who_came_later() -> None:
    state = subscribed("queue:ann")
    assert state.publish(b"1", 1.0) == 1
    state.subscribe("queue:bob", 2.0, 1e6, "e1")
    assert state.publish(b"2", 3.0) == 2
    due = {each.target: numbers(each) for each in state.due(3.0, set())}
    assert due == {"queue:ann": [1, 2], "queue:bob": [2]}


def test_a_topic_without_subscriptions_keeps_nothing_of_a_message() -> None:
    state = TopicState()
    assert state.publish(b"1", 1.0) == 0
    assert state == TopicState()


def test_what_all_have_taken_is_kept_no_longer() -> None:
    state = subscribed("queue:ann", "queue:bob")
    state.publish(b"1", 1.0)
    take(state, 1.0)
    assert state.log == []
    assert state.due(1.0, set()) == []
    assert not state.is_behind()


def test_a_target_that_refuses_is_sent_everything_later_in_order() -> None:
    state = subscribed("queue:ann", "queue:bob")
    state.publish(b"1", 1.0)
    take(state, 1.0, refused=frozenset({"queue:bob"}))
    assert state.behind(1) == (0, 1)
    state.publish(b"2", 1.5)
    take(state, 1.5, refused=frozenset({"queue:bob"}))
    [due] = state.due(2.0, set())
    assert (due.target, due.missed, numbers(due)) == ("queue:bob", None, [1, 2])


def test_what_is_refused_for_long_becomes_a_gap_that_is_told_first() -> None:
    state = subscribed("queue:ann", "queue:bob")
    bob = frozenset({"queue:bob"})
    state.publish(b"1", 1.0)
    take(state, 1.0, refused=bob)
    state.publish(b"2", 2.0 + LOG_SECONDS)
    take(state, 2.0 + LOG_SECONDS, refused=bob)
    now = LOG_SECONDS + 10.0
    [due] = state.due(now, set())
    assert (due.missed, numbers(due)) == ((1, 1), [2])
    state.report(
        "e1", [DeliveryOutcome(due.id, 1, is_refused=True)], now
    )  # it has taken the gap only
    [due] = state.due(now + 60.0, set())
    assert (due.missed, numbers(due)) == (None, [2])


def test_when_the_log_is_full_publishers_wait_for_targets_that_take_and_for_no_others() -> None:
    state = subscribed("queue:ann", "queue:bob")
    for _ in range(LOG_MESSAGES.most):
        state.publish(b"1", 1.0)
    with pytest.raises(ServiceRefusal) as refused:
        state.publish(b"1", 1.0)
    assert (refused.value.status, refused.value.limit) == (429, "log_messages")
    take(state, 1.0, refused=frozenset({"queue:bob"}))
    assert state.publish(b"1", 1.0) == LOG_MESSAGES.most + 1
    bob = next(each for each in state.due(1e4, set()) if each.target == "queue:bob")
    assert bob.missed == (1, 1)


def test_when_the_log_has_too_many_bytes_as_many_messages_are_dropped_as_the_next_one_needs() -> (
    None
):
    state = subscribed("queue:ann", "queue:bob")
    for _ in range(4):
        state.publish(b"x" * (LOG_BYTES.most // 4), 1.0)
    with pytest.raises(ServiceRefusal) as refused:
        state.publish(b"x", 1.0)
    assert (refused.value.status, refused.value.limit, state.number) == (429, "log_bytes", 4)
    take(state, 1.0, refused=frozenset({"queue:bob"}))
    assert state.publish(b"x" * (LOG_BYTES.most // 2), 1.0) == 5
    bob = next(each for each in state.due(1e4, set()) if each.target == "queue:bob")
    assert (bob.missed, numbers(bob)) == ((1, 2), [3, 4, 5])


def test_who_is_slow_and_refuses_nothing_misses_nothing_however_long_it_takes() -> None:
    state = subscribed("queue:ann", "queue:bob")
    state.publish(b"1", 1.0)
    ann, now = short_name("queue:ann"), 10.0 + LOG_SECONDS
    state.report("e1", [DeliveryOutcome(ann, 1, is_refused=False)], now)
    [due] = state.due(now, set())
    assert (due.target, due.missed, numbers(due)) == ("queue:bob", None, [1])


def test_a_topic_that_nobody_subscribes_to_any_more_begins_again_with_nothing() -> None:
    state = subscribed("queue:ann")
    state.publish(b"nobody has taken it", 1.0)
    assert state.unsubscribe(short_name("queue:ann"), 2.0)
    assert state == TopicState()


def test_of_what_is_remembered_that_which_has_expired_is_not_restored() -> None:
    state = TopicState()
    state.restore({"queue:ann": 10.0, "queue:bob": 10.5}, 10.0, "e2")
    assert {it.target: it.expires for it in state.subscriptions.values()} == {"queue:bob": 10.5}


def test_a_topic_with_too_many_subscribers_refuses_and_names_the_limit() -> None:
    state = subscribed(*(f"queue:{i}" for i in range(SUBSCRIBERS.most)))
    with pytest.raises(ServiceRefusal) as refused:
        state.subscribe("queue:one-more", 1.0, 1e6, "e1")
    assert (refused.value.status, refused.value.limit) == (429, "subscribers")
    state.subscribe("queue:0", 1.0, 1e6, "e1")  # it is there already


def test_a_subscription_that_nobody_refreshes_goes_and_says_when_it_went() -> None:
    state = subscribed("queue:ann", "queue:bob", seconds=10.0)
    ann, bob = short_name("queue:ann"), short_name("queue:bob")
    state.refresh(ann, 5.0, 10.0)
    assert state.collect(9.9) == 0
    assert state.collect(10.0) == 1
    with pytest.raises(ServiceRefusal) as gone:
        state.refresh(bob, 11.0, 10.0)
    assert (gone.value.status, gone.value.gone_at) == (410, 10.0)
    with pytest.raises(ServiceRefusal) as unknown:
        state.refresh("nobody", 11.0, 10.0)
    assert unknown.value.status == 404
    state.collect(15.0)
    state.collect(15.0 + GONE_SECONDS)
    assert state == TopicState()  # nothing is left of it


def test_who_has_come_back_and_ended_it_is_not_said_to_have_expired() -> None:
    state = subscribed("queue:ann", seconds=10.0)
    ann = short_name("queue:ann")
    state.collect(10.0)
    assert state.without(ann).status == 410
    state.subscribe("queue:ann", 11.0, 10.0, "e2")
    state.unsubscribe(ann, 12.0)
    assert state.without(ann).status == 404


def test_what_was_left_of_a_subscription_is_left_where_nobody_had_its_topic() -> None:
    state = TopicState()
    id_ = state.subscribe("bob", 100.0, 30.0, "1.1.a")
    state.counted = 110.0
    state.count_anew(1e6)
    assert (state.subscriptions[id_].expires, state.counted) == (1e6 + 20.0, 1e6)
    state.count_anew(5.0)
    assert state.subscriptions[id_].expires == 1e6 + 20.0, "a clock that is behind ends it late"


def test_what_has_expired_is_sent_nothing_even_before_it_is_collected() -> None:
    state = subscribed("queue:ann", seconds=10.0)
    state.publish(b"1", 5.0)
    assert state.due(9.9, set())
    assert not state.due(10.0, set())


def test_what_has_expired_is_collected_some_at_a_time() -> None:
    state = subscribed(*map(str, range(2 * STEP + 10)), seconds=10.0)
    assert [state.collect(10.0) for _ in range(4)] == [STEP, STEP, 10, 0]


def test_of_those_that_have_expired_the_last_are_known_and_no_more() -> None:
    state = TopicState()
    ids = [
        state.subscribe(f"t{number}", float(number), 10.0, "1.1.a")
        for number in range(MOST_GONE + 5)
    ]
    while state.collect(500.0):
        pass
    assert len(state.gone) == MOST_GONE
    assert ids[0] not in state.gone
    assert state.without(ids[0]).status == 404
    assert state.without(ids[-1]).gone_at == MOST_GONE + 14.0


def test_no_target_has_taken_what_was_not_published() -> None:
    state = TopicState()
    id_ = state.subscribe("bob", 0.0, 100.0, "1.1.a")
    state.publish(b"1", 0.0)
    state.report("1.1.a", [DeliveryOutcome(id_, 7, is_refused=False)], 0.0)
    state.publish(b"2", 0.0)
    (due,) = state.due(0.0, set())
    assert (due.missed, [each.data for each in due.messages]) == (None, [b"2"])


def test_a_process_remembers_so_many_subscriptions_and_forgets_the_oldest() -> None:
    remembered = RememberedTopics(most=3)
    states = {topic: TopicState() for topic in "abc"}
    for topic, state in states.items():
        state.subscribe("bob", 0.0, 10.0, "1.1.a")
        remembered.note(topic, state)
    states["c"].subscribe("carol", 0.0, 20.0, "1.1.a")
    remembered.note("c", states["c"])
    assert [remembered.of(topic) for topic in "abc"] == [
        {},
        {"bob": 10.0},
        {"bob": 10.0, "carol": 20.0},
    ]
    remembered.note("c", TopicState())
    assert remembered.of("c") == {}


def test_a_refresh_never_shortens_a_subscription() -> None:
    state = subscribed("queue:ann", seconds=100.0)
    ann = short_name("queue:ann")
    assert state.refresh(ann, 1.0, 5.0).expires == 100.0
    assert state.subscribe("queue:ann", 1.0, 5.0, "e1") == ann
    assert state.subscriptions[ann].expires == 100.0


def test_what_is_reported_of_a_former_epoch_changes_nothing() -> None:
    state = subscribed("queue:ann")
    state.publish(b"1", 1.0)
    ann = short_name("queue:ann")
    state.report("e0", [DeliveryOutcome(ann, 1, is_refused=False)], 1.0)
    assert state.subscriptions[ann].sent == 0


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["publish", "take", "refuse"]), st.integers(0, 3), st.floats(0, 300)),
    max_size=60,
)


@given(ACTIONS)
def test_a_target_gets_every_number_once_or_is_told_that_it_misses_it(
    actions: list[tuple[str, int, float]],
) -> None:
    """Beside a twin that only counts: what each target got, and what it was told that it missed."""
    targets = [f"queue:{i}" for i in range(4)]
    state = subscribed(*targets)
    got: dict[str, list[int]] = {each: [] for each in targets}
    now = 1.0
    for kind, which, seconds in actions:
        now += seconds
        if kind == "publish":
            state.publish(b"x" * 40_000, now) if not _is_full(state) else None
            continue
        for each in state.due(now, set()):
            if each.target != targets[which]:
                continue
            if kind == "refuse":
                state.report("e1", [DeliveryOutcome(each.id, 0, is_refused=True)], now)
                continue
            missed = range(each.missed[0], each.missed[1] + 1) if each.missed else ()
            got[each.target] += [*missed, *numbers(each)]
            state.report(
                "e1", [DeliveryOutcome(each.id, got[each.target][-1], is_refused=False)], now
            )
    for target in targets:
        assert got[target] == list(range(1, len(got[target]) + 1))
        it = state.subscriptions[short_name(target)]
        assert it.sent == len(got[target])


def _is_full(state: TopicState) -> bool:
    return len(state.log) >= 6
