"""Every operation of a replica has its terms, and its result is an answer."""

from typing import Any, get_args

from tenure.protocol.replication.operations import (
    TERMS,
    AnyAnswer,
    AnyOperation,
    RangeOperation,
    ReplicaAnswer,
    ReplicaOperation,
)
from tenure.protocol.replication.tasks import NodeTask, Task


def test_every_operation_has_its_terms() -> None:
    assert set(TERMS) == set(get_args(AnyOperation))
    assert set(get_args(RangeOperation)) < set(TERMS)


def test_what_changes_something_is_answered_when_it_is_durable() -> None:
    changing = {kind: terms.waits for kind, terms in TERMS.items() if terms.changes}
    assert set(changing.values()) <= {"all", "for ever"}


def test_whatever_is_defined_can_be_said() -> None:
    """What is missing in a union could not be decoded, and would be left out of every check."""
    kinds = {each for each in _below(ReplicaOperation) if not _below(each)}
    assert kinds == set(get_args(AnyOperation))
    assert set(_below(ReplicaAnswer)) == set(get_args(AnyAnswer))
    assert set(_below(Task)) == set(get_args(NodeTask))


def _below(kind: type[Any]) -> list[type[Any]]:
    return [each for direct in kind.__subclasses__() for each in (direct, *_below(direct))]
