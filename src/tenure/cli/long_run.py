"""The parts that long-running commands share: the loop, the handling of signals, and the output."""

import asyncio
import json
import logging
import resource
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from cyclopts import Parameter

from tenure.cli.output import put
from tenure.observe.json_log import JsonFormatter
from tenure.observe.text_log import TextFormatter
from tenure.runtime.log_thread import LineHandler

T = TypeVar("T")
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["text", "json"]
STANDARD_ERROR = 2
ENDING = (signal.SIGINT, signal.SIGTERM)
FILES_WHERE_UNLIMITED = 10_240
"""The limit of macOS in the cases in which it claims that there is none."""


def run_long(begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run what `begin` makes in the fastest event loop, with as many open files as are allowed."""
    _raise_file_limit()
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(begin())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # uvloop leaves its own, which then do nothing


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The fastest event loop that is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _raise_file_limit() -> None:
    """Allow as many open files as this user may have: every client is one, and 1,024 are few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WHERE_UNLIMITED if most == resource.RLIM_INFINITY else most
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def log_to_standard_error(level: LogLevel, form: LogFormat) -> None:
    """Send this process's log to standard error from here on."""
    handler = LineHandler(STANDARD_ERROR)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper())
    # It warns of every WebSocket with other protocols than ours, and shows all that it offers.
    logging.getLogger("aiohttp.websocket").setLevel(logging.ERROR)


def told_to_end() -> asyncio.Event:
    """Set by Ctrl-C, and by SIGTERM."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ENDING:
        loop.add_signal_handler(number, told.set)
    return told


async def until_one_ends(*works: Coroutine[Any, Any, object]) -> None:
    """Run these until one of them ends, and then no more of any. Raises what it raised."""
    tasks = [asyncio.create_task(each) for each in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)


@Parameter(name="*")
@dataclass(frozen=True)
class ReportOptions:
    """The options of what a long-running command reports."""

    log_level: LogLevel = "warning"
    "How much is logged, to standard error; warnings by default."
    log_format: LogFormat = "text"
    "text, or json: one object per line, with the event, its place and its cause as fields."
    json: Annotated[bool, Parameter(negative="")] = False
    "Report what happens as JSON, one object per line; the first has the URL."

    def log(self) -> None:
        """Begin to log."""
        log_to_standard_error(self.log_level, self.log_format)

    def tell(self, event: str, text: str, **known: object) -> None:
        """Tell what has happened: as `text`, or as an object in a line."""
        put(json.dumps({"event": event, **known}) if self.json else text)


BRIEF = ReportOptions()
"""Warnings are logged, and events are told as text."""
