"""What one replica tells of a row has bounded bytes, names and all."""

import pytest

from tenure.protocol.replication.messages import WriteRow
from tenure.protocol.replication.operations import PartsRead, ReadParts
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.limits import NAME_BYTES, PAGE_BYTES
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.replication.row.sections import SectionQuestion
from tenure.protocol.replication.row.versions import Version
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage

NAMES = [b"%*d" % (NAME_BYTES, number) for number in range(PAGE_BYTES // NAME_BYTES + 10)]


@pytest.mark.parametrize("value", [b"", None])
def test_names_fill_an_answer_also_of_what_is_deleted(value: bytes | None) -> None:
    """A reader goes on behind it, so as not to miss what follows."""
    stage = NodeStage()
    for time, name in enumerate(NAMES):
        asked = WriteRow(
            request=time,
            table="plain",
            key=b"k",
            edits=(Edit("names", None, name, value),),
            attempt=Attempt(Version(0, EPOCH_US + time)),
        )
        stage.ask(1, asked)
        stage.messages.clear()
    question = SectionQuestion(family="names", part=Slice(10_000))
    result, _ = stage.nodes[1].store.run(ReadParts(table="plain", key=b"k", questions=(question,)))
    assert isinstance(result, PartsRead)
    [part] = result.parts
    assert part.last == part.cells[-1][0]
    assert sum(len(name) for name, _ in part.cells) <= PAGE_BYTES
