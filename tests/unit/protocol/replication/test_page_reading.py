"""Pages of a cluster have bounded bytes, as those of one replica: they are messages."""

from collections.abc import Sequence
from typing import TypeVar

from tenure.protocol.replication.conversation import Conversing, Until
from tenure.protocol.replication.messages import WholeRow
from tenure.protocol.replication.request.page_reading import read_by_family, read_page, read_supers
from tenure.protocol.replication.request.resolving import Resolved
from tenure.protocol.replication.row.cells import cell_of
from tenure.protocol.replication.row.layout import FamilyShape
from tenure.protocol.replication.row.limits import NAME_BYTES, PAGE_BYTES
from tenure.protocol.replication.row.pages import CellPage, Slice, SuperPage
from tenure.protocol.replication.row.parts import place_in_time
from tenure.protocol.replication.row.sections import SectionQuestion
from tenure.protocol.replication.row.versions import Version

P = TypeVar("P")
HALF = cell_of(Version(0, 1).packed(), bytes(PAGE_BYTES // 2))
NAMES = tuple(b"%d" % number for number in range(5))
SHAPES = {
    "names": FamilyShape("names", has_supers=False, order="name"),
    "times": FamilyShape("times", has_supers=False, order="time"),
    "supers": FamilyShape("supers", has_supers=True, order="name"),
}


def replicas_say(questions: Sequence[SectionQuestion]) -> Conversing[list[Resolved]]:
    """Each section has five columns of half a page."""
    yield Until(lambda: True)
    return [_said(question) for question in questions]


def _said(question: SectionQuestion) -> Resolved:
    if question.names:
        return Resolved(tuple((name, HALF) for name in question.names))
    assert question.part is not None
    after = question.part.after or b""
    rest = tuple(name for name in NAMES if name > after)
    if question.lists_supers:
        return Resolved(tuple((name, b"") for name in rest))
    if SHAPES[question.family].order == "time":
        return Resolved(unconfirmed=NAMES)
    return Resolved(((rest[0], HALF),), rest[0])  # one replica's part ends there


def ended(reading: Conversing[P]) -> P:
    """Return what a reading comes to."""
    while True:
        try:
            next(reading)
        except StopIteration as end:
            page: P = end.value
            return page


def test_a_page_of_columns_ends_with_the_value_that_fills_it() -> None:
    for family, after in (("names", NAMES[1]), ("times", place_in_time(NAMES[1], HALF))):
        page = ended(read_page(replicas_say, SHAPES[family], None, Slice(100)))
        assert isinstance(page, CellPage)
        assert ([each.name for each in page.cells], page.next) == ([*NAMES[:2]], after)


def test_names_fill_a_page_as_values_do() -> None:
    """Names are of up to 65,535 bytes, and a column may have nothing else."""
    name, tombstone = bytes(NAME_BYTES), cell_of(Version(0, 1).packed(), b"")
    full = PAGE_BYTES // NAME_BYTES + 1

    def read(_: Sequence[SectionQuestion]) -> Conversing[list[Resolved]]:
        yield Until(lambda: True)
        return [Resolved(((name, tombstone),) * (2 * full))]

    page = ended(read_page(read, SHAPES["names"], None, Slice(10_000)))
    assert len(page.cells) == full


def test_a_page_of_super_columns_ends_with_the_one_that_fills_it() -> None:
    page = ended(read_supers(replicas_say, SHAPES["supers"], Slice(100), 1))
    assert isinstance(page, SuperPage)
    assert ([name for name, _ in page.supers], page.next) == ([*NAMES[:2]], NAMES[1])


def test_the_families_of_a_row_share_a_page() -> None:
    """What is left of it; and one column, so that each family that has any is there."""
    row = ended(read_by_family(replicas_say, b"k", SHAPES, 100))
    assert isinstance(row, WholeRow)
    assert {name: len(page.cells) for name, page in row.simple.items()} == {"names": 2, "times": 1}
    assert [(name, page.next) for name, page in row.supers["supers"].supers] == [
        (NAMES[0], NAMES[1])
    ]
    assert row.supers["supers"].next == NAMES[0]
