"""Whoever reads a log, and stops reading, holds up neither a command nor a thread with leases."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from threading import Event

import pytest

from tenure.runtime.log_thread import LINES_KEPT, LineHandler
from tenure.runtime.loops import OwnThread

MANY = 5 * LINES_KEPT
DEADLINE_SECONDS = 20.0
COMMAND = """
import logging
from tenure.cli.long_run import log_to_standard_error
log_to_standard_error("info", "text")
for number in range(5000):
    logging.getLogger("tenure.manager").info("line %05d of what nobody reads", number)
print("goes on", flush=True)
"""


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger("tenure.tests of logs")
    found.propagate = False
    found.setLevel(logging.INFO)
    yield found
    found.handlers.clear()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reads, writes = os.pipe()
    yield reads, writes
    os.close(writes)
    os.close(reads)


def test_a_line_is_there_when_whoever_says_it_goes_on(
    logger: logging.Logger, pipe: tuple[int, int]
) -> None:
    reads, writes = pipe
    os.set_blocking(reads, False)
    logger.addHandler(LineHandler(writes))
    logger.info("%s is here", "ann")
    assert os.read(reads, 100) == b"ann is here\n"


def test_what_nobody_reads_holds_up_nobody_and_what_is_lost_is_counted(
    logger: logging.Logger, pipe: tuple[int, int]
) -> None:
    reads, writes = pipe
    handler = LineHandler(writes)
    logger.addHandler(handler)
    for number in range(MANY):
        logger.info("%0100d", number)
    text = b""
    while b"were not kept" not in text:
        text += os.read(reads, 1 << 16)
    *kept, told = text.decode().splitlines()
    assert [int(each) for each in kept] == list(range(len(kept))), "in order, from the first"
    assert LINES_KEPT < len(kept) < MANY
    assert told == f"{MANY - len(kept)} lines of the log were not kept, because nobody read it"
    logger.info("read again")
    assert os.read(reads, 100) == b"read again\n"


def test_a_command_goes_on_and_ends_while_nobody_reads_its_log() -> None:
    command = [sys.executable, "-c", COMMAND]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            process.wait(DEADLINE_SECONDS)
        finally:
            process.kill()
        assert process.stdout is not None
        assert process.stdout.read() == b"goes on\n"
    assert process.returncode == 0


class Stuck(logging.Handler):
    """Waits, as one that writes to a full pipe."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on, self.has_all = Event(), Event()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.may_go_on.wait()
        self.said.append(record.getMessage())
        if self.said[-1] == "the last":
            self.has_all.set()


@pytest.mark.parametrize("name", ["tenure.owner", "tenure.transport", "asyncio"])
def test_a_handler_that_is_stuck_holds_up_no_thread_that_keeps_leases(name: str) -> None:
    stuck, said = Stuck(), ["one", "two", "the last"]

    async def renewing() -> None:
        for each in said:
            logging.getLogger(name).warning(each)

    root = logging.getLogger()
    root.addHandler(stuck)
    try:
        OwnThread().run(renewing(), "an owner").result(DEADLINE_SECONDS)
        assert stuck.said == []
        stuck.may_go_on.set()
        assert stuck.has_all.wait(DEADLINE_SECONDS)
        assert stuck.said == said
    finally:
        stuck.may_go_on.set()
        root.removeHandler(stuck)
