"""A long reading gives way, to other tasks and to other threads."""

import asyncio
import time
from threading import Thread

from tenure.columns.backends.embedded import in_steps
from tenure.protocol.replication.row.pages import Steps

READINGS = 30
STEPS = 60
STEP_SECONDS = 0.001


def reading() -> Steps[str]:
    """Steps that need the interpreter, as those do that look at 512 tombstones."""
    for _ in range(STEPS):
        end = time.thread_time() + STEP_SECONDS
        while time.thread_time() < end:
            pass
        yield
    return "read"


def wakings_beside_a_reading() -> int:
    """How often a thread wakes that sleeps a millisecond at a time, while there is a reading."""
    found: list[str] = []
    thread = Thread(target=lambda: found.append(asyncio.run(in_steps(reading()))))
    thread.start()
    count = 0
    while thread.is_alive():
        time.sleep(0.001)
        count += 1
    assert found == ["read"]
    return count


def test_a_thread_runs_beside_long_readings() -> None:
    """It wakes at nearly each step. If the loop took the interpreter back at once, it would wake
    once or twice in some of the readings: in which is chance, so there are many.
    """
    counts = [wakings_beside_a_reading() for _ in range(READINGS)]
    assert min(counts) > STEPS / 6, counts
