"""Reading parts of a row at a level (R7, R8).

The nearest replica says what it has; the others that are needed say a digest of it. If the digests
are the same, that is the answer. Otherwise all say what they have, and it is merged.

A result that was returned must not be lost again: the next reader may ask other replicas. So
replicas that lack a part of it are mended, and it is returned *when as many have it as the level
needs* (D2).

If replicas know of different adoptions of the row, they must agree on that first: the whole row is
mended, and read again.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from tenure.protocol.replication.conversation import (
    Conversation,
    Conversing,
    TopologyReplaced,
    Until,
)
from tenure.protocol.replication.levels import Need, are_met, fewest
from tenure.protocol.replication.operations import MergeState, PartsRead, ReadParts
from tenure.protocol.replication.request.resolving import Resolution, Resolved, agreed
from tenure.protocol.replication.request.settling import RowAsked, mend_row
from tenure.protocol.replication.row.layout import shapes_of
from tenure.protocol.replication.row.sections import SectionQuestion
from tenure.protocol.topology.records import NodeId


class ToldParts:
    def __init__(self, needs: list[Need]) -> None:
        self.needs = needs
        self.digests: Mapping[NodeId, PartsRead] = {}
        self.data: Mapping[NodeId, PartsRead] = {}
        """The answers with parts."""

    @property
    def is_enough(self) -> bool:
        """Whether as many have answered as are needed, with parts or without."""
        return are_met(self.needs, {**self.digests, **self.data})

    @property
    def agreed(self) -> PartsRead | None:
        """The answer with parts that as many as are needed agree on."""
        by_digest: dict[tuple[bytes, int, int, int], list[NodeId]] = {}
        for node, each in {**self.digests, **self.data}.items():
            # Equal parts that count by different adoptions or seals do not mean the same (R21).
            sameness = each.digest, each.sealed, each.adopted, each.attempt
            by_digest.setdefault(sameness, []).append(node)
        for nodes in by_digest.values():
            whole = next((self.data[node] for node in nodes if node in self.data), None)
            if whole is not None and are_met(self.needs, set(nodes)):
                return whole
        return None


def read_parts(
    talk: Conversation, row: RowAsked, questions: Sequence[SectionQuestion]
) -> Conversing[list[Resolved]]:
    while True:
        with suppress(TopologyReplaced):
            told = yield from told_parts(talk, row, questions)
            if told.agreed is not None:
                return [agreed(part) for part in told.agreed.parts]
            resolved = yield from _resolve(talk, row, questions, told)
            if resolved is not None:
                return resolved
            yield from mend_row(talk, row)


def told_parts(
    talk: Conversation, row: RowAsked, questions: Sequence[SectionQuestion]
) -> Conversing[ToldParts]:
    """What enough replicas agree on, or what each of enough replicas has, since they differ."""
    replicas, needs = talk.replicas(*row)
    question = ReadParts(table=row.table, key=row.key, questions=tuple(questions))
    nearest = talk.context.in_order(replicas.everyone)
    first, *others = fewest(needs, nearest)
    told = ToldParts(needs)
    told.data = data = talk.ask({first: question})
    # Mostly all are the same, and one of them sends data (R7).
    digest = msgspec.structs.replace(question, digest_only=True)
    told.digests = talk.ask(dict.fromkeys(others, digest))
    asked = [first]

    def ask_for_data(nodes: Sequence[NodeId]) -> None:
        new = [node for node in nodes if node not in asked]
        asked.extend(new)
        talk.ask(dict.fromkeys(new, question), data)

    yield Until(
        lambda: told.is_enough or told.agreed is not None,
        or_else=lambda: ask_for_data(nearest),  # one of them is silent
    )
    if told.agreed is None:
        ask_for_data([*told.digests])
        yield Until(
            lambda: are_met(needs, data) or told.agreed is not None,
            or_else=lambda: ask_for_data(nearest),
        )
    return told


def _resolve(
    talk: Conversation, row: RowAsked, questions: Sequence[SectionQuestion], told: ToldParts
) -> Conversing[list[Resolved] | None]:
    """Merge what they have, and mend those that lack something. None if they must agree on the
    adoption of the row first.
    """
    # Only what is of one adoption can be merged part by part (R21).
    if len({(each.adopted, each.attempt) for each in told.data.values()}) > 1:
        return None
    shapes = shapes_of(talk.context.topology.tables[row.table])
    resolution = Resolution(questions, [shapes[each.family] for each in questions], told.data)
    mends = {node: resolution.mend_for(node) for node in told.data}
    have = {node for node, state in mends.items() if state is None}
    taken = talk.ask(
        {
            node: MergeState(table=row.table, key=row.key, state=state)
            for node, state in mends.items()
            if state is not None
        }
    )
    # Otherwise the next reader, who asks others, could see less (D2).
    yield Until(
        lambda: (
            are_met(told.needs, have | taken.keys())
            or any(each.wants_whole for each in taken.values())
        )
    )
    return None if any(each.wants_whole for each in taken.values()) else resolution.resolved
