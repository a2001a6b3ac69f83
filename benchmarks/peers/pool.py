"""Members of one system, as processes: started, told to leave, killed, stopped, cut off."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks._quick import sized
from benchmarks.peers.beliefs import PARTITIONS, Run, Span, holds, read, spans

PATIENCE_SECONDS = 120.0
QUIET_SECONDS = sized(10, 5) / 10


class Member:
    """One process, and what it believed."""

    def __init__(self, system: str, url: str, number: int, term: float, place: Path) -> None:
        self.name = f"member-{number}"
        self.log = place / self.name
        self.ended: float | None = None
        command = (sys.executable, "-m", "benchmarks.peers.holders", system, url, self.name)
        with (place / f"{self.name}.err").open("wb") as errors:
            self.process = subprocess.Popen(
                [*command, str(term), str(self.log)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def wait_until_in(self) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline(), f"{self.name} did not begin: {self.log}.err"

    def leave(self) -> None:
        """Tell it to."""
        assert self.process.stdin
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def send(self, number: signal.Signals) -> None:
        if number is signal.SIGKILL:
            self.ended = time.monotonic()
        os.kill(self.process.pid, number)

    def end(self) -> None:
        """Whatever happened."""
        self.process.kill()
        self.process.communicate()
        self.ended = self.ended or time.monotonic()

    def runs(self) -> list[Run]:
        return read(self.log)

    def spans(self, partition: int, end: float) -> list[Span]:
        return spans(self.runs(), partition, min(end, self.ended or end))

    def holds(self, partition: int) -> bool:
        return self.ended is None and holds(self.runs(), partition)


class Pool:
    """All members of one system."""

    def __init__(self, system: str, url: str, term: float, place: Path) -> None:
        self.system = system
        self.url = url
        self.term = term
        self.place = place
        self.all: list[Member] = []

    def __enter__(self) -> Self:
        self.place.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in self.all:
            member.end()

    @property
    def members(self) -> list[Member]:
        """Return the members that are alive."""
        return [each for each in self.all if each.ended is None]

    def start(self, count: int = 1, url: str = "") -> list[Member]:
        """Start this many more, all at once; the first makes the pool."""
        first = len(self.all)
        numbers = range(first, first + count)
        new = [Member(self.system, url or self.url, n, self.term, self.place) for n in numbers]
        self.all += new
        for member in new:
            member.wait_until_in()
        return new

    def leave(self, member: Member) -> None:
        """Tell one to leave, and wait until it has ended."""
        member.leave()
        member.process.wait(PATIENCE_SECONDS)
        member.ended = time.monotonic()

    def owners(self) -> list[list[str]]:
        """Return, for each partition, the members that say that they hold it."""
        said = {member.name: member.runs() for member in self.members}
        return [[name for name, runs in said.items() if holds(runs, n)] for n in range(PARTITIONS)]

    def settle(self, *, patience: float = PATIENCE_SECONDS) -> list[str]:
        """Wait until each partition has one owner, each member some, and nothing moves any more."""
        before, since = self.owners(), time.monotonic()
        deadline = since + patience
        while time.monotonic() < deadline:
            time.sleep(0.05)
            now = self.owners()
            if now != before or not self._is_whole(now):
                before, since = now, time.monotonic()
            elif time.monotonic() - since >= QUIET_SECONDS:
                return [one for [one] in now]
        raise AssertionError(f"{self.system} has not settled: {before}; see {self.place}")

    def _is_whole(self, owners: list[list[str]]) -> bool:
        names = {one for each in owners for one in each}
        return all(len(each) == 1 for each in owners) and len(names) == len(self.members)

    def seconds(
        self, of: Callable[[list[list[Span]], float, float], float], begin: float, end: float
    ) -> list[float]:
        """Return, for each partition, the seconds that `without` or `together` find."""
        return [
            of([member.spans(n, end) for member in self.all], begin, end) for n in range(PARTITIONS)
        ]
