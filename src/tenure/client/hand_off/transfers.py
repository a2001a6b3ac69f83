"""Carries all hand-offs of one owner, given and taken, several at once, in a loop of their own.

A thread beside the one that renews sends and receives state, so that moving gigabytes costs no
lease. Nothing is decided here: the owner's machine says what is to move and what is admitted, and
`Giving` and `Taking` say what to send on each channel.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import NamedTuple

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.client.environment import Environment
from tenure.client.hand_off.application import NOT_WANTED, Application
from tenure.client.hand_off.giving import GivingLine
from tenure.client.hand_off.line import Line
from tenure.client.hand_off.taking import TakingLine
from tenure.client.read_leases import GivesReads
from tenure.errors import ConfigurationError
from tenure.observe.tracing import span
from tenure.protocol.lease.limits import STATE_BYTES
from tenure.protocol.lease.messages import HandOff, Leased
from tenure.protocol.lease.owner.admission import Unadmitted, which_gives_way
from tenure.protocol.lease.owner.events import (
    Admit,
    ArrivalEnded,
    CopiedAhead,
    HandedOver,
    HandOffFailed,
    Holdings,
    Imported,
    Keep,
    OfferMade,
    OwnerEvent,
    TurnAway,
)
from tenure.protocol.lease.owner.giving import (
    EndServing,
    FailGiving,
    Giving,
    GivingStopped,
    HaveGiven,
    ServingEnded,
    Withdraw,
    Withdrawn,
)
from tenure.protocol.lease.owner.taking import (
    Admitted,
    AskToAdmit,
    AskToKeep,
    EndTaking,
    Kept,
    TurnedAway,
)
from tenure.protocol.lease.owner.transfer import NotTaken, Offer
from tenure.runtime.loops import LoopCalls, Runner
from tenure.transport.channels import Channel
from tenure.wire.hand_off import encode

NONE_OF_OURS = 0
REMEMBERED_FAILURES = 1024


class OwnerPort(NamedTuple):
    """The things that hand-offs need of their owner."""

    name: str
    pool: str
    environment: Environment
    counts: Counter[str]
    logger: logging.Logger
    post: Callable[[OwnerEvent], None]
    """Tell the owner's machine. From any thread."""
    reads: GivesReads | None = None
    """The read leases of caches, which are withdrawn before a range moves; None if the owner gives
    no read leases.
    """
    most_bytes: int = STATE_BYTES
    """The most state of a range that is taken."""


