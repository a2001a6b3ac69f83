"""The room of a node for what reads bring: few large ones at once, and the others wait."""

import msgspec
import pytest

from tenure.protocol.replication.conversation import Conversation
from tenure.protocol.replication.messages import (
    Failed,
    ReadRow,
    ReadRows,
    RowFound,
    RowsFound,
    WriteRow,
)
from tenure.protocol.replication.operations import (
    Bounded,
    KeysListed,
    ListKeys,
    PartsRead,
    PromiseFence,
    ReadParts,
    ReadState,
    StateRead,
)
from tenure.protocol.replication.request_room import (
    LITTLE_BYTES,
    PAGE_ANSWER_BYTES,
    RequestRoom,
    places_of,
)
from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.limits import (
    LISTED_BYTES,
    NAME_BYTES,
    VALUE_BYTES,
    WHOLE_BYTES,
)
from tenure.protocol.replication.row.pages import Slice
from tenure.protocol.replication.row.sections import SectionQuestion
from tenure.protocol.replication.row.versions import Version
from tests.unit.protocol.replication.stage_of_nodes import EPOCH_US, NodeStage

LARGE = b"x" * (2 * LITTLE_BYTES)


def write(request: int, key: bytes, value: bytes, *, name: bytes = b"a") -> WriteRow:
    return WriteRow(
        request=request,
        table="plain",
        key=key,
        edits=(Edit("names", None, name, value),),
        attempt=Attempt(Version(0, EPOCH_US + request), journal=0),
    )


def read(request: int, key: bytes) -> ReadRow:
    return ReadRow(request=request, table="plain", key=key, within=10)


def stage_with(**rows: bytes) -> NodeStage:
    stage = NodeStage()
    for number, (key, value) in enumerate(rows.items()):
        stage.ask(1, write(number, key.encode(), value))
        stage.deliver()
    stage.answers.clear()
    return stage


def test_of_many_large_reads_a_node_has_a_few_in_memory_and_answers_all() -> None:
    stage = stage_with(large=LARGE)
    most = stage.nodes[1].machine.context.config.most_large_reads
    for number in range(100):
        stage.ask(1, read(number, b"large"), by="one")
    for _ in range(300):
        stage.deliver(2, 3)
        answers = [each.body for each in stage.messages if isinstance(each.body, PartsRead)]
        assert len([each for each in answers if not each.is_larger]) <= 2 * most
        stage.deliver()
        stage.wait(0.001)
    assert len(stage.answers) == 100
    assert all(isinstance(each, RowFound) for each in stage.answers)
    room = stage.nodes[1].machine.context.room
    assert room.places.taken == 0
    assert not room.has_waiting("one")


def test_what_a_read_has_brought_goes_when_it_is_answered() -> None:
    """And not with the alarm of its deadline: a node has dozens of large reads in that time."""
    stage = stage_with(large=LARGE, small=b"y")
    stage.ask(1, read(1_000, b"small"))
    stage.lose(2, 3)  # it waits, and its alarm is before those of all that come later
    for number in range(20):
        stage.ask(1, read(number, b"large"))
        stage.deliver()
    alarms = [each for _, _, each in stage.nodes[1].machine.context._alarms]
    over = [each for each in alarms if isinstance(each, Conversation) and each.is_over]
    assert over, "their alarms are left"
    assert [each for each in over if each._until.is_there.__closure__] == []


def test_while_one_name_waits_another_is_served_at_once() -> None:
    stage = stage_with(large=LARGE, small=b"y")
    for number in range(700):
        stage.ask(1, read(number, b"large"), by="one")
    stage.ask(1, read(1_000, b"small"), by="another")
    stage.deliver()
    assert 1_000 in {each.request for each in stage.answers}
    stage.ask(1, read(1_001, b"large"), by="another")
    for _ in range(3):
        stage.deliver()
        stage.wait(0.001)
    assert 1_001 in {each.request for each in stage.answers}, "some places are left for others"


def test_small_reads_need_no_places_for_large_ones() -> None:
    stage = stage_with(small=b"y")
    for number in range(500):
        stage.ask(1, read(number, b"small"))
    stage.deliver()
    assert len(stage.answers) == 500


def test_who_waits_until_the_deadline_is_told_that_nothing_was_begun() -> None:
    stage = stage_with(large=LARGE)
    for number in range(50):
        stage.ask(1, read(number, b"large"))
    stage.lose(2, 3)
    stage.wait(6)
    whys = [each.why for each in stage.answers if isinstance(each, Failed)]
    most = stage.nodes[1].machine.context.config.most_large_reads
    assert len(whys) == 50
    assert whys.count("overloaded") >= 50 - most
    stage.messages.clear()
    stage.answers.clear()
    stage.ask(1, read(100, b"large"))
    stage.deliver()
    assert isinstance(stage.answers[-1], RowFound), "all places were given back"


def test_a_read_that_waits_for_room_asks_no_further_replicas() -> None:
    """They are not silent. Under load all would be asked for data, and the load were three times
    as much.
    """
    stage = stage_with(large=LARGE)
    for number in range(50):
        stage.ask(1, read(number, b"large"))
    stage.lose(2, 3)
    stage.said.clear()
    stage.wait(0.6)
    reads = [each.body for each in stage.said if isinstance(each.body, ReadParts)]
    most = stage.nodes[1].machine.context.config.most_large_reads
    assert len(reads) <= 3 * most


