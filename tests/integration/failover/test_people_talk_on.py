"""The chat room of the guide, kept in a store and read everywhere: `tenure run --store` beside four
workers. People talk, whatever process is killed, and while a release with a new field is deployed;
at last everything is killed at once, the manager with it.

Everybody sends the next line when the last has come back, and sends it again after a cut unless it
is there. At the end each line is in the room, no more often than it was sent, in the order in which
everybody saw them; and no reading of any worker had not known a line that somebody had seen.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from tenure.cli.demo.ports import free_ports
from tests.integration.processes import command
from tests.integration.test_run import node_pid
from tests.patience import DEADLINE_SECONDS, blocking_until
from tests.repo.reading import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
PEOPLE = ("ann", "bob", "cleo")
START_SECONDS = 3 * DEADLINE_SECONDS
"""A store of three nodes, and four workers that each import FastAPI."""
CONNECT_SECONDS = 5.0
PAUSE_SECONDS, AGAIN_SECONDS = 0.5, 0.05
LINES = """
    @reading
    async def lines(self) -> list[str]:
        return self.state.last

"""
PAGE = """
@app.get("/rooms/{room}/lines")
async def lines(room: str) -> list[str]:
    return await rooms[room].lines()


"""
PEOPLE_PAGE = '@app.get("/rooms/{room}/people")'
CHANGES = (
    ('store="sqlite:rooms.db"', 'store="columns:", reads="everywhere"'),
    ("[-100:]", "[-10_000:]"),
    ("\n    @reading\n    async def people", f"{LINES}    @reading\n    async def people"),
    (f"\n{PEOPLE_PAGE}", f"{PAGE}{PEOPLE_PAGE}"),
)
"""The room of the guide, which shows its lines to everybody."""
RELEASE = (
    ("    last: list[str] = []\n", '    last: list[str] = []\n    topic: str = ""\n'),
    (
        "        line = f",
        "        self.state.topic = self.state.topic or text\n        line = f",
    ),
    ("return self.state.last\n", "return [self.state.topic, *self.state.last]\n"),
)
"""The topic of a room is what was said first in this release."""


def changed(text: str, changes: tuple[tuple[str, str], ...]) -> str:
    for before, after in changes:
        assert text.count(before) == 1, f"the guide's room has no longer {before!r}"
        text = text.replace(before, after)
    return text


class TalkedIn:
    """All processes of the room."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.program = changed((ROOT / "examples/chat.py").read_text(), CHANGES)
        self.deploy(self.program)
        [self.port], self._first_port = free_ports(1), free_ports(4)[0]
        self.log = place / "log"
        self.process = self.start()

    def deploy(self, program: str) -> None:
        (self.place / "chat.py").write_text(program)

    def start(self) -> "subprocess.Popen[bytes]":
        said = ("--store", "--data", str(self.place / "kept"), "--port", str(self._first_port))
        uvicorn = (sys.executable, "-m", "uvicorn", "chat:app", "--workers", "4")
        port = ("--port", str(self.port), "--timeout-worker-healthcheck", "60")
        with self.log.open("ab") as output:
            return subprocess.Popen(
                command("run", *said, "--", *uvicorn, *port),
                cwd=self.place,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def kill_all(self) -> None:
        """Kill everything, as if the host had lost its power, but for what the disk has."""
        pids = [self.process.pid]
        for pid in pids:
            pids += children(pid)
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def server(self) -> int:
        """The process that starts workers, and starts them again."""
        return next(each for each in children(self.process.pid) if "uvicorn" in line_of(each))

    def workers(self) -> list[int]:
        return [each for each in children(self.server()) if "spawn_main" in line_of(each)]

    def lines(self) -> list[str] | None:
        """What a worker knows of the room; None if none answers."""
        with suppress(httpx.HTTPError):
            url = f"http://127.0.0.1:{self.port}/rooms/attic/lines"
            found = httpx.get(url, timeout=DEADLINE_SECONDS)
            if found.status_code == 200:
                read: list[str] = found.json()
                return read
        return None


def children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has just ended
            found += map(int, thread.read_text().split())
    return found


def line_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


class Person:
    """Says line after line, in a thread of its own, until it is enough."""

    def __init__(self, room: TalkedIn, name: str) -> None:
        self.name = name
        self.room = room
        self.seen: list[str] = []
        self.said = 0
        self.sent: Counter[str] = Counter()
        self.older: list[str] = []
        """The lines that it had seen, and a reading did not know."""
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._talk, daemon=True)
        self.thread.start()

    def _talk(self) -> None:
        while not self.is_over.is_set():
            with suppress(OSError, TimeoutError, InvalidHandshake, ConnectionClosed):
                url = f"ws://127.0.0.1:{self.room.port}/rooms/attic?name={self.name}"
                with connect(url, open_timeout=CONNECT_SECONDS) as connection:
                    self._talk_over(connection)
            self.is_over.wait(AGAIN_SECONDS)

    def _talk_over(self, connection: ClientConnection) -> None:
        """Talk until it is over, or the connection is."""
        if self._next not in self._missed(connection):
            self._say(connection, self._next)
        while not self.is_over.is_set():
            if self._next in self.seen:
                self.said += 1
                self._look()
                self.is_over.wait(PAUSE_SECONDS)
                self._say(connection, self._next)
            with suppress(TimeoutError):
                self._hear(str(connection.recv(timeout=1.0)))

    @property
    def _next(self) -> str:
        return f"{self.name}: line {self.said + 1}"

    def _say(self, connection: ClientConnection, line: str) -> None:
        self.sent[line] += 1
        connection.send(line.partition(": ")[2])

    def _missed(self, connection: ClientConnection) -> list[str]:
        """Hear the lines of before. The mark of this person comes after all of them."""
        mark, found = f"{self.name}: here {time.monotonic_ns()}", list[str]()
        self._say(connection, mark)
        while mark not in found:
            found.append(str(connection.recv(timeout=DEADLINE_SECONDS)))
        for each in found:
            self._hear(each)
        return found

    def _hear(self, line: str) -> None:
        if line not in self.seen:
            self.seen.append(line)

    def _look(self) -> None:
        before, found = list(self.seen), self.room.lines()
        if found is not None:
            self.older += [each for each in before if each not in found]


