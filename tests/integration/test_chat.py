"""The chat room of the guide, served by uvicorn with two workers, of which one is killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from tenure.cli.demo.ports import free_ports
from tests.integration.processes import manager
from tests.patience import DEADLINE_SECONDS, blocking_until
from tests.repo.reading import ROOT

ROOM = "attic"


class Chat:
    """A server with two workers."""

    def __init__(self, manager_url: str, directory: Path, opened: ExitStack) -> None:
        self._open = opened
        self.manager = manager_url
        [self.port] = free_ports(1)
        self.log = directory / "log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "uvicorn", "chat:app", "--workers", "2"),
                    *("--app-dir", str(ROOT / "examples"), "--port", str(self.port)),
                ],
                cwd=directory,
                env={**os.environ, "TENURE_MANAGERS": manager_url},
                stdout=output,
                stderr=output,
            )

    def wait_for_members(self) -> None:
        blocking_until(self.two_have_keys, "two members have keys")

    def two_have_keys(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return self.members_with_keys() == 2

    def members_with_keys(self) -> int:
        found = httpx.get(f"{self.manager}/v1/pools/rooms/owners", timeout=DEADLINE_SECONDS)
        if found.status_code != 200:
            return 0
        return sum(bool(each["ranges"]) for each in found.json()["owners"])

    def workers(self) -> list[int]:
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        commands = {each: Path(f"/proc/{each}/cmdline").read_text() for each in children}
        return [int(each) for each, command in commands.items() if "spawn_main" in command]

    def people(self) -> list[str]:
        found = httpx.get(
            f"http://127.0.0.1:{self.port}/rooms/{ROOM}/people", timeout=DEADLINE_SECONDS
        )
        people: list[str] = found.raise_for_status().json()
        return people

    def enter(self, name: str) -> ClientConnection:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                url = f"ws://127.0.0.1:{self.port}/rooms/{ROOM}?name={name}"
                return self._open.enter_context(connect(url))
            except (OSError, InvalidHandshake):
                assert time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.05)


@contextmanager
def serving(directory: Path) -> Iterator[Chat]:
    with manager("--first-start", preset="default") as beside, ExitStack() as stack:
        chat = Chat(beside.wait_for("listening")["url"], directory, stack)
        try:
            chat.wait_for_members()
            yield chat
        finally:
            stack.close()
            chat.process.send_signal(signal.SIGTERM)
            try:
                chat.process.wait(DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                chat.process.kill()
                chat.process.wait()


class Talker:
    """A client that connects again when it is told to, or cut off."""

    def __init__(self, chat: Chat, name: str) -> None:
        self.chat = chat
        self.name = name
        self.cut = 0
        self.connection = chat.enter(name)

    def say(self, text: str) -> None:
        with suppress(ConnectionClosed):
            self.connection.send(text)

    def wait_for(self, line: str) -> list[str]:
        """All lines up to that one."""
        lines: list[str] = []
        deadline = time.monotonic() + DEADLINE_SECONDS
        while line not in lines:
            assert time.monotonic() < deadline, (lines, self.chat.log.read_text())
            try:
                lines.append(str(self.connection.recv(timeout=DEADLINE_SECONDS)))
            except ConnectionClosed:
                self.cut += 1
                lines.clear()
                self.connection = self.chat.enter(self.name)
        return lines


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_is_killed_and_the_room_lives_on(tmp_path: Path) -> None:
    with serving(tmp_path) as chat:
        talkers = [Talker(chat, f"talker-{i}") for i in range(6)]
        for each in talkers:
            each.say("hello")
            talkers[0].wait_for(f"{each.name}: hello")
        for each in talkers[1:]:
            each.wait_for("talker-5: hello")
        assert len(chat.people()) == 6
        os.kill(chat.workers()[0], signal.SIGKILL)
        late = Talker(chat, "late")
        before = late.wait_for("talker-5: hello")
        assert len(before) == len(set(before))
        late.say("still here?")
        for each in talkers:
            each.wait_for("late: still here?")
        assert {each.cut for each in talkers} <= {0, 1}
        assert "Traceback" not in chat.log.read_text()
