"""Carries one range from this owner to another."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import assert_never

from tenure.base.instants import Instant, in_seconds
from tenure.client.environment import Environment
from tenure.client.hand_off.application import Application
from tenure.client.hand_off.handler import Mark
from tenure.client.hand_off.line import Line
from tenure.protocol.lease.owner.giving import (
    ChunkMade,
    EndServing,
    Export,
    ExportBegun,
    FailGiving,
    Giving,
    GivingAction,
    HaveGiven,
    MakeChunk,
    PeerReached,
    Reach,
    Settle,
    Settled,
    Withdraw,
)
from tenure.protocol.lease.owner.transfer import HangUp, Listen, PeerLost, Say
from tenure.transport.channels import Channels
from tenure.wire.hand_off import decode_to_source


class GivingLine(Line):
    """Carries one order out; `report` hears EndServing, HaveGiven or FailGiving."""

    def __init__(
        self,
        giving: Giving,
        environment: Environment,
        channels: Channels,
        application: Application,
        report: "Callable[[GivingLine, EndServing | HaveGiven | FailGiving | Withdraw], None]",
    ) -> None:
        super().__init__(giving, environment.clock, environment.timers(), decode_to_source)
        self.order = giving.order
        self._channels = channels
        self._application = application
        self._report = report
        self._clock = environment.clock
        self._is_settling = self._has_settled = False
        self._mark: Mark | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    def act(self, action: GivingAction) -> None:
        match action:
            case Reach(address=address):
                self.begin(partial(self._reach, address), PeerLost)
            case Export():
                self.call(self._export)
            case MakeChunk(is_urgent=is_urgent):
                self.call(partial(self._make_chunk, is_urgent=is_urgent))
            case Settle(deadline=deadline):
                self._is_settling = True
                self.call(partial(self._settle, deadline))
            case EndServing():
                if self._is_settling and not self._has_settled:
                    self._application.say_unsettled(self.order.range)
                self._report(self, action)
            case HaveGiven() | FailGiving() | Withdraw():
                if isinstance(action, HaveGiven):
                    self.outcome = "given"
                elif isinstance(action, FailGiving):
                    self.outcome = f"failed: {action.why}"
                self._report(self, action)
            case Say() | Listen() | HangUp():
                raise AssertionError(action)
            case _:
                assert_never(action)

    def give_up(self, why: str) -> None:
        self._report(self, FailGiving(why))

    async def _reach(self, address: str) -> None:
        self.attach(await self._channels.connect(address))
        self.post(PeerReached())

    async def _export(self) -> ExportBegun:
        exported = self._application.export(self.order.range, self._mark)
        self._mark, self._chunks = await exported
        return ExportBegun()

    async def _make_chunk(self, *, is_urgent: bool) -> ChunkMade:
        assert self._chunks is not None
        following = self._application.next_of(self._chunks, is_urgent=is_urgent)
        return ChunkMade(await asyncio.wrap_future(following))

    async def _settle(self, deadline: Instant) -> Settled:
        seconds = max(in_seconds(deadline - self._clock()), 0.0)
        await self._application.settle(self.order.range, seconds)
        self._has_settled = True
        return Settled()

    def clean_up(self) -> None:
        """See `Line.clean_up`. The application no longer exports the range."""
        if self._is_settling:
            self._application.resume(self.order.range)
        self._mark = None
        if self._chunks is not None:
            self._application.close(self._chunks)