class Transfers:
    """Carries out an owner's hand-offs. Call it in the engine's loop, unless a method says
    otherwise.
    """

    def __init__(
        self, owner: OwnerPort, application: Application, listen: str, address: str | None
    ) -> None:
        self.application = application
        self._owner = owner
        self._channels = owner.environment.channels()
        self._listen, self._address = listen, address
        self._calls = LoopCalls()
        self._stopping: asyncio.Event | None = None
        self._givings: dict[HandOff, GivingLine] = {}
        self._takings: dict[int, TakingLine] = {}
        """The takings by channel; one that is admitted and not yet complete is in `_arriving` too.
        """
        self._arriving: dict[int, TakingLine] = {}
        self._numbers = count(1)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._journal = self._incarnation = 0
        self._handed: RangeMap[int] = RangeMap(NONE_OF_OURS)
        """The ranges whose state was served here and still is here, with their lease numbers."""
        self.settle_by: Instant = FAR_FUTURE
        """How long to wait for a range to settle, if the owner leaves."""
        self._said: dict[KeyRange, str] = {}
        """The last failure of each range, which is logged as a warning only once."""

    def know(self, holdings: Holdings) -> None:
        """Learn who the owner is to its manager."""
        self._journal, self._incarnation = holdings.journal, holdings.incarnation

    # --- living ---

    def start(self, runner: Runner) -> "Future[str]":
        """Start to listen; return the URL where state is taken."""
        url: Future[str] = Future()
        self._gone = runner.run(self._main(url), f"{self._owner.name} hand-off")
        return url

    async def stop(self) -> None:
        """Stop giving and taking."""
        self._calls.call(self._stop)
        await asyncio.wrap_future(self._gone)

    def _stop(self) -> None:
        assert self._stopping is not None
        self._stopping.set()

    async def _main(self, url: "Future[str]") -> None:
        self._stopping = asyncio.Event()
        try:
            try:
                listening = self._channels.listen(self._listen, self._serve, self._address)
                url.set_result(await listening)
            except (OSError, ValueError) as error:
                url.set_exception(_cannot_listen(self._listen, error))
                return
            self._calls.open()
            await self._stopping.wait()
        finally:
            self._calls.shut()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            await self._channels.close()

    def _post_to(self, line: Line, event: object) -> None:
        self._calls.call(lambda: line.post(event))

    def _is_said(self, key_range: KeyRange, why: str) -> bool:
        """Return whether this failure of the range was logged already; remember it."""
        if self._said.get(key_range) == why:
            return True
        if len(self._said) >= REMEMBERED_FAILURES:
            self._said.clear()
        self._said[key_range] = why
        return False

    # --- giving ---

    def begin(self, order: HandOff) -> None:
        offer = Offer(
            pool=self._owner.pool,
            journal=self._journal,
            start=order.start,
            end=order.end,
            number=order.number,
            source=self._incarnation,
            taker=order.taker,
            secret=order.secret,
        )
        line = GivingLine(
            Giving(order, offer, self._settle_ns(), gives_reads=self._owner.reads is not None),
            self._owner.environment,
            self._channels,
            self.application,
            self._on_giving,
        )
        self._givings[order] = line
        if not self._calls.call(lambda: self._start(line)):
            self._owner.post(HandOffFailed(order))

    def _settle_ns(self) -> int:
        now = self._owner.environment.clock()
        return max(min(self.application.settle_ns, self.settle_by - now), 0)

    def _start(self, line: GivingLine) -> None:
        task = asyncio.get_running_loop().create_task(self._give(line))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _give(self, line: GivingLine) -> None:
        order = line.order
        with span(
            "tenure.hand_off.give",
            lambda: {
                "tenure.pool": self._owner.pool,
                "tenure.range": str(order.range),
                "tenure.lease_number": order.number,
                "server.address": order.address,
            },
        ) as note:
            await line.run()
            note("tenure.outcome", line.outcome)

    def _on_giving(
        self, line: GivingLine, said: EndServing | HaveGiven | FailGiving | Withdraw
    ) -> None:
        """Carry out what a giving machine wants, in the transfers' loop."""
        order, counts = line.order, self._owner.counts
        if isinstance(said, Withdraw):
            assert self._owner.reads is not None
            self._owner.reads.withdraw(order, lambda: self._post_to(line, Withdrawn()))
            return
        if isinstance(said, EndServing):
            self._owner.post(CopiedAhead(order))
            return
        if self._givings.pop(order, None) is not line:
            return
        match said:
            case HaveGiven():
                counts["ranges handed over"] += 1
                self._said.pop(order.range, None)
                self._owner.logger.debug(
                    "%s has handed over %s to %s", self._owner.name, order.range, order.address
                )
                self._owner.post(HandedOver(order))
            case FailGiving(why=why):
                counts["hand-offs failed"] += 1
                level = logging.DEBUG if self._is_said(order.range, why) else logging.WARNING
                if why.endswith(NOT_WANTED):  # its taker leaves too, and the manager names another
                    level = min(level, logging.INFO)
                self._owner.logger.log(
                    level,
                    "%s could not hand over %s to incarnation %d at %s: %s",
                    self._owner.name,
                    order.range,
                    order.taker,
                    order.address,
                    why,
                    exc_info=line.error,
                )
                self._owner.post(HandOffFailed(order))
                if self._owner.reads is not None:
                    self._owner.reads.keep_serving(order)

    def send_last(self, order: HandOff) -> None:
        self._handed.assign(order.range, order.number)
        if self._owner.reads is None:
            self._send_last(order, ())
        else:
            self._owner.reads.hand_over(order, lambda writes: self._send_last(order, writes))

    def _send_last(self, order: HandOff, writes: tuple[bytes, ...]) -> None:
        line = self._givings.get(order)
        if line is None:
            self._owner.post(HandOffFailed(order))
        else:
            self._post_to(line, ServingEnded(writes))

    def stop_giving(self, order: HandOff) -> None:
        line = self._givings.pop(order, None)
        if line is not None:
            self._post_to(line, GivingStopped())

    # --- taking ---

    async def _serve(self, channel: Channel) -> None:
        """Serve a channel by which another owner has connected. Runs in the transfers' loop."""
        owner, peer = self._owner, channel.peer
        waiting = [line for line in self._takings.values() if not line.is_past_admission]
        unadmitted = [Unadmitted(line.peer, line.arrival is not None) for line in waiting]
        found = which_gives_way(unadmitted, peer)
        if isinstance(found, str):
            owner.counts["channels refused"] += 1
            await channel.send(encode(NotTaken(why=found)))
            return
        if found is not None:
            owner.counts["channels refused"] += 1
            waiting[found].give_way()
        number = next(self._numbers)
        line = TakingLine(
            *(number, peer, owner.environment, self.application, self._on_taking, owner.reads),
            owner.most_bytes,
        )
        self._takings[line.number] = line
        try:
            with span(
                "tenure.hand_off.take",
                lambda: {"tenure.pool": owner.pool, "client.address": peer},
            ) as note:
                await line.run(channel)
                note("tenure.outcome", line.outcome)
                if line.arrival is not None:
                    note("tenure.range", str(line.arrival.range))
        finally:
            del self._takings[line.number]
            owner.post(ArrivalEnded(line.number))

    def _on_taking(self, line: TakingLine, said: AskToAdmit | AskToKeep | EndTaking) -> None:
        """Carry out what a taking asks for. Runs in the transfers' loop."""
        owner = self._owner
        match said:
            case AskToAdmit(offer=offer):
                owner.post(OfferMade(line.number, offer))
            case AskToKeep():
                owner.post(Imported(line.number))
            case EndTaking(why=why, is_too_large=is_too_large):
                about = line.arrival.range if line.arrival else None
                is_fault = line.error is not None or is_too_large
                is_new = is_fault and not (about and self._is_said(about, why))
                owner.logger.log(
                    logging.ERROR if is_new else logging.DEBUG,
                    "%s takes no more of %s: %s",
                    owner.name,
                    about or "what was to be offered",
                    why,
                    exc_info=line.error if is_new else None,
                )
                owner.post(ArrivalEnded(line.number))

    def decide(self, decision: Admit | TurnAway | Keep) -> None:
        """Decide on the offer as the machine says."""
        channel, counts = decision.channel, self._owner.counts
        line = self._takings.get(channel)
        if line is None:
            return
        match decision:
            case Admit():
                line.is_admitted = True
                self._arriving[channel] = line
                self._post_to(line, Admitted())
            case Keep():
                self._arriving.pop(channel, None)
                counts["ranges taken over"] += 1
                line.outcome = "taken"
                self._post_to(line, Kept())
            case TurnAway(why=why):
                counts["offers refused"] += 1
                self._post_to(line, TurnedAway(why))

    # --- what becomes of state ---

    def forget(self, key_range: KeyRange, number: int, then: Callable[[], None]) -> None:
        """Discard the state of a range, as the lease of that number left it."""
        arrivals = []
        for channel, line in list(self._arriving.items()):
            arrival = line.arrival
            assert arrival is not None
            if arrival.number == number and arrival.range.overlaps(key_range):
                del self._arriving[channel]
                arrival.is_stopped = True
                arrivals.append(arrival)
                self._owner.counts["imports discarded"] += 1
                self._post_to(line, TurnedAway(NOT_WANTED))
        self._handed.assign(key_range, NONE_OF_OURS)
        self.application.discard([key_range], arrivals, then)

    def served_here(self, key_range: KeyRange, number: int) -> tuple[KeyRange, ...]:
        """Return where in the range the state of that number is what was served here."""
        return tuple(piece for piece, handed in self._handed.within(key_range) if handed == number)

    def granted(self, leases: tuple[Leased, ...]) -> None:
        """State of the ranges that is here, if any, is served again."""
        for lease in leases:
            self._handed.assign(lease.range, NONE_OF_OURS)


def _cannot_listen(where: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f'no state can be taken at {where}: {error}. Pass hand_off_listen="HOST:PORT" with an '
        "address of this host, port 0 for one that is free, and hand_off_address with the URL "
        "under which other owners reach it, where that is another"
    )
