"""The naive twin of a replica: all that was ever written, and a few lines that say what is seen."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.layout import FamilyShape

SHAPES = {
    "names": FamilyShape("names"),
    "times": FamilyShape("times", order="time"),
    "supers": FamilyShape("supers", has_supers=True),
    "deep": FamilyShape("deep", has_supers=True, order="time"),
}
Seen = tuple[bytes, int, bytes]


@dataclass
class TwinRow:
    """Every edit with its time; reading looks at all of them."""

    written: list[tuple[int, Edit]] = field(default_factory=list)

    def write(self, time: int, edits: Sequence[Edit]) -> None:
        self.written += [(time, edit) for edit in edits]

    def marker(self, family: str, super_column: bytes | None) -> int:
        above = [(None, None), (family, None), (family, super_column)]
        return max(
            (
                time
                for time, edit in self.written
                if edit.name is None and (edit.family, edit.super) in above
            ),
            default=0,
        )

    def columns(self, family: str, super_column: bytes | None) -> list[Seen]:
        best: dict[bytes, tuple[int, bool, bytes]] = {}
        for time, edit in self.written:
            if (edit.family, edit.super) == (family, super_column) and edit.name is not None:
                found = (time, edit.value is None, edit.value or b"")
                best[edit.name] = max(best.get(edit.name, found), found)
        marker = self.marker(family, super_column)
        seen = [
            (name, time, value)
            for name, (time, is_deleted, value) in best.items()
            if not is_deleted and time > marker
        ]
        by_time = SHAPES[family].order == "time"
        return sorted(seen, key=lambda each: (-each[1] if by_time else 0, each[0]))

    def supers(self, family: str) -> list[tuple[bytes, list[Seen]]]:
        names = {
            edit.super
            for _, edit in self.written
            if edit.family == family and edit.super is not None
        }
        found = [(name, self.columns(family, name)) for name in sorted(names)]
        return [(name, columns) for name, columns in found if columns]


NAMES = st.sampled_from([b"", b"\0", b"\0\1", b"a", b"a\0", b"b", b"\xff"])
VALUES = st.one_of(st.none(), st.sampled_from([b"", b"x", b"y"]))


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    """Anything that a row mutation may consist of; deletes of whole families are rarer."""
    family = draw(st.sampled_from(list(SHAPES)))
    super_column = draw(NAMES) if SHAPES[family].has_supers else None
    level = draw(st.integers(0, 12))
    if level == 0:
        return Edit()
    if level == 1:
        return Edit(family)
    if level == 2:
        return Edit(family, super_column)
    return Edit(family, super_column, draw(NAMES), draw(VALUES))


TIMES = st.integers(1, 12)
MUTATIONS = st.lists(st.tuples(TIMES, st.lists(edits(), min_size=1, max_size=4)), max_size=14)
