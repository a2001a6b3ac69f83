"""A row in memory, as its only writer keeps it."""

from collections.abc import Iterable, Mapping
from operator import attrgetter

from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.layout import FamilyShape
from tenure.protocol.replication.row.pages import FoundCell
from tenure.protocol.replication.row.versions import Version

_Section = tuple[str, bytes | None]


class MemoryRow:
    """One row as readers see it. The keeper applies every write, in order."""

    def __init__(self, shapes: Mapping[str, FamilyShape]) -> None:
        self._shapes = shapes
        self._cells: dict[_Section, dict[bytes, FoundCell]] = {}
        self.size = 0
        """The bytes of all names and values."""

    def put(self, family: str, super_column: bytes | None, cell: FoundCell) -> None:
        """Take a column, in the place of one of that name."""
        section = (family, super_column)
        self._remove(section, cell.name)
        self._cells.setdefault(section, {})[cell.name] = cell
        self.size += cell.size

    def apply(self, version: Version, edits: Iterable[Edit]) -> None:
        """Apply a mutation that is newer than all that is here."""
        for edit in edits:
            if edit.name is None:
                self._clear(edit)
            elif edit.value is None and edit.family is not None:
                self._remove((edit.family, edit.super), edit.name)
            elif edit.value is not None and edit.family is not None:
                self.put(edit.family, edit.super, FoundCell(edit.name, version, edit.value))

    def column(self, family: str, super_column: bytes | None, name: bytes) -> FoundCell | None:
        return self._cells.get((family, super_column), {}).get(name)

    def columns(self, family: str, super_column: bytes | None) -> list[FoundCell]:
        """The columns of a simple family or a super column, in the family's order."""
        found = sorted(self._cells.get((family, super_column), {}).values(), key=attrgetter("name"))
        if self._shapes[family].order == "time":
            found.sort(
                key=attrgetter("version.time"), reverse=True
            )  # stable: at one time the names keep their order
        return found

    def supers(self, family: str) -> list[bytes]:
        """The names of the super columns that have columns."""
        return sorted(
            inner
            for (of, inner), columns in self._cells.items()
            if of == family and inner is not None and columns
        )

    def _clear(self, edit: Edit) -> None:
        for section in list(self._cells):
            family, super_column = section
            if edit.family in (None, family) and edit.super in (None, super_column):
                for name in list(self._cells[section]):
                    self._remove(section, name)
                del self._cells[section]

    def _remove(self, section: _Section, name: bytes) -> None:
        cell = self._cells.get(section, {}).pop(name, None)
        if cell is not None:
            self.size -= cell.size
