"""No client's word about the time keeps others from a row (R33)."""

import msgspec
import pytest

from tenure.protocol.replication.messages import (
    Adopted,
    ClientRequest,
    Failed,
    NotWritten,
    RowWritten,
    VersionDrawn,
)
from tenure.protocol.replication.request import drawing
from tenure.protocol.replication.request.drawing import SLOTS
from tenure.protocol.replication.row.admission import Ahead, Attempt
from tenure.protocol.replication.row.limits import AHEAD_US, LAST_US
from tenure.protocol.replication.row.versions import Version
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage
from tests.unit.protocol.replication.test_schedules import adopt, draw, last, write
from tests.unit.protocol.replication.test_schedules_of_writes import step_of

FAR = 10_000 * AHEAD_US


def answer_of(stage: NodeStage, request: ClientRequest, node: int = 1) -> object:
    stage.ask(node, request)
    stage.deliver()
    return last(stage)


def inserts(stage: NodeStage, node: int = 1) -> object:
    """Insert as an honest handle does: have a version drawn, and write with it."""
    drawn = answer_of(stage, draw(90, 0), node)
    assert isinstance(drawn, VersionDrawn), drawn
    attempt = Attempt(drawn.version, above=drawn.newest)
    return answer_of(stage, msgspec.structs.replace(write(91, b"b", 0), attempt=attempt), node)


@pytest.mark.parametrize("floor", [FAR, 1 << 62, LAST_US - EPOCH_US])
def test_a_floor_far_ahead_keeps_nobody_from_writing(floor: int) -> None:
    stage = NodeStage()
    drawn = answer_of(stage, draw(1, floor))
    assert isinstance(drawn, VersionDrawn)
    assert drawn.version.time <= EPOCH_US + AHEAD_US
    assert inserts(stage) == RowWritten(request=91)


def test_versions_that_are_drawn_without_end_stop_before_replicas_would_refuse_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(drawing, "DRAWN_AHEAD_US", 4 * SLOTS)
    stage = NodeStage()
    answers = [answer_of(stage, draw(1, AHEAD_US)) for _ in range(8)]
    assert isinstance(answers[0], VersionDrawn)
    assert isinstance(answers[-1], Failed)
    assert answers[-1].why == "overloaded"
    assert inserts(stage, node=2) == RowWritten(request=91)


@pytest.mark.parametrize("kind", ["merge", "first", "repeat"])
@pytest.mark.parametrize("claimed", [FAR, LAST_US])
def test_a_claim_that_the_row_is_far_ahead_brings_no_write_there(claimed: int, kind: str) -> None:
    stage = NodeStage()
    attempt = msgspec.convert([[0, EPOCH_US + FAR], kind, 0, claimed], Attempt)
    asked = msgspec.structs.replace(write(1, b"x", 0), attempt=attempt)
    answer = answer_of(stage, asked)
    assert isinstance(answer, NotWritten)
    assert isinstance(answer.refused, Ahead)
    assert inserts(stage) == RowWritten(request=91)


def test_a_row_that_is_far_ahead_is_written_above_that_all_the_same() -> None:
    """As a clock that was set years ahead has left it."""
    stage = NodeStage()
    far = write(1, b"x", FAR)
    seen = Attempt(far.attempt.version, above=far.attempt.version.time)
    far = msgspec.structs.replace(far, attempt=seen)
    for node in stage.nodes.values():
        node.store.run(step_of(far))
    assert inserts(stage) == RowWritten(request=91)


@pytest.mark.parametrize("number", [1, LAST_US])
def test_a_lease_number_locks_no_row_of_a_table_without_a_fence(number: int) -> None:
    stage = NodeStage()
    adopts = msgspec.structs.replace(adopt(1, number), table="plain")
    forged = Attempt(Version(number, EPOCH_US), journal=1)
    writes = msgspec.structs.replace(write(2, b"x", 0), attempt=forged)
    for asked in (adopts, writes):
        answer = answer_of(stage, asked)
        assert isinstance(answer, Failed), answer
        assert "fence" in answer.detail
    assert inserts(stage) == RowWritten(request=91)
    assert isinstance(answer_of(stage, adopt(3, 1)), Adopted)
