"""How far a read of a column at a quorum goes through the source: what a reader must follow.

The path goes from the client's request at its coordinator to the answer: the conversation, the
questions, what two replicas do with them, and what is made of their answers. Files on the *way*
lead on to others; the rest are words that these use.
"""

from tenure.protocol.replication.messages import PageFound, ReadColumn, WriteRow
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version
from tests.trail import Trail
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage

MOST_FILES = 24
MOST_ON_THE_WAY = 7
MOST_PASSES = 174
"""These limits only ever go down."""


def test_a_quorum_read_does_not_wander() -> None:
    stage, path = NodeStage(), Trail()
    edits = (Edit("names", None, b"n", b"v"),)
    attempt = Attempt(Version(0, EPOCH_US))
    stage.ask(1, WriteRow(table="plain", key=b"k", edits=edits, attempt=attempt))
    stage.deliver()
    path.begin()
    stage.ask(2, ReadColumn(table="plain", key=b"k", family="names", name=b"n"))
    stage.deliver()
    path.end()
    print(path.told())
    found = stage.answers[-1]
    assert isinstance(found, PageFound)
    assert [cell.value for cell in found.page.cells] == [b"v"]
    assert {"protocol/replication/request/reading.py", "columns/node_replica.py"} <= path.way
    assert len(path.way) <= MOST_ON_THE_WAY
    assert len(set(path.files)) <= MOST_FILES
    assert path.passes <= MOST_PASSES
