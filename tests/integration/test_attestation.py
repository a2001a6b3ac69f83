"""Attested death with real processes: some are gone, some only seem so, and witnesses see only
some.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from tenure import Lookup
from tenure.client.attestation import look, own_process
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.messages import Process
from tests.integration.neighbour import POOL
from tests.integration.processes import ManagerProcess, manager, run
from tests.patience import DEADLINE_SECONDS, blocking_until

NOBODY = 65534
HERE = own_process()
pytestmark = pytest.mark.skipif(HERE is None, reason="this process cannot see itself in /proc")


@contextmanager
def started(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def process_of(pid: int) -> Process:
    """A process as it would see itself: it lives in our place."""
    assert HERE is not None
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return msgspec.structs.replace(HERE, pid=pid, start_time=int(fields[19]))


def is_gone(process: Process) -> bool:
    sight = look(process)
    assert sight.seen_from == HERE
    return sight.shows_gone(process)


def state_of(process: Process) -> str:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def until_state(process: Process, state: str) -> None:
    blocking_until(lambda: state_of(process) == state, f"{process} is {state}")


# --- what is seen of a process -------------------------------------------------------------------


def test_the_living_are_not_gone_and_the_dead_are_reaped_or_not() -> None:
    with started("sleep", "100") as sleeper:
        process = process_of(sleeper.pid)
        assert not is_gone(process)
        sleeper.send_signal(signal.SIGSTOP)
        until_state(process, "T")
        assert not is_gone(process)
        sleeper.kill()
        until_state(process, "Z")
        assert is_gone(process), "a zombie without threads"
        sleeper.wait()
        assert look(process).is_there is False
        assert is_gone(process)


def test_another_start_time_is_another_process() -> None:
    with started("sleep", "100") as sleeper:
        process = process_of(sleeper.pid)
        earlier = msgspec.structs.replace(process, start_time=process.start_time - 1)
        assert (is_gone(process), is_gone(earlier)) == (False, True)


HEADLESS = """
import ctypes, threading, time
threading.Thread(target=lambda: time.sleep(100)).start()
print("ready", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_is_not_gone_while_others_live() -> None:
    with started(sys.executable, "-c", HEADLESS) as headless:
        assert headless.stdout
        headless.stdout.readline()
        process = process_of(headless.pid)
        until_state(process, "Z")
        sight = look(process)
        assert (sight.first_thread_ended, sight.has_other_threads) == (True, True)
        assert not is_gone(process)
        headless.kill()
        blocking_until(lambda: is_gone(process), "the last thread has ended")


# --- from elsewhere -------------------------------------------------------------------------------


def look_from(wrapper: list[str], *arguments: str) -> str:
    """Return what `looking` prints in there; skip the test if that is not permitted."""
    command = [*wrapper, sys.executable, "-m", "tests.integration.looking", *arguments]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=DEADLINE_SECONDS
    )
    if done.returncode != 0:
        pytest.skip(f"not permitted here: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def sight_from(wrapper: list[str], process: Process, *arguments: str) -> Sight:
    said = look_from(wrapper, msgspec.json.encode(process).decode(), *arguments)
    return msgspec.json.decode(said, type=Sight)


def test_another_user_sees_enough() -> None:
    with started("sleep", "100") as sleeper:
        process = process_of(sleeper.pid)
        sight = sight_from([], process, str(NOBODY))
        assert (sight.is_there, sight.start_time) == (True, process.start_time)
        sleeper.kill()
        sleeper.wait()
        assert sight_from([], process, str(NOBODY)).shows_gone(process)


def test_hidepid_hides_the_living_and_shows_that_nobody_has_a_pid() -> None:
    hiding = ["unshare", "--mount", "sh", "-c"]
    hiding += ['mount -t proc -o hidepid=2 proc /proc && exec "$0" "$@"']
    with started("sleep", "100") as sleeper:
        process = process_of(sleeper.pid)
        sight = sight_from(hiding, process, str(NOBODY))
        assert (sight.is_there, sight.start_time) == (True, None)
        assert not sight.shows_gone(process)
        sleeper.kill()
        sleeper.wait()
        assert sight_from(hiding, process, str(NOBODY)).shows_gone(process)


def test_another_time_namespace_is_another_place() -> None:
    """The start time reads otherwise there: it would show a living process gone."""
    elsewhere = ["unshare", "--time", "--boottime", "1000", "--fork"]
    with started("sleep", "100") as sleeper:
        process = process_of(sleeper.pid)
        sight = sight_from(elsewhere, process)
        assert sight.seen_from is not None
        assert sight.seen_from.place != process.place
        assert sight.start_time not in (None, process.start_time)


def test_another_pid_namespace_is_another_place() -> None:
    container = ["unshare", "--pid", "--fork", "--mount-proc"]
    own = msgspec.json.decode(look_from(container, "null"), type=Process)
    assert HERE is not None
    assert (own.pid, own.boot_id, own.place == HERE.place) == (1, HERE.boot_id, False)


def test_who_sees_the_pids_of_another_namespace_says_nothing_of_itself() -> None:
    """A new pid namespace with the mount of the old one: pids there are not what they are here."""
    assert look_from(["unshare", "--pid", "--fork"], "null") == "null\n"


REUSED = """
import subprocess, time
from pathlib import Path
import msgspec
from tenure.client.attestation import look, own_process
def start():
    return subprocess.Popen(["sleep", "100"])
def process_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return msgspec.structs.replace(own_process(), pid=pid, start_time=int(fields[19]))
first = start()
one = process_of(first.pid)
first.kill()
first.wait()
time.sleep(0.02)  # more than the tick in which start times are told
Path("/proc/sys/kernel/ns_last_pid").write_text(str(first.pid - 1))
second = start()
assert second.pid == first.pid, (first.pid, second.pid)
other = process_of(second.pid)
print(look(one).shows_gone(one), look(other).shows_gone(other))
second.kill()
"""


def test_a_pid_that_is_used_again_is_another_process() -> None:
    wrapper = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", REUSED]
    done = subprocess.run(
        wrapper, check=False, capture_output=True, text=True, timeout=DEADLINE_SECONDS
    )
    if done.returncode != 0:
        pytest.skip(f"not permitted here: {done.stderr.strip().splitlines()[-1]}")
    assert done.stdout == "True False\n"


# --- what comes of it -----------------------------------------------------------------------------


class Neighbours:
    """A manager, owners beside each other, and a client that looks for one key."""

    def __init__(self, manager: ManagerProcess, processes: ExitStack) -> None:
        self.manager = manager
        self.processes = processes
        self.url = manager.wait_for("listening")["url"]
        run("pool", "create", POOL, "--kind", "hashed", "--manager", self.url)
        self.lookup = processes.enter_context(Lookup(self.url, pool=POOL))
        self.owners: dict[str, subprocess.Popen[str]] = {}
        self.children: dict[str, int] = {}

    def start(self, name: str, oddity: str = "plain") -> subprocess.Popen[str]:
        command = (sys.executable, "-m", "tests.integration.neighbour", self.url, name, oddity)
        owner = self.owners[name] = self.processes.enter_context(started(*command))
        assert owner.stdout
        self.children[name] = int(owner.stdout.readline())
        return owner

    def key_of(self, name: str) -> int:
        """A key that the owner has, as the client knows it."""
        found = blocking_until(
            lambda: next((key for key in range(1, 1 << 64, 1 << 54) if self.has(name, key)), None),
            f"{name} has a key",
        )
        assert found
        return found

    def has(self, name: str, key: int) -> bool:
        return self.lookup.find(key) == f"http://{name}"

    def was(self, what: str) -> bool:
        """Whether the manager has said so of the victim."""
        lines = self.manager.log.splitlines()
        return any(f"{what}: victim (" in line for line in lines)

    def until_it_was(self, what: str) -> None:
        blocking_until(lambda: self.was(what), f"the manager says {what!r}: {self.manager.log}")


@contextmanager
def neighbours(preset: str) -> Iterator[Neighbours]:
    with ExitStack() as processes:
        arguments = ("--first-start", "--log-level", "debug")
        running = processes.enter_context(manager(*arguments, preset=preset))
        yield Neighbours(running, processes)


def test_after_kill_9_a_neighbour_has_the_keys_long_before_the_hold() -> None:
    with neighbours("default") as there:
        victim = there.start("victim")
        there.start("other")
        key = there.key_of("victim")
        victim.kill()
        blocking_until(lambda: there.has("other", key), "the neighbour has its key")
        there.until_it_was("owner attested dead")
        assert not there.was("owner expired")


def test_a_successor_of_the_same_name_attests_and_joins_at_once() -> None:
    with neighbours("default") as there:
        there.start("victim").kill()
        there.start("victim")
        there.until_it_was("owner attested dead")
        assert not there.was("owner expired")


def test_a_forked_child_that_keeps_the_socket_does_not_keep_the_keys() -> None:
    """No connection breaks: the owner becomes suspect when it has missed a renewal."""
    with neighbours("default") as there:
        victim = there.start("victim", "forked")
        there.start("other")
        key = there.key_of("victim")
        try:
            victim.kill()
            blocking_until(lambda: there.has("other", key), "the neighbour has its key")
        finally:
            os.kill(there.children["victim"], signal.SIGKILL)
        there.until_it_was("owner attested dead")
        assert not there.was("owner expired")


@pytest.mark.parametrize("oddity", ["plain", "headless"])
def test_a_stopped_owner_is_waited_for(oddity: str) -> None:
    """SIGSTOP: its neighbour is asked, and sees that it is there; so too without a first thread."""
    with neighbours("test") as there:
        victim = there.start("victim", oddity)
        there.start("other")
        key = there.key_of("victim")
        if oddity == "headless":
            until_state(process_of(victim.pid), "Z")
        victim.send_signal(signal.SIGSTOP)
        blocking_until(lambda: there.has("other", key), "the neighbour has its key")
        there.until_it_was("owner expired")
        assert "asked a witness" in there.manager.log
        assert not there.was("owner attested dead")
