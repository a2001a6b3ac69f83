"""Carries one range from another owner to this one."""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from tenure.client.environment import Environment
from tenure.client.hand_off.application import Application, Arrival
from tenure.client.hand_off.line import Line
from tenure.client.read_leases import GivesReads
from tenure.errors import RemoteProtocolError
from tenure.protocol.lease.limits import STATE_BYTES
from tenure.protocol.lease.owner.taking import (
    AskToAdmit,
    AskToKeep,
    Clear,
    Cleared,
    EndTaking,
    TakeIn,
    TakeWrites,
    Taking,
    TakingAction,
    TookIn,
    TurnedAway,
)
from tenure.protocol.lease.owner.transfer import Chunk, HangUp, Listen, PeerErred, Say
from tenure.wire.hand_off import decode_to_taker


class TakingLine(Line):
    """Carries what comes on one channel; `report` hears AskToAdmit, AskToKeep and EndTaking."""

    def __init__(
        self,
        number: int,
        peer: str,
        environment: Environment,
        application: Application,
        report: "Callable[[TakingLine, AskToAdmit | AskToKeep | EndTaking], None]",
        reads: GivesReads | None = None,
        most_bytes: int = STATE_BYTES,
    ) -> None:
        machine = Taking(gives_reads=reads is not None, most_bytes=most_bytes)
        super().__init__(machine, environment.clock, environment.timers(), decode_to_taker)
        self._reads = reads
        self.number = number
        self.peer = peer
        self.is_admitted = False
        self._gives_way = False
        self.arrival: Arrival | None = None
        """The offer, once it has come."""
        self._application = application
        self._report = report

    def act(self, action: TakingAction) -> None:
        match action:
            case AskToAdmit(offer=offer):
                self.arrival = Arrival(offer.range, offer.number)
                self._report(self, action)
            case AskToKeep() | EndTaking():
                if isinstance(action, EndTaking):
                    self.outcome = f"failed: {action.why}"
                self._report(self, action)
            case Clear():
                self.call(self._clear)
            case TakeIn(chunk=chunk):
                self.call(partial(self._take_in, chunk))
            case TakeWrites(data=data):
                self._take_writes(data)
            case Say() | Listen() | HangUp():
                raise AssertionError(action)
            case _:
                assert_never(action)

    @property
    def is_past_admission(self) -> bool:
        """Whether it was admitted, or is not waited for any longer."""
        return self.is_admitted or self._gives_way

    def give_way(self) -> None:
        """End the channel, on which nothing was offered, for another."""
        self._gives_way = True
        self.post(TurnedAway("others have come, and nothing was offered here"))

    def give_up(self, why: str) -> None:
        self._report(self, EndTaking(why))

    def clean_up(self) -> None:
        """See `Line.clean_up`. The owner's machine decides whether to keep what arrived."""

    def _take_writes(self, data: bytes) -> None:
        assert self.arrival is not None
        assert self._reads is not None
        try:
            self._reads.take_writes(self.arrival.range, self.arrival.number, data)
        except RemoteProtocolError as error:
            self.post(PeerErred(str(error)))

    async def _clear(self) -> Cleared:
        assert self.arrival is not None
        await self._application.begin(self.arrival)
        return Cleared()

    async def _take_in(self, chunk: Chunk) -> TookIn:
        assert self.arrival is not None
        await self._application.take(self.arrival, chunk.data, is_urgent=chunk.is_urgent)
        return TookIn()
