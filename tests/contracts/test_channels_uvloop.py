"""The same promises of channels over WebSocket, in an application that runs uvloop."""

import asyncio
import inspect

import pytest

from tenure.transport.websocket_channels import WebSocketChannels
from tests.contracts import test_channels
from tests.patience import DEADLINE_SECONDS

uvloop = pytest.importorskip("uvloop")

PROMISES = [
    name
    for name, test in vars(test_channels).items()
    if name.startswith("test_") and [*inspect.signature(test).parameters] == ["make"]
]


def test_there_are_promises() -> None:
    assert len(PROMISES) > 3


@pytest.mark.parametrize("name", PROMISES)
def test_what_channels_promise_holds_with_uvloop(name: str) -> None:
    test = getattr(test_channels, name)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(test(WebSocketChannels), DEADLINE_SECONDS))
