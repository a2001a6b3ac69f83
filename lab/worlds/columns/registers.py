"""Registers: what was written to each column, and what a reader may see of it (D2, D3, D6, D9).

A column of a row is a register. Its writes are known by their cells, whose order is that in which
they win. So there is no search for an order that explains everything: what a QUORUM read returns
must be a cell that somebody has tried to write, and no smaller one than the *floor*: the greatest
that was acknowledged, or returned by a QUORUM read, before this read began. A read may find nothing
only if a delete that is not below the floor explains it.

A fenced row has one more rule. An owner that has adopted it knows its contents. So once an adoption
is over, all readers see the same of what former owners wrote.
"""

from tenure.protocol.replication.row.admission import Attempt
from tenure.protocol.replication.row.cells import cell_of, value_in
from tenure.protocol.replication.row.edits import Edit
from tenure.protocol.replication.row.versions import Version, version_of
from tenure.sim.kernel.checkers import Violation

RegisterName = tuple[str, bytes | None, bytes]
"""The names of a family, a super column and a column."""
NOTHING_YET = b""


class Register:
    """One column of one row."""

    __slots__ = ("acknowledged", "issued", "name", "seen", "settled", "tombstones")

    def __init__(self, name: RegisterName) -> None:
        self.name = name
        self.issued: set[bytes] = set()
        self.tombstones: list[bytes] = []
        self.acknowledged = NOTHING_YET
        self.seen = NOTHING_YET
        self.settled: dict[int, bytes | None] = {}
        """For each lease number, the value of former owners' writes that the first reader after its
        adoption saw.
        """

    @property
    def floor(self) -> bytes:
        """The least that a read which begins now may return."""
        return max(self.acknowledged, self.seen)


class RowHistory:
    def __init__(self, row: str, names: list[RegisterName]) -> None:
        self.row = row
        self.registers = {name: Register(name) for name in names}
        self.adopting = 0
        """The highest lease number whose adoption has begun."""
        self.adopted = 0
        """The highest lease number whose adoption has finished."""

    def cells(self, version: Version, edits: tuple[Edit, ...]) -> dict[RegisterName, bytes]:
        """The cell that a mutation writes in each register that it touches."""
        packed = version.packed()
        touched: dict[RegisterName, bytes] = {}
        for name in self.registers:
            for edit in edits:
                if covers(edit, name):
                    cell = cell_of(packed, edit.value if edit.name is not None else None)
                    touched[name] = max(cell, touched.get(name, NOTHING_YET))
        return touched

    def issue(self, attempt: Attempt, edits: tuple[Edit, ...]) -> dict[RegisterName, bytes]:
        """An attempt to write begins."""
        cells = self.cells(attempt.version, edits)
        for name, cell in cells.items():
            register = self.registers[name]
            if cell not in register.issued:
                register.issued.add(cell)
                if value_in(cell) is None:
                    register.tombstones.append(cell)
        return cells

    def floors(self) -> dict[RegisterName, bytes]:
        """The present floor of each register."""
        return {name: register.floor for name, register in self.registers.items()}

    def acknowledge(
        self, cells: dict[RegisterName, bytes], before: dict[RegisterName, bytes]
    ) -> None:
        """The write is acknowledged; `before` is what was acknowledged when it began (D3)."""
        for name, cell in cells.items():
            register = self.registers[name]
            if cell <= before[name]:
                told = f"{self.row} {name}: {said(cell)} hidden by {said(before[name])}"
                raise Violation("D3: an acknowledged write is hidden by an earlier one", told)
            register.acknowledged = max(register.acknowledged, cell)

    def see(
        self,
        name: RegisterName,
        found: bytes | None,
        floor: bytes,
        *,
        adopted: int,
        is_quorum: bool = True,
    ) -> None:
        """A read returned this cell, or no column. It began when the floor was `floor` and the
        highest finished adoption was `adopted`.
        """
        register = self.registers[name]
        where = f"{self.row} {name}"
        if found is not None and found not in register.issued:
            raise Violation("D1: a value that nobody wrote", f"{where}: {said(found)}")
        if not is_quorum:
            return
        if found is not None and found < floor:
            told = f"{where}: {said(found)} after {said(floor)}"
            raise Violation("D2: a read returns less than there was", told)
        seen = found
        if found is None and floor:
            explains = [each for each in register.tombstones if each >= floor]
            if not explains:
                raise Violation("D2: a column is gone", f"{where}: there was {said(floor)}")
            seen = min(explains)
        self._settle(register, where, found, adopted)
        # What a former owner wrote without an acknowledgement may vanish while the row is adopted
        # (D6).
        if seen is not None and version_of(seen).number >= self.adopting:
            register.seen = max(register.seen, seen)

    def _settle(self, register: Register, where: str, found: bytes | None, adopted: int) -> None:
        if not adopted or adopted != self.adopting:
            return
        if found is not None and version_of(found).number >= adopted:
            return
        if any(version_of(cell).number >= adopted for cell in register.issued):
            return  # the owner has written here, so nothing of former owners need be visible
        first = register.settled.setdefault(adopted, found)
        if first != found:
            told = f"{where}: {said(found)}, where the owner found {said(first)}"
            raise Violation("D6: a former owner's write comes up", told)


def covers(edit: Edit, name: RegisterName) -> bool:
    """Whether an edit changes a column."""
    family, inner, column = name
    if edit.family is None:
        return True
    if edit.family != family:
        return False
    if edit.name is not None:
        return (edit.super, edit.name) == (inner, column)
    return edit.super is None or edit.super == inner


def said(cell: bytes | None) -> str:
    """A cell for people."""
    if not cell:
        return "nothing"
    version, value = version_of(cell), value_in(cell)
    return f"{version.number}/{version.time} {'deleted' if value is None else value!r}"
