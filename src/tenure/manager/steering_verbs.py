"""The verbs with which an operator steers a pool, in one table.

A verb is a path under the pool in the JSON API, a command of `tenure`, and a command of the manager
machine, whose fields are what the verb is given. To add one, write the machine's command and add a
line here, and a function to `tenure.cli.steering`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tenure.protocol.lease.steering_events import (
    ChoosePolicy,
    Cordon,
    Drain,
    Evict,
    Freeze,
    PinKey,
    SteeringCommand,
    Uncordon,
    Unfreeze,
    UnpinKey,
)


class Verb(NamedTuple):
    """One verb: the machine's command, and the words for people, made from the given fields."""

    command: type[SteeringCommand]
    help: str
    example: str
    """The arguments that may follow the verb on the command line."""
    done: str
    already: str
    """The text if it was so before."""


VERBS: Mapping[str, Verb] = {
    "drain": Verb(
        Drain,
        "Move everything away from an owner.",
        "rooms ann --dry-run",
        "{owner} is drained: everything that it has moves away",
        "{owner} is already drained",
    ),
    "cordon": Verb(
        Cordon,
        "Give an owner nothing new.",
        "rooms ann",
        "{owner} is cordoned: it gets nothing new",
        "{owner} is already cordoned",
    ),
    "uncordon": Verb(
        Uncordon,
        "End the cordon, or the drain, of an owner.",
        "rooms ann",
        "{owner} can be given ranges again",
        "{owner} is not cordoned",
    ),
    "pin": Verb(
        PinKey,
        "Keep a key at an owner.",
        "rooms room-42 ann",
        "{key} is pinned to {owner}",
        "{key} is already pinned",
    ),
    "unpin": Verb(
        UnpinKey,
        "Let the policy decide again where a key goes.",
        "rooms room-42",
        "{key} is no longer pinned",
        "{key} is not pinned",
    ),
    "freeze": Verb(
        Freeze,
        "Stop balancing a pool.",
        "rooms",
        "{pool} is frozen: only ranges without an owner are granted",
        "{pool} is already frozen",
    ),
    "unfreeze": Verb(
        Unfreeze,
        "Balance a pool again.",
        "rooms",
        "{pool} is balanced again",
        "{pool} is not frozen",
    ),
    "evict": Verb(
        Evict,
        "Stop renewing an owner's leases.",
        "rooms ann --incarnation 7",
        "{owner}, incarnation {incarnation}, is evicted",
        "{owner}, incarnation {incarnation}, is already evicted",
    ),
    "policy": Verb(
        ChoosePolicy,
        "Choose the policy that decides where ranges go: weighted, ring or deal.",
        "rooms ring --dry-run",
        "{pool} is planned by {policy}",
        "{pool} is already planned by {policy}",
    ),
}
