"""A node's connection to the leading manager: the node says what it is, and learns the topology.

Each request is complete, and requests are repeated, so a lost one needs no care. A node that is
part of the ring needs no manager: it goes on by the topology that it has (R14).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from tenure.base.instants import Instant, in_seconds
from tenure.columns.node.node_directory import StorePutBack
from tenure.errors import ConfigurationError, TenureError
from tenure.observe.events import printable
from tenure.protocol.lease.messages import Standby
from tenure.protocol.topology.messages import NodeRefused, NodeRequest, TopologyTold
from tenure.protocol.topology.records import Topology
from tenure.runtime.clock import Clock, boot_clock
from tenure.transport.contract import Role, Transport
from tenure.wire.topology import ManagerToNode, decode_to_node, encode_topology

_log = logging.getLogger("tenure.columns")
NODE_ROLE: Role[ManagerToNode] = Role("/v1/node", decode_to_node, encode_topology)
ASK_SECONDS = 2.0
SILENT_SECONDS = 10.0
"""How long no manager that leads may say anything until the log says so: a takeover takes less."""
LOOK_SECONDS = 0.3
"""Seconds between two requests at least, whatever they are about."""


class MakesRequests(Protocol):
    def __call__(self, sequence: int, *, tells: bool) -> NodeRequest:
        """The request of that number; `tells` says whether it has the topology."""
        ...


class ManagerLink:
    """Asks managers, from `start` to `stop`. `fail` is called if the node may not take part."""

    def __init__(
        self,
        managers: Sequence[str],
        transport: Transport[ManagerToNode],
        request: MakesRequests,
        told: Callable[[Topology], None],
        fail: Callable[[Exception], None],
        clock: Clock = boot_clock,
    ) -> None:
        self._managers = list(managers)
        self._transport = transport
        self._request = request
        self._told = told
        self._fail = fail
        self._clock = clock
        self._sequence = 0
        self._at = 0
        self._leader = self._managers[0]
        self._asking: asyncio.Task[None] | None = None
        self._poked = asyncio.Event()
        self._answered = False
        self._is_wanted = False
        """Whether the manager wants to know the topology, because its journal was restored."""
        self._heeded = ("", 0), 0
        self.on_compare: Callable[[], None] = lambda: None
        self.on_numbers: Callable[[dict[str, int], Instant], None] = lambda _numbers, _asked_at: (
            None
        )
        """Called with the numbers of the next leases, and when the managers were asked."""
        self._asked_at = self._led_at = clock()
        """When a manager was asked last; when one that leads has last answered."""
        self._is_alone = False
        self._leads_not: dict[str, str] = {}
        """Why each manager does not lead this node, as far as is known."""
        self.on_may_leave: Callable[[], None] = lambda: None

    @property
    def leader(self) -> str:
        """The manager that is asked."""
        return self._leader

    def start(self) -> None:
        self._transport.start(self._on_said, self._on_lost)
        self._asking = asyncio.create_task(self._ask())

    async def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
            await self._transport.close()

    def poke(self) -> None:
        """Ask soon, because there is something to say."""
        self._poked.set()

    async def _ask(self) -> None:
        while True:
            self._sequence += 1
            self._answered = False
            request = self._request(self._sequence, tells=self._is_wanted)
            self._asked_at = self._clock()
            self._transport.send(self._leader, request)
            self._poked.clear()
            try:
                async with asyncio.timeout(ASK_SECONDS):  # `wait_for` may swallow a cancellation
                    await self._poked.wait()
            except TimeoutError:
                if not self._answered:
                    self._try_next()
            self._look()
            await asyncio.sleep(LOOK_SECONDS - in_seconds(self._clock() - self._asked_at))

    def _look(self) -> None:
        """Say once that no manager leads this node."""
        now = self._clock()
        if in_seconds(now - self._asked_at) > 2 * ASK_SECONDS:
            self._led_at = now  # this process stood still, and could hear nobody
        if self._is_alone or in_seconds(now - self._led_at) < SILENT_SECONDS:
            return
        self._is_alone = True
        why = {each: self._leads_not.get(each, "says nothing") for each in self._managers}
        _log.warning(
            "no manager that leads has answered this node for %g s. It asks %s. It goes on serving "
            "rows, but no table can be made, and the ring cannot change: do the managers run, and "
            "can they be reached from here?",
            SILENT_SECONDS,
            # A manager's own words, or those of whatever else listens there.
            printable(", ".join(f"{each} ({said})" for each, said in why.items())),
        )

    def _on_led(self, manager: str) -> None:
        self._led_at = self._clock()
        if self._is_alone:
            self._is_alone = False
            _log.warning("the manager at %s answers this node again", manager)

    def _try_next(self) -> None:
        self._at = (self._at + 1) % len(self._managers)
        self._leader = self._managers[self._at]

    def _on_said(self, manager: str, message: ManagerToNode) -> None:
        self._answered = True
        self._leads_not.pop(manager, None)
        match message:
            case TopologyTold(topology=topology):
                self._on_led(manager)
                self._heed(manager, message)
                if message.sequence == self._sequence:  # what came unasked may be older
                    self.on_numbers(message.numbers, self._asked_at)
                is_wanted_now = message.wanted and not self._is_wanted
                self._is_wanted = message.wanted
                if message.may_leave:
                    self.on_may_leave()
                if topology is not None:
                    self._told(topology)
                elif is_wanted_now:
                    self.poke()
            case NodeRefused():
                self._fail(refusal(message))
            case Standby(leader=leader):
                self._leads_not[manager] = "does not lead"
                if leader is not None and leader != manager:
                    self._leader = leader
                else:
                    self._try_next()
                self.poke()

    def _heed(self, manager: str, told: TopologyTold) -> None:
        """Each leader counts separately what it was told, so the first number that it says is
        nothing new.
        """
        leader = manager, told.leadership
        if leader == self._heeded[0] and told.compare > self._heeded[1]:
            self.on_compare()
        self._heeded = leader, told.compare

    def _on_lost(self, manager: str, why: str) -> None:
        _log.info("no connection to the manager at %s: %s", manager, why)
        self._leads_not[manager] = why
        if manager == self._leader:
            self._try_next()
            self.poke()


def refusal(refused: NodeRefused) -> TenureError:
    """The reason why a node may not take part, and what to do."""
    if refused.reason == "past":
        return StorePutBack(
            f"{refused.detail}. The directory was put back to an earlier state, or another process "
            "runs with it: have the node replaced by one with an empty directory, and keep this "
            "one until that is done"
        )
    return ConfigurationError(f"the manager refuses this node: {refused.detail}")
