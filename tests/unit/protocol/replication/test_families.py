"""Requests that name what their table does not have: the node refuses them, and goes on."""

import msgspec
import pytest

from tenure.protocol.replication.messages import (
    ClientRequest,
    Failed,
    PageFound,
    ReadPage,
    ReadSupers,
)
from tenure.protocol.replication.request.coordinator import lacking_in
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.topology.tables import FamilyRecord, TableRecord
from tests.unit.protocol.replication.stage_of_nodes import NodeStage
from tests.unit.protocol.replication.test_schedules import last, newest_page, read, write


@pytest.mark.parametrize(
    "asked",
    [
        msgspec.structs.replace(read(1), family="new"),
        ReadPage(request=1, table="plain", key=b"k", family="new", part=Slice(1)),
        ReadSupers(request=1, table="plain", key=b"k", family="new", part=Slice(1), within=1),
        msgspec.structs.replace(write(1, b"x", 1), edits=(Edit("new", None, b"a", b"x"),)),
    ],
)
def test_a_family_of_which_a_node_has_not_heard_is_refused(asked: ClientRequest) -> None:
    """Another node has, and its client goes on with this one."""
    stage = NodeStage()
    stage.ask(1, asked)
    stage.deliver()
    [answer] = stage.answers
    assert answer == Failed(request=1, why="no such table", detail="plain with a family new")
    stage.ask(1, read(2))
    stage.deliver()
    assert isinstance(last(stage), PageFound), "the node goes on"


@pytest.mark.parametrize(
    "asked",
    [
        msgspec.structs.replace(read(1), super=b"s"),
        ReadPage(request=1, table="plain", key=b"k", family="times", super=b"s", part=Slice(1)),
        ReadSupers(request=1, table="plain", key=b"k", family="names", part=Slice(1), within=1),
        msgspec.structs.replace(write(1, b"x", 1), edits=(Edit("times", b"s", b"a", b"x"),)),
        msgspec.structs.replace(write(1, b"x", 1), edits=(Edit("names", b"s"),)),
    ],
)
def test_what_has_no_place_in_a_family_is_refused(asked: ClientRequest) -> None:
    """Nobody could read a row that has an entry in a wrong place, and each node that tried would
    end.
    """
    stage = NodeStage()
    stage.ask(1, asked)
    stage.deliver()
    [answer] = stage.answers
    assert isinstance(answer, Failed), answer
    assert answer.detail.startswith("plain with super columns in the family")
    stage.ask(1, newest_page(2))
    stage.deliver()
    assert isinstance(last(stage), PageFound)


def test_a_column_outside_of_super_columns_is_refused() -> None:
    table = TableRecord("hashed", "bytes", "", {"mail": FamilyRecord("bytes", supers="bytes")})
    for edit, lacks in (
        (Edit("mail", None, b"a", b"x"), "columns outside of super columns in the family mail"),
        (Edit("mail", b"s", b"a", b"x"), None),
        (Edit("mail", b"s"), None),
        (Edit("mail"), None),
        (Edit(), None),
    ):
        asked = msgspec.structs.replace(write(1, b"x", 1), edits=(edit,))
        assert lacking_in(asked, table) == lacks
