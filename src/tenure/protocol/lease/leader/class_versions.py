"""The versions of the class that the owners of a pool of entities have, and who is behind.

An owner cannot read what a later version of its class has kept. So while a pool has owners of
several versions, those that are behind keep the ranges that they have, and are given nothing new:
what has been at a newer owner goes to newer owners only, as long as there are any.
"""

from collections.abc import Sequence

from tenure.protocol.balance.policy import Candidate
from tenure.protocol.lease.limits import CLASS_VERSION_LABEL

FIRST = 1
MOST_DIGITS = 18


def without_behind(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, in which those that are behind are cordoned."""
    newest = max((version_of(each) for each in candidates if not each.cordoned), default=FIRST)
    if newest == FIRST:  # as of owners whose classes have no version, or are no entities
        return list(candidates)
    return [
        each._replace(cordoned=each.cordoned or version_of(each) < newest) for each in candidates
    ]


def version_of(candidate: Candidate) -> int:
    """The version of an owner's class."""
    said = candidate.labels.get(CLASS_VERSION_LABEL, "")
    is_number = said.isascii() and said.isdigit() and len(said) <= MOST_DIGITS
    return int(said) if is_number else FIRST
