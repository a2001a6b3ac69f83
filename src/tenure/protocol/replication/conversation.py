"""Conversations: how a node asks others and waits, written from top to bottom (5).

A conversation is a generator. It asks replicas, yields what it waits for, and goes on when that is
there. So each reads like its rule, and all that waiting takes stands here, once: tickets, the
deadline, replicas that are silent, and topologies that are replaced meanwhile.

    answers = talk.ask(dict.fromkeys(nodes, question))
    yield Until(lambda: are_met(needs, answers))
    ...

What cannot be waited for is raised where the conversation waits. It is state of a machine: nothing
happens between two events, and whoever holds it may drop it.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.keys import Key
from tenure.protocol.replication.levels import Level, Need, are_met, fewest, may_be_met, needs_of
from tenure.protocol.replication.messages import FailedWhy
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import (
    AnyOperation,
    Bounded,
    PartsRead,
    ReadParts,
    ReplicaOperation,
    StateRead,
)
from tenure.protocol.replication.request_room import Portion
from tenure.protocol.topology.records import NodeId, Replicas

R = TypeVar("R")


class Until(NamedTuple):
    """What a conversation waits for."""

    is_there: Callable[[], bool]
    or_else: Callable[[], object] | None = None
    """Done once if it is not there after a while, long before the deadline: to ask others, too."""
    at: Instant = FAR_FUTURE
    """The conversation goes on at this time, whether it is there or not."""


Conversing: TypeAlias = Generator[Until, None, R]


class Replies(dict[NodeId, R], Generic[R]):
    """The answers so far to one question, by the node that gave them."""


class Interrupted(Exception):
    """What a conversation waits for does not come."""


class RequestFailed(Interrupted):
    def __init__(self, detail: str = "", why: FailedWhy = "unavailable") -> None:
        super().__init__(detail)
        self.detail = detail
        self.why = why


class Silent(RequestFailed):
    """The deadline has come, and too few have answered."""


class NoRoom(Silent):
    """The deadline has come, and others still have the room for what it brings."""

    def __init__(self) -> None:
        super().__init__(why="overloaded")


class TooLarge(RequestFailed):
    """Replicas have more than may be kept."""


class TooFewReplicas(RequestFailed):
    """The replicas that are up cannot meet the level (R5)."""

    def __init__(self) -> None:
        super().__init__(why="too few replicas")


class TopologyReplaced(Interrupted):
    """A replica acts by a later topology, which this node has now: what was heard does not count
    (R16).
    """


class Conversation:
    """One conversation, while it runs; generators are given it to ask by."""

    def __init__(self, context: NodeContext, now: Instant, portion: Portion | None = None) -> None:
        self.context = context
        self._portion = portion
        """What it may keep of what it reads; None if it is bounded in other ways."""
        self._held: list[tuple[Replies[Any], NodeId, ReplicaOperation[Any]]] = []
        """What is asked when there is room for the answers."""
        self.deadline = Instant(now + context.config.patience_ns)
        self.wake_at = FAR_FUTURE
        self._tickets: dict[int, tuple[Replies[Any], NodeId, ReplicaOperation[Any]]] = {}
        self._until = Until(_always)
        self._version = 0
        """The version of the topology by which the replicas were found."""
        self._waits_for_topology = False
        self._steps: Conversing[None]
        self.is_over = False

    def begin(self, steps: Conversing[None]) -> None:
        """Run it from its beginning to where it waits."""
        self._steps = steps
        self._wake(self.deadline)
        self._go_on(lambda: next(steps))

    # --- for generators ---

    def replicas(self, table: str, key: Key, level: Level) -> tuple[Replicas, list[Need]]:
        replicas = self.context.replicas(table, key)
        if replicas is None:
            raise RequestFailed(table, "no such table")
        return replicas, self.needs(replicas, level)

    def needs(self, replicas: Replicas, level: Level) -> list[Need]:
        """What the level needs of these. A round begins: what was asked in the last one is over."""
        context = self.context
        # Answers by another topology are of other lists of replicas (R16).
        self._forget()
        self._version = context.topology.version
        here = context.datacentre_of(context.node)
        needs = needs_of(replicas.lists, level, context.datacentre_of, here)
        down = context.down - {context.node}
        if not replicas.old or not may_be_met(needs, down):
            raise TooFewReplicas
        return needs

    def ask(
        self, asked: Mapping[NodeId, ReplicaOperation[R]], answers: Replies[R] | None = None
    ) -> Replies[R]:
        """Ask each of these nodes. Their answers come into what is returned, or into `answers`."""
        into: Replies[R] = Replies() if answers is None else answers
        for node, operation in asked.items():
            if self._must_wait(operation):
                self._hold(into, node, operation)
            else:
                self._ask_now(into, node, operation)
        return into

    def ask_fewest(
        self, needs: Sequence[Need], nearest: Sequence[NodeId], question: ReplicaOperation[R]
    ) -> Conversing[Replies[R]]:
        """The answers of as few nodes as the needs take; all are asked if one of them is silent."""
        chosen = fewest(needs, nearest)
        answers = self.ask(dict.fromkeys(chosen, question))
        others = [node for node in nearest if node not in chosen]
        yield Until(
            lambda: are_met(needs, answers),
            or_else=lambda: self.ask(dict.fromkeys(others, question), answers),
        )
        return answers

    def side_by_side(
        self, talks: Sequence[Callable[["Conversation"], Conversing[R]]]
    ) -> Conversing[list[R]]:
        """The results of several conversations that are held at once. Raises what one raises."""
        found: dict[int, R] = {}
        failed: list[RequestFailed] = []

        def held(place: int, steps: Conversing[R]) -> Conversing[None]:
            try:
                found[place] = yield from steps
            except RequestFailed as error:
                failed.append(error)
            if have_begun:  # otherwise this one has not come to where it waits
                self._look()

        self._forget()
        have_begun = False
        parts = [Conversation(self.context, self.context.now, Portion()) for _ in talks]
        for place, (talk, part) in enumerate(zip(talks, parts, strict=True)):
            part.begin(held(place, talk(part)))
        have_begun = True
        try:
            yield Until(lambda: bool(failed) or len(found) == len(parts))
        finally:
            for part in parts:
                part.end()
        if failed:
            raise failed[0]
        return [found[place] for place in range(len(parts))]

    def keep(self, size: int) -> Conversing[None]:
        """Keep so much of what side conversations have found, when there is room for it."""
        portion = self._portion
        if portion is not None:
            portion.keep(size)
            if not portion.may_ask() and portion.can_grow():
                portion.grow(self._on_room)
                yield Until(lambda: not portion.is_waiting)

    # --- events ---

    def on_told(self, now: Instant, node: NodeId, body: Any) -> None:  # noqa: ANN401 - what was asked
        answers, asked, operation = self._tickets.pop(body.ticket, (None, node, None))
        self.context.forget(body.ticket)
        # Nobody answers for another: a majority must be of so many nodes.
        if answers is None or operation is None or asked != node:
            return
        if getattr(body, "is_larger", False):
            self._hold(answers, node, operation)
            return
        portion = self._portion
        if portion is not None and portion.size == "little" and _brings_much(operation):
            portion.keep(_size_of(body))
        answers[node] = body
        self._look()

    def on_numbers(self) -> None:
        self._look()

    def on_outdated(self, now: Instant) -> None:
        """A replica acts by a later topology: wait until this node has it, too."""
        self._forget()
        if not self._waits_for_topology:
            self._waits_for_topology = True
            self.context.waiting.append(self)
        self.on_topology(now)

    def on_topology(self, now: Instant) -> None:
        if self._waits_for_topology and self.context.topology.version != self._version:
            self._wait_no_more()
            self._throw(TopologyReplaced())

    def advance(self, now: Instant) -> None:
        until = self._until
        # Its time has come once: if a topology is waited for, the deadline is next.
        if now >= until.at:
            self._until = Until(_always)
        elif not self._held:  # otherwise no replica is silent: it is this node that does not ask
            self._until = until._replace(or_else=None)
        self._wake(min(self.deadline, self._until.at))
        if now >= self.deadline:
            self._forget()
            self._wait_no_more()
            self.deadline = FAR_FUTURE  # what is still to be done waits for nobody
            is_full = self._portion is not None and self._portion.is_waiting
            self._throw(NoRoom() if is_full else Silent())
        elif until.or_else is not None and now < until.at:
            if not self._held:
                until.or_else()
        else:
            self._look()

    def end(self) -> None:
        self.is_over = True
        self._forget()
        self._wait_no_more()
        self._wake(FAR_FUTURE)
        # The alarm of its deadline keeps it for seconds. What has come, which is as large as a
        # page from each replica, must go now: there may be dozens of reads a second.
        self._until = _NEVER

    # --- inside ---

    def _must_wait(self, operation: ReplicaOperation[Any]) -> bool:
        portion = self._portion
        if portion is None or portion.size != "little" or not _brings_much(operation):
            return False
        return not portion.may_ask()

    def _ask_now(self, into: Replies[Any], node: NodeId, operation: ReplicaOperation[Any]) -> None:
        ticket = self.context.draw_ticket()
        self._tickets[ticket] = into, node, operation
        portion = self._portion
        if portion is not None and _brings_much(operation):
            operation = msgspec.structs.replace(
                operation, ticket=ticket, most_bytes=portion.most_bytes
            )
        else:
            operation = msgspec.structs.replace(operation, ticket=ticket)
        self.context.ask(self, node, cast("AnyOperation", operation))

    def _hold(self, into: Replies[Any], node: NodeId, operation: ReplicaOperation[Any]) -> None:
        """Ask when there is room."""
        assert self._portion is not None
        if not self._portion.can_grow():
            self._forget()
            self._throw(TooLarge("a replica has more of the row than a message may have"))
            return
        self._held.append((into, node, operation))
        self._portion.grow(self._on_room)

    def _on_room(self) -> None:
        held, self._held = self._held, []
        for each in held:
            self._ask_now(*each)
        self._wait()
        self._look()

    def _look(self) -> None:
        if self._is_due() and not self._waits_for_topology:
            self._go_on(lambda: next(self._steps))

    def _is_due(self) -> bool:
        return self._until.is_there() or self._until.at <= self.context.now

    def _throw(self, error: Exception) -> None:
        self._go_on(lambda: self._steps.throw(error))

    def _go_on(self, resume: Callable[[], Until]) -> None:
        try:
            self._until = resume()
            while self._is_due():
                self._until = next(self._steps)
        except StopIteration:
            self.end()
        else:
            self._wait()

    def _wait(self) -> None:
        until = self._until
        spare_at = Instant(self.context.now + self.context.config.spare_ns)
        again_at = until.at if until.or_else is None else min(spare_at, until.at)
        self._wake(min(self.deadline, again_at))

    def _wake(self, at: Instant) -> None:
        if at != self.wake_at:
            self.wake_at = at
            self.context.wake(self, at)

    def _forget(self) -> None:
        for ticket in self._tickets:
            self.context.forget(ticket)
        self._tickets.clear()
        self._held.clear()

    def _wait_no_more(self) -> None:
        if self._waits_for_topology:
            self._waits_for_topology = False
            self.context.waiting.remove(self)


def _always() -> bool:
    return True


_NEVER = Until(lambda: False)


def _size_of(answer: PartsRead | StateRead) -> int:
    """The bytes of the names and values that it has."""
    if isinstance(answer, StateRead):
        return answer.state.size
    return sum(part.size for part in answer.parts)


def _brings_much(asked: ReplicaOperation[Any]) -> bool:
    return isinstance(asked, Bounded) and (
        not isinstance(asked, ReadParts) or bool(asked.questions)
    )