def test_a_scan_reads_large_rows_one_after_the_other() -> None:
    """Sixteen rows of 32 MiB, side by side, would be half a gigabyte."""
    stage = stage_with(**{f"k{number}": LARGE for number in range(20)})
    stage.ask(1, ReadRows(request=1, table="plain", part=Slice(20), within=10))
    while not stage.answers:
        told = [each.body for each in stage.messages if isinstance(each.body, PartsRead)]
        assert sum(part.size for body in told for part in body.parts) < 4 * len(LARGE)
        stage.deliver_one() if stage.messages else stage.wait(0.001)
    [answer] = stage.answers
    assert isinstance(answer, RowsFound)
    assert len(answer.rows) == 20


def test_what_is_found_in_many_small_answers_counts_too() -> None:
    """A reader of many small columns keeps all that it has found so far."""
    room = RequestRoom(10, 2)
    first, second = (room.admit(name, 1, reads=True) for name in ("one", "two"))
    assert first is not None
    assert second is not None
    assert first.most_bytes == PAGE_ANSWER_BYTES, "there are many places"
    assert second.most_bytes == LITTLE_BYTES
    second.keep(LITTLE_BYTES - 5)
    assert second.most_bytes == 5
    second.keep(50)
    assert not second.may_ask()
    grown: list[int] = []
    second.grow(lambda: grown.append(1))
    room.let_in()
    assert grown == []
    first.give_back()
    room.let_in()
    assert (grown, second.most_bytes) == ([1], PAGE_ANSWER_BYTES)


def test_only_one_request_has_room_for_a_whole_row_and_others_for_pages() -> None:
    room = RequestRoom(10, 12)
    admitted = [room.admit(f"{number}", 1, reads=True) for number in range(4)]
    portions = [each for each in admitted if each is not None]
    for each in portions[:2]:
        each.grow(lambda: None)
        room.let_in()
    assert [each.most_bytes for each in portions[:2]] == [WHOLE_BYTES, PAGE_ANSWER_BYTES]
    portions[0].give_back()
    room.let_in()
    assert portions[1].most_bytes == WHOLE_BYTES
    assert not portions[1].can_grow()


QUESTION = SectionQuestion(family="names", part=Slice(10))
BOUNDED = [
    ReadParts(table="plain", key=b"large", questions=(QUESTION,), most_bytes=LITTLE_BYTES),
    ReadState(table="plain", key=b"large", most_bytes=LITTLE_BYTES),
    PromiseFence(
        table="plain", key=b"large", number=5, journal=1, attempt=1, most_bytes=LITTLE_BYTES
    ),
]


@pytest.mark.parametrize("asked", BOUNDED, ids=lambda asked: type(asked).__name__)
def test_a_replica_that_has_more_than_is_asked_for_says_only_that(asked: Bounded) -> None:
    stage = stage_with(large=LARGE)
    store = stage.nodes[2].store
    answer, _ = store.run(asked)
    assert isinstance(answer, PartsRead | StateRead)
    assert answer.is_larger
    assert len(msgspec.msgpack.encode(answer)) < 200
    told, _ = store.run(msgspec.structs.replace(asked, most_bytes=VALUE_BYTES))
    assert isinstance(told, PartsRead | StateRead)
    assert not told.is_larger
    assert getattr(told, "refused", None) is None, "what was not promised is not refused"


def test_a_lookup_by_name_is_bounded_by_bytes() -> None:
    """A page by time is followed by one, and each of its columns may be large by now."""
    stage = NodeStage()
    names = tuple(b"%d" % number for number in range(20))
    for number, name in enumerate(names):
        stage.ask(1, write(number, b"k", b"x" * (LITTLE_BYTES // 10), name=name))
    stage.deliver()
    asked = ReadParts(
        table="plain",
        key=b"k",
        questions=(SectionQuestion(family="names", names=names),),
        most_bytes=LITTLE_BYTES,
    )
    answer, _ = stage.nodes[1].store.run(asked)
    assert isinstance(answer, PartsRead)
    assert answer.is_larger


def test_a_list_of_rows_with_the_longest_keys_is_bounded_by_bytes() -> None:
    stage = NodeStage()
    for number in range(40):
        stage.ask(1, write(number, b"%02d" % number + b"k" * (NAME_BYTES - 100), b"x"))
    stage.deliver()
    listed, _ = stage.nodes[1].store.run(ListKeys(table="plain", lower=b""))
    assert isinstance(listed, KeysListed)
    assert not listed.is_all
    assert sum(map(len, listed.positions)) < LISTED_BYTES + NAME_BYTES + 100
    stage.ask(1, ReadRows(request=1, table="plain", part=Slice(100), within=1))
    stage.deliver()
    found = stage.answers[-1]
    assert isinstance(found, RowsFound)
    assert len(found.rows) == 40, "a scan goes on behind a list that was cut"


def test_a_scan_takes_a_place_for_each_row_that_it_reads_at_once() -> None:
    scan = ReadRows(table="plain", part=Slice(100), within=1)
    assert places_of(scan, 100) == 16
    assert places_of(msgspec.structs.replace(scan, part=Slice(2)), 100) == 2
    assert places_of(read(1, b"k"), 100) == 1
    assert places_of(write(1, b"k", b""), 2 * LITTLE_BYTES) == 3
