"""No number that managers have not given is taken: it would keep owners out for ever (R36)."""

import pytest

from tenure.base.instants import Instant
from tenure.protocol.replication.given_numbers import HIGHEST, UNHEARD
from tenure.protocol.replication.messages import Adopted, Failed, RowWritten
from tenure.protocol.replication.node_events import NumbersTold
from tenure.protocol.replication.row.limits import AHEAD_US
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage
from tests.unit.protocol.replication.test_schedules import adopt, last, write

MOST = (1 << 63) - 1
POOL = "pool"


def told(stage: NodeStage, following: int, asked_at: Instant | None = None) -> None:
    """Managers answer what all nodes have asked, now or then."""
    stage.now = Instant(stage.now + 1)
    for node in stage.nodes.values():
        node.post(NumbersTold({POOL: following}, stage.now if asked_at is None else asked_at))
    stage.deliver()


def asked(stage: NodeStage, number: int) -> object:
    before = len(stage.answers)
    stage.ask(1, adopt(number % 1000, number))
    stage.deliver()
    return stage.answers[-1] if len(stage.answers) > before else None


def test_a_number_that_was_given_is_taken_at_once() -> None:
    stage = NodeStage(has_managers=True)
    told(stage, 8)
    assert asked(stage, 7) == Adopted(request=7)
    assert stage.asked_managers == 0


def test_a_younger_lease_waits_until_managers_have_told_of_it() -> None:
    stage = NodeStage(has_managers=True)
    told(stage, 8)
    assert asked(stage, 8) is None
    assert stage.asked_managers == 1
    told(stage, 9)
    assert last(stage) == Adopted(request=8)


@pytest.mark.parametrize("number", [8, MOST])
def test_a_number_that_was_not_given_keeps_no_owner_out(number: int) -> None:
    stage = NodeStage(has_managers=True)
    told(stage, 8)
    assert asked(stage, number) is None
    told(stage, 8)
    refused = last(stage)
    assert isinstance(refused, Failed)
    assert refused.why == "too few replicas", "its client asks elsewhere, and nothing was sent"
    assert "given no lease" in refused.detail
    assert asked(stage, 7) == Adopted(request=7)


def test_nor_does_a_write_under_it() -> None:
    stage = NodeStage(has_managers=True)
    told(stage, 8)
    forged = write(1, b"x", 1, number=MOST)
    stage.ask(1, forged)
    told(stage, 8)
    assert isinstance(last(stage), Failed)
    assert asked(stage, 7) == Adopted(request=7)
    stage.ask(1, write(2, b"x", 2, number=7))
    stage.deliver()
    assert last(stage) == RowWritten(request=2)


def test_an_answer_to_an_earlier_question_refuses_nobody() -> None:
    stage = NodeStage(has_managers=True)
    told(stage, 8)
    earlier = stage.now
    assert asked(stage, 8) is None
    told(stage, 8, asked_at=earlier)
    assert len(stage.answers) == 0
    told(stage, 9)
    assert last(stage) == Adopted(request=8)


def test_while_no_manager_answers_leases_go_on_and_no_number_leaps() -> None:
    stage = NodeStage(has_managers=True)
    told(stage, 8)
    assert asked(stage, 8 + UNHEARD) is None
    stage.wait(1.1)
    stage.deliver()
    assert isinstance(last(stage), Failed)
    assert asked(stage, 100) is None
    stage.wait(1.1)
    stage.deliver()
    assert last(stage) == Adopted(request=100)


@pytest.mark.parametrize("has_managers", [False, True])
def test_of_a_pool_that_managers_do_not_have_no_number_is_above_what_restore_passes(
    has_managers: bool,
) -> None:
    """It may be a pool of other managers."""
    stage = NodeStage(has_managers=has_managers)
    if has_managers:
        for node in stage.nodes.values():
            node.post(NumbersTold({}, stage.now))
    assert asked(stage, HIGHEST + 1) is None
    stage.wait(1.1)
    stage.deliver()
    assert isinstance(last(stage), Failed)
    assert asked(stage, HIGHEST) == Adopted(request=0)


def test_a_number_never_goes_back_whoever_tells_it() -> None:
    """A manager that has just been deposed may tell less than its successor did."""
    stage = NodeStage(has_managers=True)
    told(stage, 100)
    told(stage, 8)
    assert asked(stage, 99) == Adopted(request=99)


def test_a_try_far_ahead_keeps_no_other_handle_of_the_owner_out() -> None:
    stage = NodeStage()
    for attempt in (MOST, EPOCH_US + 10 * AHEAD_US):
        stage.ask(1, adopt(1, 7, attempt))
        stage.deliver()
        assert isinstance(last(stage), Failed)
    stage.ask(1, adopt(2, 7, EPOCH_US))
    stage.deliver()
    assert last(stage) == Adopted(request=2)


def test_what_restore_passes_is_what_a_node_takes_of_other_pools() -> None:
    from tenure.protocol.lease.restoration import ABOVE_MOST  # noqa: PLC0415

    assert HIGHEST == ABOVE_MOST
