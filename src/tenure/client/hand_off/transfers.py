"""All hand-offs of one owner: given and taken, several at once, in a loop of their own.

State is sent and received in a thread beside the one that renews, so that gigabytes on their way
cost no lease. What is to move, and whether what came counts, is the machine's to say: it is asked,
and told, in the engine's loop, where everything here is decided. The other thread only carries.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from tenure.base.rangemap import RangeMap
from tenure.base.ranges import KeyRange
from tenure.client.hand_off.application import Application
from tenure.client.hand_off.giving import Giving
from tenure.client.hand_off.taking import Taking, offered_by, refuse
from tenure.errors import ConfigurationError, RemoteProtocolError, TenureError
from tenure.protocol.lease.messages import HandOff, Leased
from tenure.protocol.lease.owner.events import (
    CopiedAhead,
    HandedOver,
    HandOffEvent,
    HandOffFailed,
    ImportBegan,
    Imported,
    ImportLost,
)
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.runtime.loops import LoopCalls, Runner
from tenure.transport.channels import Channel, Channels
from tenure.wire.hand_off import Offer

if TYPE_CHECKING:
    from tenure.client.owner_engine import OwnerEngine

T = TypeVar("T")

ARRIVING_AT_ONCE = 32
"""Ranges: a manager orders four of each owner, so eight owners may give to one at a time. More are
refused, and come later: each may have some chunks in memory."""
NONE_OF_OURS = 0
TRIES = 50
PAUSE_SECONDS = 0.02
"""A second in all: an offer of a range often meets what is left of an earlier one, whose source has
just been told to stop, or what is being discarded. It is gone in a moment, and an offer that is
refused comes again after a renewal's time only."""


