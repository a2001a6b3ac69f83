"""The routes that members tell: where in a path their keys are, as a label with which they join.

So a gateway that knows nothing but a manager can find the routes of an application, which its
author has written already, for Relay.
"""

from collections.abc import Iterable, Mapping

from tenure.client.arguments import checked_labels
from tenure.protocol.lease.limits import LABEL_CHARACTERS, LABELS_PER_OWNER

LABEL = "tenure.paths"


def told_routes(paths: Iterable[str], own: Mapping[str, str] | None) -> dict[str, str]:
    """The labels of a member with these paths of keys, and with its user's own labels. Those come
    first: where there is no room beside them, nothing is told, and Relay relays as ever.
    """
    labels = checked_labels(own)
    # A space stands between two; a path that has one itself cannot be a route.
    told = " ".join(each for each in paths if len(each.split()) == 1)
    has_room = len(labels) < LABELS_PER_OWNER and len(told) <= LABEL_CHARACTERS
    return {LABEL: told, **labels} if told and has_room else labels


def read_told(labels: Mapping[str, str]) -> list[str]:
    """The paths that a member has told."""
    return labels.get(LABEL, "").split()
