"""A replica of a cluster: carries out the steps that a node's machine asks for, over an engine.

Everything here is one step: it reads, lets `protocol/replication` decide, and writes one batch. The
horizons of such a replica differ by range, because seals do.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, assert_never

import msgspec

from tenure.base.keys import Key
from tenure.columns.engines.contract import Entry, StorageEngine
from tenure.columns.node_copies import bounds, piece_of, taken, wiped
from tenure.columns.range_horizons import RangeHorizons
from tenure.columns.range_sums import RangeSums, place_entry, places_space
from tenure.columns.replica import EMPTY, META, Replica, RowChange
from tenure.columns.requests import RowMutation
from tenure.columns.row_sample import row_sample
from tenure.columns.spaces import HINTS, rows_space, space
from tenure.columns.sweeping import Sweep, doomed_within
from tenure.columns.tables import Table, table_of
from tenure.protocol.replication.operations import (
    TERMS,
    ApplyRow,
    DoomedFound,
    FindDoomed,
    HorizonPromised,
    KeysListed,
    ListKeys,
    ListPlaces,
    ListRows,
    MergeState,
    OfRow,
    PartsRead,
    PieceRead,
    PromiseFence,
    PromiseHorizon,
    ReadParts,
    ReadPiece,
    ReadState,
    ReadSums,
    RowApplied,
    RowsListed,
    SealHorizon,
    StateMerged,
    StateRead,
    SumsRead,
)
from tenure.protocol.replication.row.admission import MutationAdmitted, Outranked, may_write
from tenure.protocol.replication.row.copies import (
    CopyMark,
    RangeHorizon,
    record_of_filling,
    rows_of,
)
from tenure.protocol.replication.row.layout import AFTER, TIME_BYTES, position, row_key
from tenure.protocol.replication.row.limits import HORIZON_LAG_US, PAGE_BYTES, WHOLE_BYTES
from tenure.protocol.replication.row.merging import Found, StateMerge
from tenure.protocol.replication.row.pages import Steps, listed, of_a_step
from tenure.protocol.replication.row.parts import at_once, section_part, supers_with_columns
from tenure.protocol.replication.row.records import RowRecord, record_of, stored
from tenure.protocol.replication.row.sections import SectionPart, digest_of
from tenure.protocol.replication.row.states import RowState
from tenure.protocol.replication.row.sums import SUM_BYTES, digest_of_sums, row_print
from tenure.protocol.replication.tasks import (
    BeginFilling,
    BuildSums,
    CompareRows,
    DropHint,
    FollowRanges,
    HintsRead,
    KeepHint,
    NodeTask,
    ReadHints,
    RowsWeighed,
    Step,
    StepResult,
    SweepSome,
    TakePiece,
    Task,
    TaskDone,
    WeighRows,
    WipeRange,
)
from tenure.protocol.topology.records import Position
from tenure.protocol.topology.ring import position as on_ring
from tenure.protocol.topology.tables import RowKind

_NO_PARTS = digest_of(())
_PROMISES = b"promises"
_FILLING = b"filling"


class NodeReplica(Replica):
    """The replica of one node: all its ranges, and what it keeps for other nodes."""

    def __init__(
        self, engine: StorageEngine, clock: Callable[[], int], lag_us: int = HORIZON_LAG_US
    ) -> None:
        super().__init__(engine)
        self._clock = clock
        self._lag_us = lag_us
        """How old a tombstone becomes before it may go."""
        self.filling = record_of_filling(None)
        """How far this node is filled."""
        self.horizons = RangeHorizons(engine)
        self.promised, self.sealed = self.horizons.promised, self.horizons.sealed
        self.range_sums = RangeSums(engine)
        self._sweeps: list[Steps[int]] = []
        """The sweeps of tables that are left to do."""
        self._weighings: list[Steps[int]] = []
        """The weighings of tables that are left to do."""
        self._sizes: dict[Position, float] = {}
        self.changes = 0
        """How often the store was changed in this life."""
        self.promises = 0
        """How often this counter was raised in all lives: with each promised horizon and fence,
        with each life, and after other changes. A store that has a lower one than it had was put
        back to an earlier state (R26)."""

    def load(self) -> None:
        """Load what was there before. Call it after `open`."""
        self.tables = {name: table_of(name, record) for name, record in self.records.items()}
        [filling] = self.engine.get(META, [_FILLING])
        self.filling = record_of_filling(filling)
        self.horizons.load()
        self.engine.make_spaces([*map(places_space, self.tables), HINTS])
        self.range_sums.load(self._kinds)
        self.promises = counter_of(self.engine)

    @property
    def _kinds(self) -> dict[str, RowKind]:
        return {name: table.kind for name, table in self.tables.items()}

    def _load_sums(self, table: str) -> None:
        """A replica of a cluster has no sums of whole tables."""

    def run(self, step: Step) -> tuple[StepResult, int]:
        """Do it; return its result, and how often the store has been changed."""
        result = self._done(step)
        self.changes += is_change(step)
        return result, self.changes

    def _done(self, step: Step) -> StepResult:
        match step:
            case ReadParts():
                return self._parts(step)
            case ApplyRow():
                return self._apply(step)
            case ReadState():
                return _told(self._state(step))
            case MergeState():
                return self._take(step)
            case PromiseFence():
                return self._fence(step)
            case ListRows():
                return self._list(step)
            case ListKeys():
                return self._list_keys(step)
            case ReadPiece():
                return self._read_piece(step)
            case ReadSums():
                return self._read_sums(step)
            case ListPlaces():
                return self._list_places(step)
            case FindDoomed():
                return self._find_doomed(step)
            case PromiseHorizon():
                return self._promise(step)
            case SealHorizon():
                return self._seal(step)
            case _:
                return self._tend(step)

    def _tend(self, task: NodeTask) -> StepResult:
        match task:
            case FollowRanges():
                self.range_sums.follow(self._kinds, task.ranges)
                return TaskDone()
            case BuildSums():
                return TaskDone(self.range_sums.build())
            case SweepSome():
                return self._sweep(task)
            case WeighRows():
                return self._weigh(task)
            case KeepHint():
                self.engine.apply([(HINTS, task.key, task.hint)])
                return TaskDone()
            case DropHint():
                self.engine.apply([(HINTS, task.key, None)])
                return TaskDone()
            case ReadHints():
                walk = self.engine.cursor(HINTS).walk(task.after + b"\0", None)
                hints, is_all = of_a_step(walk)
                return HintsRead(tuple(hints), is_all)
            case WipeRange():
                return self._wipe(task)
            case BeginFilling():
                self.engine.apply([(META, _FILLING, msgspec.msgpack.encode(task.record))])
                self.filling = task.record
                return TaskDone()
            case TakePiece():
                return self._take_piece(task)
            case CompareRows():
                return self._compare(task)
        assert_never(task)

    def horizon_of(self, table: Table, key: Key) -> int:
        """The time up to which the writes of a row are refused: promised, whether sealed or not
        (R24).
        """
        return self.promised[on_ring(key, table.kind)]

    def settled_to(self, table: Table, at: bytes) -> int:
        """See `Replica.settled_to`: what is sealed (R23)."""
        key, _ = row_key(at, table.kind)
        return self.sealed[on_ring(key, table.kind)]

    def apply_rows(self, batch: list[Entry], changes: Iterable[RowChange]) -> None:
        """See `Replica.apply_rows`. The sums are those of ranges, and of prints."""
        changed: list[tuple[str, bytes, int]] = []
        for change in changes:
            table, at, before, after = change.table, change.at, change.before, change.after
            if EMPTY in (before, after):
                batch.append(place_entry(table, at, None if after == EMPTY else b""))
            changed.append((table, at, row_print(before) ^ row_print(after)))
        self.range_sums.apply(batch, changed)

    # --- rows ---

    def _apply(self, step: ApplyRow) -> RowApplied:
        mutation = RowMutation(self.tables[step.table], step.key, step.edits)
        return RowApplied(refused=self.write(mutation, step.attempt, self._clock()))

    def _parts(self, step: ReadParts) -> PartsRead:
        table, at, record = self._row(step)
        place = on_ring(step.key, table.kind)
        sealed = self.sealed[place]
        parts: list[SectionPart] = []
        most, size = step.most_bytes or WHOLE_BYTES, 0
        for question in step.questions:
            cursors, shape = self.cursors(table, question.family), table.shapes[question.family]
            row = cursors, shape, at, record.marker, question
            left = PAGE_BYTES
            if question.within is not None:  # the families of a whole row share a page
                left -= size
            if question.within is not None and question.lists_supers:
                some = at_once(supers_with_columns(*row, left, sealed))
            else:
                # One byte more shows that there is more than was asked for.
                left = min(left, most - size + 1) if question.part else most - size
                part = at_once(section_part(*row, left))
                some = [part if question.lists_supers else part.without_known(sealed)]
            parts += some
            for part in some:
                size += part.size
            if size > most:
                return PartsRead(digest=b"", is_larger=True)
        return PartsRead(
            digest=digest_of(parts) if parts else _NO_PARTS,
            parts=() if step.digest_only else tuple(parts),
            sealed=sealed,
            adopted=record.adopted,
            attempt=record.attempt,
            newest=record.newest,
            promised=self.promised[place],
        )

    def _row(self, step: OfRow[Any]) -> tuple[Table, bytes, RowRecord]:
        table = self.tables[step.table]
        at = position(step.key, table.kind)
        return table, at, self.record(table, at)

    def _state(self, step: ReadState | PromiseFence) -> RowState | None:
        """The state of a whole row; None if that is more than was asked for."""
        table, at, record = self._row(step)
        found: list[Found] = []
        size = 0
        for each in self._entries_of(table, at):
            found.append(each)
            size += len(each[1]) - len(at) + len(each[2])
            if size > step.most_bytes > 0:
                return None
        return RowState(
            entries=tuple(
                sorted((family, whole[len(at) :], entry) for family, whole, entry in found)
            ),
            marker=record.marker,
            newest=record.newest,
            fence=record.fence,
            journal=record.journal,
            adopted=record.adopted,
            attempt=record.attempt,
            sealed=self.sealed[on_ring(step.key, table.kind)],
            is_whole=True,
        )

    def _entries_of(self, table: Table, at: bytes) -> Iterator[Found]:
        """The cells and markers of a row; places follow from them."""
        for family in table.families:
            walk = self.engine.cursor(space(table.name, family)).walk(at, at + AFTER)
            for key, entry in walk:
                if len(entry) > TIME_BYTES:
                    yield family, key, entry

    def _take(self, step: MergeState) -> StateMerged:
        table, at, record = self._row(step)
        merge = StateMerge(table.shapes, table.spaces, at, step.state)
        found = {
            family: self.engine.get(table.spaces[family], keys) for family, keys in merge.wanted()
        }
        everything = list(self._entries_of(table, at)) if merge.replaces(record) else ()
        sealed = self.sealed[on_ring(step.key, table.kind)]
        outcome = merge.admit(record, found, everything, sealed)
        if not isinstance(outcome, MutationAdmitted):
            return StateMerged(wants_whole=True)
        self.apply_admitted(table.name, at, record, outcome)
        return StateMerged()

    def _fence(self, step: PromiseFence) -> StateRead:
        table, at, record = self._row(step)
        is_same = (record.fence, record.journal) == (step.number, step.journal)
        state = self._state(step)
        if state is None:
            return _told(None)
        refused = None
        if not may_write(step.number, step.journal, record) or (
            is_same and step.attempt <= record.promised
        ):
            refused = Outranked(record.fence, record.journal)
        else:
            after = msgspec.structs.replace(
                record, fence=step.number, journal=step.journal, promised=step.attempt
            )
            batch: list[Entry] = [(rows_space(table.name), at, stored(after))]
            batch.append(self._promised_once_more())
            self.apply(table.name, at, batch, record, after)
            self.promises += 1
            state = msgspec.structs.replace(state, fence=after.fence, journal=after.journal)
        return StateRead(state=state, refused=refused)

    # --- ranges ---

    def _list(self, step: ListRows) -> RowsListed:
        table = self.tables[step.table]
        lower, upper = bounds(step.range, table)
        walk = self.engine.cursor(rows_space(table.name)).walk(
            max(lower, step.after + b"\0") if step.after else lower, upper
        )
        found, is_all = listed(walk)
        rows = tuple((at, row_print(record_of(kept)).to_bytes(SUM_BYTES)) for at, kept in found)
        horizons = self.horizons.within(step.range)
        return RowsListed(rows=rows, is_all=is_all, horizons=horizons)

    def _list_places(self, step: ListPlaces) -> RowsListed:
        sums = self.range_sums
        rows, is_all = sums.rows(step.table, step.range, step.places, step.after)
        return RowsListed(rows=tuple(rows), is_all=is_all)

    def _list_keys(self, step: ListKeys) -> KeysListed:
        cursor = self.engine.cursor(rows_space(step.table))
        walk = cursor.walk(step.lower, step.upper, reverse=step.reverse)
        found, is_all = listed(walk)
        return KeysListed(positions=tuple(at for at, _ in found), is_all=is_all)

    def _promise(self, step: PromiseHorizon) -> HorizonPromised:
        raised = self.horizons.raised([RangeHorizon(step.range, step.time, 0)])
        self.engine.apply([*raised, self._promised_once_more()])
        self.horizons.load()
        self.promises += 1
        return HorizonPromised(time=step.time)

    def count_once_more(self) -> None:
        """Raise the counter, without a promise."""
        self.engine.apply([self._promised_once_more()])
        self.promises += 1

    def _promised_once_more(self) -> Entry:
        return META, _PROMISES, str(self.promises + 1).encode()

    def _seal(self, step: SealHorizon) -> HorizonPromised:
        self.engine.apply(self.horizons.raised([RangeHorizon(step.range, step.time, step.time)]))
        self.horizons.load()
        return HorizonPromised(time=step.time)

    # --- copies ---

    def _read_piece(self, step: ReadPiece) -> PieceRead:
        rows, is_all = piece_of(self.engine, self.tables, step)
        mark = step.mark if is_all else CopyMark(rows[-1].table, rows[-1].at)
        horizons = self.horizons.within(step.range)
        return PieceRead(
            rows=msgspec.msgpack.encode(rows), mark=mark, is_all=is_all, horizons=horizons
        )

    def _take_piece(self, step: TakePiece) -> TaskDone:
        filling = self.filling.with_part(step.number, step.part)
        batch, changes = taken(rows_of(step.rows))
        # One batch: rows that are there count as copied, and are never copied twice (R17).
        batch.append((META, _FILLING, msgspec.msgpack.encode(filling)))
        batch.extend(self.horizons.raised(step.horizons))
        self.apply_rows(batch, changes)
        self.horizons.load()
        self.filling = filling
        return TaskDone()

    def _wipe(self, step: WipeRange) -> TaskDone:
        batch, changes, is_all = wiped(self.engine, self.tables, step.range)
        if is_all:  # what was promised for these rows goes with the last of them
            batch.extend(self.horizons.forgotten(step.range))
        self.apply_rows(batch, changes)
        self.horizons.load()
        return TaskDone(is_all=is_all)

    def _compare(self, step: CompareRows) -> tuple[Key, ...]:
        table = self.tables[step.table]
        places = [at for at, _ in step.rows]
        kept = self.engine.get(rows_space(step.table), places) if places else []
        return tuple(
            row_key(at, table.kind)[0]
            for (at, digest), found in zip(step.rows, kept, strict=True)
            if found is None or row_print(record_of(found)) != int.from_bytes(digest)
        )

    # --- upkeep ---

    def _read_sums(self, step: ReadSums) -> SumsRead:
        sums = self.range_sums.read(step.table, step.range, step.place)
        if sums is None:
            return SumsRead(is_known=False)
        return SumsRead(sums=b"" if digest_of_sums(sums) == step.digest else sums)

    def _find_doomed(self, step: FindDoomed) -> DoomedFound:
        until = self._clock() - self._lag_us
        tables = self.tables.values() if until > 0 else ()
        return DoomedFound(
            time=max((doomed_within(self, each, step.range, until) for each in tables), default=0)
        )

    def _weigh(self, step: WeighRows) -> RowsWeighed:
        if not self._weighings:
            self._sizes = {}
            self._weighings = [
                row_sample(self.engine, table, self._sizes) for table in self.tables.values()
            ]
        is_all = _some_steps(self._weighings)
        return RowsWeighed(self._sizes if is_all else {}, is_all)

    def _sweep(self, step: SweepSome) -> TaskDone:
        """Sweep some; the next step continues where this one ends."""
        if not self._sweeps:
            self.horizon = max(time for _, time in self.sealed)
            self._sweeps = [Sweep(self, table).steps() for table in self.tables.values()]
        return TaskDone(_some_steps(self._sweeps))


def counter_of(engine: StorageEngine) -> int:
    """How often the counter of a store was raised in all its lives (R26)."""
    [kept] = engine.get(META, [_PROMISES])
    return int(kept or 0)


def _some_steps(left: list[Steps[int]]) -> bool:
    """Take one step of the last of them; return whether all of them are over."""
    while left:
        try:
            next(left[-1])
        except StopIteration:
            left.pop()
        else:
            return False
    return True


def is_change(step: Step) -> bool:
    return step.changes if isinstance(step, Task) else TERMS[type(step)].changes


def _told(state: RowState | None) -> StateRead:
    return StateRead(state=state or RowState(), is_larger=state is None)