class Transfers:
    """Carries out an owner's hand-offs. For the engine's loop, but where it says otherwise."""

    def __init__(
        self,
        engine: "OwnerEngine",
        application: Application,
        channels: Channels,
        listen: str,
    ) -> None:
        self.application = application
        self._engine = engine
        self._channels = channels
        self._listen = listen
        self._calls = LoopCalls()
        self._stopping: asyncio.Event | None = None
        self._givings: dict[HandOff, Giving] = {}
        self._takings: dict[Taking, None] = {}
        self._handed: RangeMap[int] = RangeMap(NONE_OF_OURS)
        """Where the state of a range is still here that was served here, and under which number."""

    @property
    def _machine(self) -> OwnerMachine:
        return self._engine.machine()

    @property
    def _counts(self) -> Counter[str]:
        return self._engine.counts

    @property
    def _log(self) -> logging.Logger:
        return self._engine.logger

    def _post(self, event: HandOffEvent) -> None:
        self._engine.driver.post(event)

    def _in_engine(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Do `work` in the engine's loop; for the transfers' own."""
        done: Future[T] = Future()

        def do() -> None:
            try:
                done.set_result(work())
            except Exception as error:  # noqa: BLE001  # whoever asked is told
                done.set_exception(error)

        if not self._engine.call(do):
            done.set_exception(TenureError("this owner is gone"))
        return asyncio.wrap_future(done)

    # --- living ---

    def start(self, runner: Runner) -> "Future[str]":
        """Listen; the URL where state is taken."""
        url: Future[str] = Future()
        self._gone = runner.run(self._main(url), f"{self._engine.name} hand-off")
        return url

    async def stop(self) -> None:
        """Give and take no more."""
        self._calls.call(self._stop)
        await asyncio.wrap_future(self._gone)

    def _stop(self) -> None:
        assert self._stopping is not None
        self._stopping.set()

    async def _main(self, url: "Future[str]") -> None:
        self._stopping = asyncio.Event()
        try:
            try:
                url.set_result(await self._channels.listen(self._listen, self._serve))
            except (OSError, ValueError) as error:
                url.set_exception(_cannot_listen(self._listen, error))
                return
            self._calls.open()
            await self._stopping.wait()
        finally:
            self._calls.shut()
            tasks = [giving.task for giving in list(self._givings.values()) if giving.task]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            await self._channels.close()

    # --- giving ---

    def begin(self, order: HandOff) -> None:
        """See `HandOver`."""
        belief = self._machine.belief
        offer = Offer(
            self._engine.config.pool,
            belief.journal,
            order.start,
            order.end,
            order.number,
            belief.incarnation,
            order.taker,
        )
        giving = Giving(order, offer, self.application, self._on_copied_ahead)
        self._givings[order] = giving
        self._calls.call(lambda: self._start(giving))

    def _start(self, giving: Giving) -> None:
        task = asyncio.get_running_loop().create_task(giving.run(self._channels))
        giving.task = task
        task.add_done_callback(lambda _: self._engine.call(lambda: self._on_given(giving)))

    def _on_copied_ahead(self, giving: Giving) -> None:
        """In the transfers' loop."""
        self._engine.call(lambda: self._end_belief(giving))

    def _end_belief(self, giving: Giving) -> None:
        if self._is_present(giving):
            self._post(CopiedAhead(giving.order))

    def _is_present(self, giving: Giving) -> bool:
        return self._givings.get(giving.order) is giving

    def _on_given(self, giving: Giving) -> None:
        if not self._is_present(giving):
            return
        del self._givings[giving.order]
        assert giving.task is not None
        error = _failure(giving.task)
        if error is None:
            self._counts["ranges handed over"] += 1
            self._log.debug(
                "%s has handed over %s to %s",
                self._engine.name,
                giving.order.range,
                giving.order.address,
            )
            self._post(HandedOver(giving.order))
            return
        self._counts["hand-offs failed"] += 1
        ours = not isinstance(error, TenureError)
        self._log.warning(
            "%s could not hand over %s to incarnation %d at %s: %s",
            self._engine.name,
            giving.order.range,
            giving.order.taker,
            giving.order.address,
            str(error) or type(error).__name__,
            exc_info=error if ours else None,
        )
        self._post(HandOffFailed(giving.order))

    def send_last(self, order: HandOff) -> None:
        """See `SendLast`."""
        self._handed.assign(order.range, order.number)
        giving = self._givings.get(order)
        if giving is None:
            self._post(HandOffFailed(order))
        else:
            self._calls.call(giving.may_end.set)

    def stop_giving(self, order: HandOff) -> None:
        """See `StopHandOver`."""
        giving = self._givings.pop(order, None)
        if giving is not None:
            self._calls.call(lambda: _cancel(giving))

    # --- taking ---

    async def _serve(self, channel: Channel) -> None:
        """In the transfers' loop: another owner has connected."""
        try:
            await self._take(channel)
        except (TenureError, TimeoutError) as error:
            self._log.debug("%s: a hand-off ended: %s", self._engine.name, error)
        except Exception:  # noqa: BLE001  # the application's: the library goes on
            self._log.exception("%s cannot take what is handed over", self._engine.name)

    async def _take(self, channel: Channel) -> None:
        try:
            offer = await offered_by(channel)
        except RemoteProtocolError as error:
            self._log.warning("%s was not offered state, but %s", self._engine.name, error)
            await refuse(channel, str(error))
            return
        taking = await self._admitted(offer, channel)
        if isinstance(taking, str):
            self._counts["offers refused"] += 1
            await refuse(channel, taking)
            return
        try:
            await taking.run(self.application, self._has_come)
        finally:
            self._engine.call(lambda: self._drop(taking))

    async def _admitted(self, offer: Offer, channel: Channel) -> Taking | str:
        """Accept an offer, if need be when what is in its way is gone; or why not."""
        taking: Taking | str = ""
        for _ in range(TRIES):
            taking = await self._in_engine(lambda: self._admit(offer, channel))
            if not isinstance(taking, str):
                break
            await asyncio.sleep(PAUSE_SECONDS)
        return taking

    def _admit(self, offer: Offer, channel: Channel) -> Taking | str:
        why = self._wrong_with(offer) or self._in_the_way_of(offer)
        if why:
            return why
        taking = Taking(offer, channel)
        self._takings[taking] = None
        self._post(ImportBegan(offer.range, offer.number))
        return taking

    def _wrong_with(self, offer: Offer) -> str | None:
        """What does not name this very owner, as it is now."""
        machine, pool = self._machine, self._engine.config.pool
        belief = machine.belief
        if offer.pool != pool:
            return f"this is an owner of the pool {pool!r}, not {offer.pool!r}"
        if offer.journal != belief.journal:
            return "this owner's manager has another journal"
        if offer.taker != belief.incarnation or machine.phase != "joined":
            return f"this is incarnation {belief.incarnation}, {machine.phase}, not {offer.taker}"
        return None

    def _in_the_way_of(self, offer: Offer) -> str | None:
        """What is here of the range already, or is arriving."""
        for taking in [each for each in self._takings if each.range.overlaps(offer.range)]:
            if taking.number < offer.number:
                self._drop(taking)  # of no use to anybody; what is newer is taken the next time
            return f"{taking.range} is arriving already, under number {taking.number}"
        if len(self._takings) >= ARRIVING_AT_ONCE:
            return f"{len(self._takings)} ranges are arriving already"
        return self._machine.possession.in_the_way_of(offer.range)

    def _has_come(self, taking: Taking) -> "asyncio.Future[bool]":
        return self._in_engine(lambda: self._on_whole(taking))

    def _on_whole(self, taking: Taking) -> bool:
        """The last of it is here: from now on the machine counts on it, if it still wants it."""
        if taking not in self._takings or self._wrong_with(taking.offer):
            return False
        del self._takings[taking]
        self._counts["ranges taken over"] += 1
        self._post(Imported(taking.range, taking.number))
        return True

    def _drop(self, taking: Taking) -> None:
        """Discard what came, unless all of it did, or that is under way already."""
        if taking not in self._takings:
            return
        self._counts["imports discarded"] += 1
        self._stop_taking(taking)
        lost = ImportLost(taking.range, taking.number)
        self.application.discard([taking.range], [taking], lambda: self._engine.post(lost))

    def _stop_taking(self, taking: Taking) -> None:
        del self._takings[taking]
        taking.is_stopped = True
        self._calls.call(lambda: _close(taking.channel))

    # --- what becomes of state ---

    def forget(self, key_range: KeyRange, number: int, then: Callable[[], None]) -> None:
        """Discard the state of a range, as the lease of that number left it."""
        arriving = [
            taking
            for taking in self._takings
            if taking.number == number and taking.range.overlaps(key_range)
        ]
        for taking in arriving:
            self._stop_taking(taking)
        self._handed.assign(key_range, NONE_OF_OURS)
        self.application.discard([key_range], arriving, then)

    def served_here(self, key_range: KeyRange, number: int) -> tuple[KeyRange, ...]:
        """Where in the range the state of that number is what was served here."""
        return tuple(piece for piece, handed in self._handed.within(key_range) if handed == number)

    def granted(self, leases: tuple[Leased, ...]) -> None:
        """What was here of them, if anything, is served again."""
        for lease in leases:
            self._handed.assign(lease.range, NONE_OF_OURS)


def _cancel(giving: Giving) -> None:
    if giving.task is not None:
        giving.task.cancel()


_closing: set[asyncio.Task[None]] = set()


def _close(channel: Channel) -> None:
    task = asyncio.get_running_loop().create_task(channel.close())
    _closing.add(task)  # or it might be collected before it is done
    task.add_done_callback(_closing.discard)


def _failure(task: "asyncio.Task[None]") -> BaseException | None:
    with suppress(asyncio.CancelledError):
        return task.exception()
    return TenureError("this owner leaves")


def _cannot_listen(where: str, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f'no state can be taken at {where}: {error}. Pass hand_off_listen="HOST:PORT" with an '
        "address of this host, port 0 for one that is free, and hand_off_address with the URL "
        "under which other owners reach it, where that is another"
    )
