"""Warming: all replicas bring what will be read soon into their memory.

A replica that sends a digest of a part of a row has read that part. So all replicas that are up are
asked for digests, and none of their data goes over the network. For a family with super columns,
one replica first says their names. A replica that is silent is not waited for longer than for any
other answer, and nobody is told.
"""

from collections.abc import Callable, Sequence

from tenure.base.instants import Instant
from tenure.base.keys import Key
from tenure.protocol.replication.messages import (
    ClientAnswer,
    Failed,
    PageFound,
    ReadPage,
    ReadSupers,
    SupersFound,
)
from tenure.protocol.replication.node_context import NodeContext
from tenure.protocol.replication.operations import PartsRead, ReadParts
from tenure.protocol.replication.pages import CellPage, Slice, SuperPage
from tenure.protocol.replication.reading import Found, Reading
from tenure.protocol.replication.request import ReplicaRequest
from tenure.protocol.replication.sections import SectionQuestion

SUPERS_AT_ONCE = 32
"""A replica reads what one message asks for in one step."""


def warm(context: NodeContext, now: Instant, client: int, asked: ReadPage | ReadSupers) -> None:
    """Do it, and answer with an empty page when it is done."""
    row = asked.table, asked.key

    def done(_: Instant) -> None:
        answer: ClientAnswer = PageFound(request=asked.request, page=CellPage(()))
        if isinstance(asked, ReadSupers):
            answer = SupersFound(request=asked.request, page=SuperPage(()))
        context.answer(client, answer)

    def listed(at: Instant, found: Found) -> None:
        if isinstance(found, str):
            context.answer(client, Failed(request=asked.request, why=found))
            return
        assert isinstance(asked, ReadSupers)
        part = Slice(asked.within)
        warm_some(
            at,
            [
                SectionQuestion(family=asked.family, super=name, part=part)
                for name, _ in found[0].cells
            ],
        )

    def warm_some(at: Instant, questions: Sequence[SectionQuestion]) -> None:
        if not questions:
            done(at)
            return
        rest = questions[SUPERS_AT_ONCE:]
        PartsWarming(
            context, at, row, questions[:SUPERS_AT_ONCE], lambda then: warm_some(then, rest)
        ).begin(at)

    if isinstance(asked, ReadPage):
        question = SectionQuestion(family=asked.family, super=asked.super, part=asked.part)
        warm_some(now, [question])
    else:
        names = SectionQuestion(family=asked.family, part=asked.part, lists_supers=True)
        Reading(context, now, asked.level, row, [names], listed).begin(now)


class PartsWarming(ReplicaRequest):
    """Some parts of one row, at all replicas that are up. `then` is called once."""

    def __init__(
        self,
        context: NodeContext,
        now: Instant,
        row: tuple[str, Key],
        questions: Sequence[SectionQuestion],
        then: Callable[[Instant], None],
    ) -> None:
        super().__init__(context, now, "one")
        self._row = row
        self._questions = tuple(questions)
        self._then = then
        self._silent = 0

    def begin(self, now: Instant) -> None:
        """Ask them all for digests."""
        self.forget()
        table, key = self._row
        replicas = self.context.replicas(table, key)
        needs = None if replicas is None else self.needs(replicas)
        up = self.context.in_order(replicas.everyone) if replicas and needs else []
        self._silent = len(up)
        if not up:
            self.on_deadline(now)
        for node in up:
            ticket = self.context.draw_ticket()
            self.ask(
                node,
                ReadParts(
                    ticket=ticket,
                    table=table,
                    key=key,
                    questions=self._questions,
                    digest_only=True,
                ),
            )

    def on_told(self, now: Instant, node: int, body: PartsRead) -> None:
        """One more has read it."""
        del node
        self.context.forget(body.ticket)
        self._silent -= 1
        if not self._silent:
            self.on_deadline(now)

    def on_deadline(self, now: Instant) -> None:
        """Stop waiting."""
        if not self.is_over:
            self.end()
            self._then(now)