class People:
    """Everybody who talks."""

    def __init__(self, room: TalkedIn) -> None:
        self.all = [Person(room, name) for name in PEOPLE]

    def go_on(self, what: str) -> None:
        """Wait until everybody has heard two more of their own lines."""
        until = {each: each.said + 2 for each in self.all}
        blocking_until(
            lambda: all(each.said >= least for each, least in until.items()),
            f"people talk on after {what}",
            START_SECONDS,
        )

    def end(self) -> None:
        for each in self.all:
            each.is_over.set()
        for each in self.all:
            each.thread.join(DEADLINE_SECONDS)

    def check(self, kept: list[str]) -> None:
        """Nothing is lost, or there too often, and everybody saw the same order."""
        sent = sum((each.sent for each in self.all), Counter[str]())
        assert Counter(kept) <= sent
        in_order = [*dict.fromkeys(kept)]
        for person in self.all:
            mine = [each for each in in_order if each.startswith(f"{person.name}: line")]
            said = [f"{person.name}: line {i + 1}" for i in range(person.said)]
            assert mine[: person.said] == said
            assert [each for each in in_order if each in {*person.seen}] == person.seen
            assert person.older == []


@contextmanager
def talked_in(place: Path) -> Iterator[tuple[TalkedIn, People]]:
    with ExitStack() as stack:
        room = TalkedIn(place)
        stack.callback(room.end)
        blocking_until(lambda: room.lines() == [], "workers answer", START_SECONDS)
        people = People(room)
        stack.callback(people.end)
        yield room, people


def test_people_talk_on_whatever_is_killed_and_deployed(tmp_path: Path) -> None:
    with talked_in(tmp_path) as (room, people):
        people.go_on("the beginning")
        for worker in room.workers()[:2]:
            os.kill(worker, signal.SIGKILL)
            people.go_on("a worker was killed")
        os.kill(node_pid(tmp_path / "kept", "node-2"), signal.SIGKILL)
        people.go_on("a node was killed")
        before = {*room.workers()}
        room.deploy(changed(room.program, RELEASE))
        os.kill(room.process.pid, signal.SIGHUP)
        blocking_until(
            lambda: not before & {*room.workers()}, "all workers are new", 2 * START_SECONDS
        )
        people.go_on("a release was deployed")
        os.kill(room.workers()[0], signal.SIGKILL)
        people.go_on("a worker of the new release was killed")
        room.kill_all()
        room.process = room.start()
        people.go_on("everything was killed, and started again")
        people.end()
        found = room.lines()
        assert found is not None
        topic, *kept = found
        assert topic
        people.check(kept)
        assert "Traceback" not in room.log.read_text()
