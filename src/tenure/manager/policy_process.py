"""A policy from outside, in a process of its own: it is ended when it takes too long or too much.

A thread asks it and waits, a few seconds at most. What it answers is read as data, within bounds.
"""

import os
import selectors
import signal
import time
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from threading import Event, Lock

import msgspec

from tenure.bounded_child import HEAD_BYTES, READY, command, environment, framed
from tenure.manager.policy_messages import WORDS, ToldPlan, asked
from tenure.protocol.balance.policy import Plan, PolicyFailed, Situation

PLAN_SECONDS = 4
"""How long a plan may take, of the processor's time: for the largest pools ours take one to three.
"""
BUSY = 2
"""How often that it may take by the clock, on a machine that is busy with other things."""
BEGIN_SECONDS = 15.0
"""How long importing the policy may take: numpy takes two on a busy machine."""
MEMORY_BYTES = 1 << 30
"""All that the process may have: a situation of the largest table takes some hundred MiB."""
ANSWER_BYTES = 64 << 20
"""More than a plan for the largest table has."""
IDLE_SECONDS = 600
"""How long a process is kept that is not asked: a pool at rest needs no plans."""


class PolicyProcess:
    """The policy that `module:Class` names. Only one thread asks it."""

    def __init__(
        self,
        target: str,
        plan_seconds: int = PLAN_SECONDS,
        begin_seconds: float = BEGIN_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self.target = target
        self._plan_seconds = plan_seconds
        self._begin_seconds = begin_seconds
        self._memory_bytes = memory_bytes
        self._process: Popen[bytes] | None = None
        self._asked_at = 0.0
        self._closed = Event()
        self._in_use = Lock()

    def __call__(self, situation: Situation) -> Plan:
        """The plan. Raises PolicyFailed."""
        with self._in_use:
            return self._planned(situation)

    def _planned(self, situation: Situation) -> Plan:
        request = framed(asked(situation))
        process = self._ready()
        most = BUSY * self._plan_seconds
        gives_up_at = time.monotonic() + most
        try:
            answer = _exchange(process, request, gives_up_at)
        except TimeoutError:
            self.end()
            raise PolicyFailed(f"it took more than {most} s, and was ended") from None
        except (EOFError, OSError):
            raise PolicyFailed(self._why_it_ended()) from None
        except BaseException:
            self.end()
            raise
        self._asked_at = time.monotonic()
        if answer.failed:
            raise PolicyFailed(answer.failed[:WORDS])
        return answer.plan()

    def end(self) -> int:
        """End the process, whatever it does; its exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        _kill(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return process.wait()

    def close(self) -> None:
        """End the process for good, although a thread may be asking it."""
        self._closed.set()
        process = self._process
        if process is not None:
            _kill(process)  # so that whoever waits for it does so no longer
        with self._in_use:
            self.end()

    def _ready(self) -> Popen[bytes]:
        if self._closed.is_set():
            raise PolicyFailed("the manager ends")
        is_idle = time.monotonic() - self._asked_at > IDLE_SECONDS
        if self._process is not None and (is_idle or self._process.poll() is not None):
            self.end()
        if self._process is None:
            limits = map(str, (self._plan_seconds, self._memory_bytes, 2 * IDLE_SECONDS))
            self._process = Popen(  # noqa: S603 - what the manager was started with
                command("tenure.manager.policy_child", self.target, *limits),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                bufsize=0,
                env=environment(),
                process_group=0,
            )
            if self._closed.is_set():  # meanwhile: `close` may have found no process
                self.end()
                raise PolicyFailed("the manager ends")
            gives_up_at = time.monotonic() + self._begin_seconds
            try:
                _read(self._process, len(READY), gives_up_at)
            except TimeoutError:
                self.end()
                why = f"importing it took more than {self._begin_seconds:.0f} s"
                raise PolicyFailed(why) from None
            except (EOFError, OSError):
                raise PolicyFailed(f"importing it failed: {self._why_it_ended()}") from None
        return self._process

    def _why_it_ended(self) -> str:
        return (
            f"its process ended with status {self.end()}; it may use {self._plan_seconds} s of a "
            f"processor and {self._memory_bytes >> 20} MiB"
        )


def _kill(process: Popen[bytes]) -> None:
    """End the process, and with it what it has begun: that may hold the pipes."""
    with suppress(ProcessLookupError, PermissionError):  # macOS: the latter if it has just ended
        if process.returncode is None:  # otherwise somebody else may have its number
            os.killpg(process.pid, signal.SIGKILL)


def _exchange(process: Popen[bytes], request: bytes, gives_up_at: float) -> ToldPlan:
    _write(process, request, gives_up_at)
    length = int.from_bytes(_read(process, HEAD_BYTES, gives_up_at))
    if length > ANSWER_BYTES:
        raise PolicyFailed(f"its answer has {length} bytes; the limit is {ANSWER_BYTES}")
    try:
        return msgspec.msgpack.decode(_read(process, length, gives_up_at), type=ToldPlan)
    except msgspec.DecodeError as error:
        raise PolicyFailed(f"its answer is no plan: {error}") from None


def _write(process: Popen[bytes], data: bytes, gives_up_at: float) -> None:
    assert process.stdin is not None
    out, rest = process.stdin.fileno(), memoryview(data)
    os.set_blocking(out, False)
    while rest:
        _wait(out, selectors.EVENT_WRITE, gives_up_at)
        rest = rest[os.write(out, rest) :]


def _read(process: Popen[bytes], length: int, gives_up_at: float) -> bytes:
    assert process.stdout is not None
    source, found = process.stdout.fileno(), bytearray()
    while len(found) < length:
        _wait(source, selectors.EVENT_READ, gives_up_at)
        piece = os.read(source, length - len(found))
        if not piece:
            raise EOFError
        found += piece
    return bytes(found)


def _wait(descriptor: int, event: int, gives_up_at: float) -> None:
    """Wait until the pipe can be used. Raises TimeoutError."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, event)
        if not selector.select(max(0.0, gives_up_at - time.monotonic())):
            raise TimeoutError
