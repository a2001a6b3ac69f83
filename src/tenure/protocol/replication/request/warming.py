"""Warming: all replicas bring what will be read soon into their memory.

A replica that sends a digest of a part of a row has read that part. So all replicas that are up are
asked for digests, and none of their data goes over the network. For a family with super columns,
one replica first says their names. A replica that is silent is not waited for longer than for any
other answer, and nobody is told.
"""

from collections.abc import Sequence
from contextlib import suppress

from tenure.protocol.replication.conversation import (
    Conversation,
    Conversing,
    RequestFailed,
    TopologyReplaced,
    Until,
)
from tenure.protocol.replication.messages import PageFound, ReadPage, ReadSupers, SupersFound
from tenure.protocol.replication.operations import ReadParts
from tenure.protocol.replication.request.reading import read_parts
from tenure.protocol.replication.request.settling import RowAsked
from tenure.protocol.replication.row.pages import CellPage, Slice, SuperPage
from tenure.protocol.replication.row.sections import SectionQuestion

SUPERS_AT_ONCE = 32
"""A replica reads what one message asks for in one step."""
NOT_WARMED = (RequestFailed, TopologyReplaced)
"""These end the warming early: what is not warm is read when it is needed."""


def warm_page(talk: Conversation, asked: ReadPage) -> Conversing[PageFound]:
    """Warm it; the answer is an empty page."""
    question = SectionQuestion(family=asked.family, super=asked.super, part=asked.part)
    with suppress(*NOT_WARMED):
        yield from _warm(talk, asked, [question])
    return PageFound(request=asked.request, page=CellPage(()))


def warm_supers(talk: Conversation, asked: ReadSupers) -> Conversing[SupersFound]:
    """Warm them; the answer is an empty page."""
    row = RowAsked(asked.table, asked.key, asked.level)
    names = SectionQuestion(family=asked.family, part=asked.part, lists_supers=True)
    [found] = yield from read_parts(talk, row, [names])
    part = Slice(asked.within)
    questions = [
        SectionQuestion(family=asked.family, super=name, part=part) for name, _ in found.cells
    ]
    with suppress(*NOT_WARMED):
        for first in range(0, len(questions), SUPERS_AT_ONCE):
            yield from _warm(talk, asked, questions[first : first + SUPERS_AT_ONCE])
    return SupersFound(request=asked.request, page=SuperPage(()))


def _warm(
    talk: Conversation, asked: ReadPage | ReadSupers, questions: Sequence[SectionQuestion]
) -> Conversing[None]:
    """Have all replicas that are up read these."""
    question = ReadParts(
        table=asked.table, key=asked.key, questions=tuple(questions), digest_only=True
    )
    replicas, _ = talk.replicas(asked.table, asked.key, "one")
    up = talk.context.in_order(replicas.everyone)
    digests = talk.ask(dict.fromkeys(up, question))
    yield Until(lambda: len(digests) == len(up))
