"""What a node says of managers that do not answer it: once, at the level that people see."""

import asyncio
import logging
from collections.abc import Callable, Mapping

import pytest

from tenure.columns.node.manager_link import SILENT_SECONDS, ManagerLink
from tenure.protocol.lease.messages import Standby
from tenure.protocol.topology.messages import NodeRequest, TopologyTold
from tenure.protocol.topology.records import Node
from tenure.testing.clock import TurnedClock
from tenure.wire.topology import ManagerToNode
from tests.patience import DEADLINE_SECONDS

pytestmark = pytest.mark.asyncio
ANN, BOB = "http://ann:7400", "http://bob:7400"
TOLD = TopologyTold(journal=1, leadership=1, version=0)
STEP_SECONDS = SILENT_SECONDS / 4
STOPPED = "this process stood still for a minute, and the connection is gone"


class Managers:
    """Stands for the transport to two managers. Between two requests time passes."""

    def __init__(self, *script: Mapping[str, ManagerToNode | str]) -> None:
        """For each request, what the managers would answer: a message, or why the connection is
        lost. One that is not named says nothing.
        """
        self._script = list(script)
        self._is_over = asyncio.Event()
        self._clock = TurnedClock()
        self.link = ManagerLink((ANN, BOB), self, request, lambda _: None, _fail, self._clock)

    def start(
        self, deliver: Callable[[str, ManagerToNode], None], lost: Callable[[str, str], None]
    ) -> None:
        self._deliver, self._lost = deliver, lost

    def send(self, manager: str, _: object) -> None:
        asyncio.get_running_loop().call_soon(self._answer, manager)

    def _answer(self, manager: str) -> None:
        if not self._script:
            self._is_over.set()
            return
        answer = self._script.pop(0).get(manager)
        self._clock.jump(60 if answer == STOPPED else STEP_SECONDS)
        if isinstance(answer, str):
            self._lost(manager, answer)
        elif answer is not None:
            self._deliver(manager, answer)
        self.link.poke()

    async def close(self) -> None: ...

    async def play(self) -> None:
        self.link.start()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self._is_over.wait()
        await self.link.stop()


def request(sequence: int, *, tells: bool) -> NodeRequest:
    del tells
    node = Node(id=1, name="n1", address="", gossip="", token=b"")
    return NodeRequest(cluster="mail", node=node, life=1, sequence=sequence)


def _fail(error: Exception) -> None:
    raise error


async def test_managers_that_do_not_lead_are_said_once_and_their_return_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "tenure.columns")
    nobody: dict[str, ManagerToNode | str] = {ANN: "refused", BOB: Standby(leader=None)}
    both: dict[str, ManagerToNode | str] = {ANN: TOLD, BOB: TOLD}
    await Managers(*[nobody] * 20, *[both] * 20, *[nobody] * 20).play()
    alone, back, again = caplog.messages
    assert "no manager that leads has answered this node for 10 s" in alone
    assert f"{ANN} (refused), {BOB} (does not lead)" in alone
    assert back.endswith("answers this node again")
    assert again == alone


async def test_a_takeover_is_not_worth_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "tenure.columns")
    await Managers({ANN: TOLD}, {ANN: "killed"}, {ANN: "killed"}, *[{BOB: TOLD}] * 10).play()
    assert caplog.messages == []


async def test_what_each_manager_says_is_told_apart_and_begins_no_line_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A manager that is stopped says nothing, which is not the same as that it does not lead."""
    caplog.set_level(logging.WARNING, "tenure.columns")
    await Managers(*[{ANN: "closed (1000: bye\nERROR all is lost)"}] * 20).play()
    [line] = caplog.messages
    assert line.isprintable()
    assert f"{ANN} (closed (1000: bye" in line
    assert f"{BOB} (says nothing)" in line


async def test_a_node_that_stood_still_does_not_say_that_managers_did(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "tenure.columns")
    await Managers({ANN: TOLD}, {ANN: STOPPED}, *[{BOB: TOLD}] * 3).play()
    assert caplog.messages == []
