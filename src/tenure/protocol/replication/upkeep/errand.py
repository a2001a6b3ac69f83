"""Errands: conversations that nobody waits for, in which a node looks after what it keeps.

A request is over at its deadline. An errand may take hours, so it is patient with each answer
instead. It may have *parts*, which are conversations of their own: some of them run at once, and
if one is interrupted, the whole is.

    found = yield from talk.run(step)
    answer = yield from talk.ask_one(node, question)
    yield from talk.together((partial(compare, place) for place in places), at_once=8)

Requests need the same disks: a `SendingRate` bounds what is sent, and whoever waits for its turn
asks for nothing meanwhile.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from tenure.base.instants import FAR_FUTURE, SECOND_NS, Instant
from tenure.protocol.replication.conversation import (
    Conversation,
    Conversing,
    Interrupted,
    Replies,
    Until,
)
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import ReplicaOperation
from tenure.protocol.replication.tasks import Step, Task
from tenure.protocol.topology.records import NodeId

R = TypeVar("R")
Part: TypeAlias = Callable[["Errand"], Conversing[None]]
"""A conversation, for the errand that it is to ask by."""


class DiskRefused(Interrupted):
    """The store of this node could not do a step, and has changed nothing."""


class SendingRate:
    """How many bytes a second an errand may send; it may be some time ahead of that."""

    def __init__(self, bytes_a_second: int, ahead_ns: int = 0) -> None:
        assert bytes_a_second > 0, "nothing would ever be sent"
        self._bytes_a_second = bytes_a_second
        self._ahead_ns = ahead_ns
        self._free_at = Instant(0)

    def spend(self, now: Instant, size: int) -> None:
        """So much was sent."""
        cost_ns = size * SECOND_NS // self._bytes_a_second
        self._free_at = Instant(max(self._free_at, now) + cost_ns)

    @property
    def next_at(self) -> Instant:
        return Instant(self._free_at - self._ahead_ns)


class Errand(Conversation):
    """A conversation without an end of its time, and with parts."""

    def __init__(self, context: NodeContext, parent: "Errand | None" = None) -> None:
        super().__init__(context, context.now)
        self.deadline = FAR_FUTURE
        self._parent = parent
        self._parts: list[Errand] = []
        self._looks_around = False
        self._is_running = False

    # --- for generators ---

    def ask(
        self, asked: Mapping[NodeId, ReplicaOperation[R]], answers: Replies[R] | None = None
    ) -> Replies[R]:
        """Ask each of these nodes, under the topology that counts now."""
        self._version = self.context.topology.version
        return super().ask(asked, answers)

    def ask_one(self, node: NodeId, question: ReplicaOperation[R]) -> Conversing[R]:
        """The answer of a node. Raises Silent or TopologyReplaced."""
        answers = yield from self.ask_all([node], question)
        return answers[node]

    def ask_all(
        self, nodes: Iterable[NodeId], question: ReplicaOperation[R]
    ) -> Conversing[Replies[R]]:
        """The answers of all these nodes. Raises Silent or TopologyReplaced."""
        asked = dict.fromkeys(nodes, question)
        answers = self.ask(asked)
        yield Until(lambda: answers.keys() >= asked.keys())
        return answers

    def run(self, step: Task[R] | ReplicaOperation[R]) -> Conversing[R]:
        """Have the store of this node do a step. Raises DiskRefused."""
        outcome = _StoreOutcome(self)
        self.context.run(cast("Step", step), outcome.done, outcome.failed)
        yield Until(lambda: outcome.is_there)
        if outcome.is_refused:
            raise DiskRefused
        result: R = outcome.result
        return result

    def durable(self) -> Conversing[None]:
        """Wait until all that was changed so far survives a power failure."""
        outcome = _StoreOutcome(self)
        self.context.when_durable(outcome.done)
        yield Until(lambda: outcome.is_there)

    def pause(self, pause_ns: int) -> Conversing[None]:
        """Let others have their turn."""
        yield Until(lambda: False, at=Instant(self.context.now + pause_ns))

    def turn(self, rate: SendingRate) -> Conversing[None]:
        while rate.next_at > self.context.now:  # meanwhile another part may have sent something
            yield Until(lambda: False, at=rate.next_at)

    def together(self, parts: Iterable[Part], at_once: int) -> Conversing[None]:
        """Run all of these, so many at once. Raises whatever interrupts one of them."""
        assert at_once > 0, "no part would ever begin"
        try:
            for each in parts:
                yield Until(lambda: len(self._parts) < at_once)
                part = Errand(self.context, self)
                self._parts.append(part)
                part.begin(each(part))
            yield Until(lambda: not self._parts)
        finally:
            for part in tuple(self._parts):
                part.end()

    # --- events ---

    def look(self) -> bool:
        """Go on, if what the errand waits for is there; return whether it was."""
        is_waiting = not (self.is_over or self._is_running or self._waits_for_topology)
        if not is_waiting or not self._is_due():
            return False
        self._look()
        return True

    def end(self) -> None:
        """Drop it, with all its parts: nothing more comes of them."""
        if self.is_over:
            return
        super().end()
        self._steps.close()  # and its parts with it
        if self._parent is not None:
            self._parent._parts.remove(self)  # noqa: SLF001 - of this class

    # --- inside ---

    def _wait(self) -> None:
        # Only others may be silent. The store here says so itself if it cannot do something.
        patience_ns = self.context.config.patience_ns
        self.deadline = Instant(self.context.now + patience_ns) if self._tickets else FAR_FUTURE
        super()._wait()

    def _go_on(self, resume: Callable[[], Until]) -> None:
        assert not self._is_running, "a conversation is resumed by an event, never by itself"
        self._is_running = True
        try:
            super()._go_on(resume)
        except Interrupted as error:
            self.end()
            if self._parent is None or self._parent._is_running:  # noqa: SLF001 - of this class
                raise
            self._parent._throw(error)  # noqa: SLF001 - of this class
        finally:
            self._is_running = False
        if self._parent is not None:
            self._parent._look_around()  # noqa: SLF001 - of this class

    def _look_around(self) -> None:
        """A part has gone on: another one may have waited for what it did."""
        if self._looks_around:
            return
        self._looks_around = True
        try:
            while any(part.look() for part in tuple(self._parts)):
                pass
        finally:
            self._looks_around = False
        self.look()


class _StoreOutcome:
    """What becomes of something that the store of this node was asked to do."""

    def __init__(self, talk: Errand) -> None:
        self._talk = talk
        self.is_there = False
        self.is_refused = False
        self.result: Any = None

    def done(self, result: Any = None) -> None:  # noqa: ANN401 - of any step
        """It is done, or nothing is left to wait for."""
        assert not self.is_there, "a step has one outcome"
        self.is_there = True
        self.result = result
        self._talk.look()

    def failed(self) -> None:
        """The disk was full, or did not keep up."""
        self.is_refused = True
        self.done()


def errand(context: NodeContext, whole: Part) -> Errand:
    talk = Errand(context)
    talk.begin(whole(talk))
    return talk
