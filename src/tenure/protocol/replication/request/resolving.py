"""Resolving: the merged parts of a row from several replicas, and what each replica lacks of them.

Each question gets a list of live columns in their order, and how far it is certain. A page in the
order of time cannot be resolved from its parts alone: a replica that does not list a column which
another lists may have a later one of that name, or a tombstone. So its columns are *unconfirmed*,
and are looked up by name (R8).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tenure.protocol.replication.operations import PartsRead
from tenure.protocol.replication.row.cells import is_live
from tenure.protocol.replication.row.layout import CELL, MARKER, FamilyShape
from tenure.protocol.replication.row.records import NOTHING
from tenure.protocol.replication.row.sections import (
    MergedSection,
    SaidPart,
    SectionPart,
    SectionQuestion,
    lacking,
    merge_sections,
)
from tenure.protocol.replication.row.states import RowState, StateEntry
from tenure.protocol.topology.records import NodeId


class Resolved(NamedTuple):
    """The outcome of one question."""

    cells: tuple[tuple[bytes, bytes], ...] = ()
    """Names and live cells, in order."""
    last: bytes | None = None
    """How far it is certain; None to the very end."""
    unconfirmed: tuple[bytes, ...] = ()
    """Names to be looked up; then there are no cells."""


def agreed(part: SectionPart) -> Resolved:
    """The outcome of a part that all needed replicas have."""
    live = tuple((name, cell) for name, cell in part.cells if not cell or is_live(cell, NOTHING))
    return Resolved(live, part.last)


class Resolution:
    """The outcome of all answers, question by question."""

    def __init__(
        self,
        questions: Sequence[SectionQuestion],
        shapes: Sequence[FamilyShape],
        told: Mapping[NodeId, PartsRead],
    ) -> None:
        self.resolved: list[Resolved] = []
        self._lacks: dict[NodeId, list[StateEntry]] = {node: [] for node in told}
        self._markers: dict[NodeId, bytes] = dict.fromkeys(told, NOTHING)
        self._told = told
        for place, (question, shape) in enumerate(zip(questions, shapes, strict=True)):
            said = {node: SaidPart(each.parts[place], each.sealed) for node, each in told.items()}
            self.resolved.append(self._resolve(question, shape, said))

    def mend_for(self, node: NodeId) -> RowState | None:
        """The state that a replica lacks; None if it lacks nothing."""
        entries, marker = self._lacks[node], self._markers[node]
        if not entries and marker == NOTHING:
            return None
        # Below the highest seal only what was told with that seal counts (R7).
        sealed = max(each.sealed for each in self._told.values())
        told = self._told[node]
        return RowState(
            entries=tuple(sorted(set(entries))),
            marker=marker,
            newest=max([marker, *(entry[:16] for _, _, entry in entries)]),
            adopted=told.adopted,
            attempt=told.attempt,
            sealed=sealed,
        )

    @staticmethod
    def certain(lasts: Sequence[bytes | None], *, is_reverse: bool) -> bytes | None:
        """The first place, in the direction of reading, where a part ends (R8)."""
        ends = [last for last in lasts if last is not None]
        if not ends:
            return None
        # Past it one replica has said nothing yet, and may have a delete there (R8).
        return max(ends) if is_reverse else min(ends)

    def _resolve(
        self, question: SectionQuestion, shape: FamilyShape, said: dict[NodeId, SaidPart]
    ) -> Resolved:
        parts = [each.part for each in said.values()]
        is_reverse = question.part is not None and question.part.reverse
        last = self.certain([part.last for part in parts], is_reverse=is_reverse)
        if question.lists_supers:
            names = _ordered({name for part in parts for name, _ in part.cells}, is_reverse)
            return Resolved(tuple((name, b"") for name in _until(names, last, is_reverse)), last)
        # In the order of time a part says nothing of the columns that it does not list (R8).
        if question.part is not None and shape.order != "name":
            listed = {name for part in parts for name, _ in part.cells}
            return Resolved(last=last, unconfirmed=tuple(sorted(listed)))
        merged = merge_sections(list(said.values()))
        names = _until(_ordered(merged.cells, is_reverse), last, is_reverse)
        for node, each in said.items():
            self._note_lacking(node, shape, question, lacking(merged, each, names))
        return Resolved(_live(merged, names), last)

    def _note_lacking(
        self,
        node: NodeId,
        shape: FamilyShape,
        question: SectionQuestion,
        lacks: tuple[tuple[bytes, bytes, bytes], tuple[tuple[bytes, bytes], ...]],
    ) -> None:
        (row, family, inner), cells = lacks
        section = shape.section(b"", question.super)
        self._markers[node] = max(self._markers[node], row)
        entries = self._lacks[node]
        if family != NOTHING:
            entries.append((shape.name, MARKER, family))
        if inner != NOTHING:
            entries.append((shape.name, section + MARKER, inner))
        entries.extend((shape.name, section + CELL + name, cell) for name, cell in cells)


def _live(merged: MergedSection, names: Iterable[bytes]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name, merged.cells[name]) for name in names if merged.is_live(name))


def _ordered(names: Iterable[bytes], is_reverse: bool) -> list[bytes]:  # noqa: FBT001 - a direction
    return sorted(names, reverse=is_reverse)


def _until(names: list[bytes], last: bytes | None, is_reverse: bool) -> list[bytes]:  # noqa: FBT001 - a direction
    if last is None:
        return names
    return [name for name in names if (name >= last if is_reverse else name <= last)]
