"""Inspecting what an owner runs beside its leases: the leader passes an operator's question on, and
the owner's answer back.

An owner whose `EntityReport.inspects` says so takes such questions, and is sent no others. They go
over the connection of its renewals, because managers connect to nobody, but no machine hears of
them: no lease depends on them. An owner answers the leader that it follows, and no other manager.
"""

from tenure.base.numbers import Nonce
from tenure.protocol.entity.inspection import InspectionAnswer, InspectionQuestion
from tenure.protocol.lease.messages import Message, Name


class Inspect(Message, frozen=True, kw_only=True):
    """A question for an owner of the pool."""

    pool: Name
    ticket: Nonce
    """Drawn for each question, and repeated by its answer."""
    question: InspectionQuestion


class Inspected(Message, frozen=True, kw_only=True):
    """The answer of the owner that was asked."""

    pool: Name
    ticket: Nonce
    answer: InspectionAnswer
