"""A replica of a cluster: carries out the steps that a node's machine asks for, over an engine.

Everything here is one step: it reads, lets `protocol/replication` decide, and writes one batch. The
horizons of such a replica differ by range, because seals do.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import msgspec

from tenure.base.keys import Key
from tenure.columns.engines.contract import Entry, StorageEngine
from tenure.columns.node_copies import NodeCopies, bounds
from tenure.columns.range_horizons import RangeHorizons
from tenure.columns.range_sums import RangeSums, place_entry, places_space
from tenure.columns.replica import EMPTY, META, Replica, RowChange
from tenure.columns.requests import RowMutation
from tenure.columns.row_sample import row_sample
from tenure.columns.row_states import entries_of, parts_of, state_of
from tenure.columns.spaces import HINTS, rows_space
from tenure.columns.sweeping import Sweep, doomed_within
from tenure.columns.tables import Table, table_of
from tenure.protocol.replication.admission import (
    MutationAdmitted,
    Outranked,
    may_write,
)
from tenure.protocol.replication.copies import RangeHorizon
from tenure.protocol.replication.layout import position, row_key
from tenure.protocol.replication.merging import StateMerge
from tenure.protocol.replication.pages import Steps, of_a_step
from tenure.protocol.replication.records import record_of, stored
from tenure.protocol.replication.steps import (
    ApplyMutation,
    BeginFilling,
    BuildSums,
    CompareRows,
    DoomedFound,
    DropHint,
    FindDoomed,
    FollowRanges,
    HintKept,
    HintsRead,
    HorizonRaised,
    KeepHint,
    KeysListed,
    ListKeys,
    ListPlaces,
    ListRows,
    MutationDone,
    PartsRead,
    RaisePromised,
    RaiseRowFence,
    RaiseSealed,
    RangesFollowed,
    ReadHints,
    ReadParts,
    ReadPiece,
    ReadState,
    ReadSums,
    RowsListed,
    RowsWeighed,
    StateRead,
    StateTaken,
    Step,
    StepResult,
    SumsBuilt,
    SumsRead,
    SweepSome,
    Swept,
    TakePiece,
    TakeState,
    WeighRows,
    WipeRange,
)
from tenure.protocol.replication.sums import SUM_BYTES, row_print
from tenure.protocol.topology.records import Position
from tenure.protocol.topology.ring import position as on_ring

LISTED_ROWS = 1_000
"""The most rows in one answer."""
_PROMISES = b"promises"
_CHANGING = frozenset(
    (
        ApplyMutation,
        TakeState,
        RaiseRowFence,
        RaisePromised,
        RaiseSealed,
        WipeRange,
        BeginFilling,
        TakePiece,
        BuildSums,
        SweepSome,
    )
)


class NodeReplica(Replica):
    """See above."""

    def __init__(self, engine: StorageEngine, clock: Callable[[], int]) -> None:
        super().__init__(engine)
        self._clock = clock
        self.tables: dict[str, Table] = {}
        self.copies = NodeCopies(self)
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
        self._steps: dict[type, Callable[[Any], StepResult]] = {
            ApplyMutation: self._apply,
            ReadParts: self._parts,
            ReadState: self._state,
            TakeState: self._take,
            RaiseRowFence: self._fence,
            ListRows: self._list,
            ListKeys: self._list_keys,
            FollowRanges: self._follow,
            BuildSums: self._build,
            ReadSums: self._read_sums,
            ListPlaces: self._list_places,
            FindDoomed: self._find_doomed,
            SweepSome: self._sweep,
            WeighRows: self._weigh,
            KeepHint: self._keep_hint,
            DropHint: self._drop_hint,
            ReadHints: self._read_hints,
            RaisePromised: self._promise,
            RaiseSealed: self._seal,
            WipeRange: self.copies.wipe,
            BeginFilling: self.copies.begin,
            ReadPiece: self.copies.read,
            TakePiece: self.copies.take,
            CompareRows: self.copies.compare,
        }

    def load(self) -> None:
        """Load what was there before. Call it after `open`."""
        self.tables = {name: table_of(name, record) for name, record in self.records.items()}
        self.copies.load()
        self.horizons.load()
        self.engine.make_spaces([*map(places_space, self.tables), HINTS])
        self.range_sums.load({name: table.kind for name, table in self.tables.items()})
        self.promises = counter_of(self.engine)

    def _load_sums(self, table: str) -> None:
        """A replica of a cluster has no sums of whole tables."""

    def run(self, step: Step) -> tuple[StepResult, int]:
        """Do the task; return its result, and how often the store has been changed."""
        kind = type(step)
        result = self._steps[kind](step)
        if kind in _CHANGING:
            self.changes += 1
        return result, self.changes

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

    def _apply(self, step: ApplyMutation) -> MutationDone:
        mutation = RowMutation(self.tables[step.table], step.key, step.edits)
        return MutationDone(self.write(mutation, step.attempt, self._clock()))

    def _parts(self, step: ReadParts) -> PartsRead:
        return parts_of(self, step)

    def _state(self, step: ReadState) -> StateRead:
        return StateRead(state_of(self, self.tables[step.table], step.key))

    def _take(self, step: TakeState) -> StateTaken:
        table = self.tables[step.table]
        at = position(step.key, table.kind)
        merge = StateMerge(table.shapes, table.spaces, at, step.state)
        found = {
            family: self.engine.get(table.spaces[family], keys) for family, keys in merge.wanted()
        }
        record = self.record(table, at)
        everything = list(entries_of(self, table, at)) if merge.replaces(record) else ()
        sealed = self.sealed[on_ring(step.key, table.kind)]
        outcome = merge.admit(record, found, everything, sealed)
        if not isinstance(outcome, MutationAdmitted):
            return StateTaken(wants_whole=True)
        self.apply_admitted(table.name, at, record, outcome)
        return StateTaken()

    def _fence(self, step: RaiseRowFence) -> StateRead:
        table = self.tables[step.table]
        at = position(step.key, table.kind)
        record = self.record(table, at)
        is_same = (record.fence, record.journal) == (step.number, step.journal)
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
        return StateRead(state_of(self, table, step.key), refused)

    # --- ranges ---

    def _list(self, step: ListRows) -> RowsListed:
        table = self.tables[step.table]
        lower, upper = bounds(step.range, table)
        walk = self.engine.cursor(rows_space(table.name)).walk(
            max(lower, step.after + b"\0") if step.after else lower, upper
        )
        rows = tuple(
            (at, row_print(record_of(kept)).to_bytes(SUM_BYTES))
            for at, kept in islice(walk, LISTED_ROWS + 1)
        )
        horizons = self.horizons.within(step.range)
        return RowsListed(rows[:LISTED_ROWS], len(rows) <= LISTED_ROWS, horizons)

    def _list_keys(self, step: ListKeys) -> KeysListed:
        cursor = self.engine.cursor(rows_space(step.table))
        walk = cursor.walk(step.lower, step.upper, reverse=step.reverse)
        positions = tuple(at for at, _ in islice(walk, LISTED_ROWS + 1))
        return KeysListed(positions[:LISTED_ROWS], is_all=len(positions) <= LISTED_ROWS)

    def _promise(self, step: RaisePromised) -> HorizonRaised:
        raised = self.horizons.raised([RangeHorizon(step.range, step.time, 0)])
        self.engine.apply([*raised, self._promised_once_more()])
        self.horizons.load()
        self.promises += 1
        return HorizonRaised(step.time)

    def count_once_more(self) -> None:
        """Raise the counter, without a promise."""
        self.engine.apply([self._promised_once_more()])
        self.promises += 1

    def _promised_once_more(self) -> Entry:
        return META, _PROMISES, str(self.promises + 1).encode()

    def _seal(self, step: RaiseSealed) -> HorizonRaised:
        self.engine.apply(self.horizons.raised([RangeHorizon(step.range, step.time, step.time)]))
        self.horizons.load()
        return HorizonRaised(step.time)

    # --- hints ---

    def _keep_hint(self, step: KeepHint) -> HintKept:
        self.engine.apply([(HINTS, step.key, step.hint)])
        return HintKept()

    def _drop_hint(self, step: DropHint) -> HintKept:
        self.engine.apply([(HINTS, step.key, None)])
        return HintKept()

    def _read_hints(self, step: ReadHints) -> HintsRead:
        found, is_all = of_a_step(self.engine.cursor(HINTS).walk(step.after + b"\0", None))
        return HintsRead(tuple(found), is_all)

    # --- upkeep ---

    def _follow(self, step: FollowRanges) -> RangesFollowed:
        kinds = {name: table.kind for name, table in self.tables.items()}
        self.range_sums.follow(kinds, step.ranges)
        return RangesFollowed()

    def _build(self, step: BuildSums) -> SumsBuilt:
        del step
        return SumsBuilt(self.range_sums.build())

    def _read_sums(self, step: ReadSums) -> SumsRead:
        return SumsRead(self.range_sums.read(step.table, step.range, step.place))

    def _list_places(self, step: ListPlaces) -> RowsListed:
        return RowsListed(
            tuple(self.range_sums.rows(step.table, step.range, step.places)), is_all=True
        )

    def _find_doomed(self, step: FindDoomed) -> DoomedFound:
        until = self._clock() - step.lag_us
        tables = self.tables.values() if until > 0 else ()
        return DoomedFound(
            max((doomed_within(self, each, step.range, until) for each in tables), default=0)
        )

    def _weigh(self, step: WeighRows) -> RowsWeighed:
        """Weigh some rows; see `_sweep`."""
        del step
        if not self._weighings:
            self._sizes = {}
            self._weighings = [
                row_sample(self, table, self._sizes) for table in self.tables.values()
            ]
        is_all = _some_steps(self._weighings)
        return RowsWeighed(self._sizes if is_all else {}, is_all)

    def _sweep(self, step: SweepSome) -> Swept:
        """Sweep some; the next step continues where this one ends."""
        del step
        if not self._sweeps:
            self.horizon = max(time for _, time in self.sealed)
            self._sweeps = [Sweep(self, table).steps() for table in self.tables.values()]
        return Swept(_some_steps(self._sweeps))


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
