"""The verbs of operators, in one table: those that steer a pool, and those that change a ring.

A verb is a command of the leader, and words for people. Everything else is made from these: a path
in the JSON API and its place in the OpenAPI document (`steering_api`, `openapi`), the body with the
command's fields (`command_bodies`), and a command of `tenure` (`cli.steering`). To add one, write
the leader's command and add a line here.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from tenure.protocol.lease.answers import Steered
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
from tenure.protocol.topology.answers import RingSteered
from tenure.protocol.topology.questions import (
    AddNode,
    CompareNow,
    MakeTable,
    MoveNode,
    RemoveNode,
    ReplaceNode,
    RingCommand,
    SetBalance,
    TakeBackChange,
)

Place: TypeAlias = Literal["pool", "cluster"]
BY_OPERATOR = "by_operator"
"""The field that nobody gives: the token with which a command comes says it."""
COMMON = ("pool", "cluster", "dry_run", BY_OPERATOR)
"""The fields that are no arguments: where a command acts, and whether it only says what it would
do.
"""


class Verb(NamedTuple):
    """One verb: the leader's command, and the words for people."""

    command: type[SteeringCommand | RingCommand]
    help: str
    example: str
    """The arguments that may follow the verb on the command line."""
    done: str = ""
    """The text for what was done, made from the given fields. The leader says it of a ring."""
    already: str = ""
    """The text if it was so before."""

    @property
    def place(self) -> Place:
        """The field that is in the path."""
        return "pool" if "pool" in self.command.__struct_fields__ else "cluster"

    @property
    def answer(self) -> type[Steered | RingSteered]:
        """The leader's answer."""
        return Steered if self.place == "pool" else RingSteered

    @property
    def given(self) -> tuple[str, ...]:
        """The fields that an operator gives, besides those that all commands have."""
        return tuple(each for each in self.command.__struct_fields__ if each not in COMMON)


POOL_VERBS: Mapping[str, Verb] = {
    "drain": Verb(
        Drain,
        "Move all ranges away from an owner.",
        "rooms ann --dry-run",
        "{owner} is drained: all of its ranges move to other owners",
        "{owner} is already drained",
    ),
    "cordon": Verb(
        Cordon,
        "Give an owner no new ranges.",
        "rooms ann",
        "{owner} is cordoned: it gets no new ranges",
        "{owner} is already cordoned",
    ),
    "uncordon": Verb(
        Uncordon,
        "End the cordon or drain of an owner.",
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
        "Remove the pin of a key: the policy places it again.",
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
        "Resume balancing a pool.",
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
        "Choose the policy that decides where ranges go: weighted, ring, deal or yours.",
        "rooms ring --dry-run",
        "{pool} is planned by {policy}",
        "{pool} is already planned by {policy}",
    ),
}

RING_VERBS: Mapping[str, Verb] = {
    "add": Verb(AddNode, "Add a waiting node to the ring.", "chat node-4 --dry-run"),
    "remove": Verb(
        RemoveNode,
        "Remove a node for good; other nodes copy its data from the replicas.",
        "chat node-2",
    ),
    "replace": Verb(
        ReplaceNode,
        "Replace a node by a waiting one, and remove it for good.",
        "chat node-2 node-5",
    ),
    "move": Verb(
        MoveNode, "Move a node to another place on the ring.", "chat node-2 --token 0x8000"
    ),
    "take-back": Verb(TakeBackChange, "Undo the change that is under way.", "chat"),
    "balance": Verb(
        SetBalance,
        "Let the manager move tokens on its own, one at a time, to even out the load.",
        "chat auto",
    ),
    "compare": Verb(CompareNow, "Compare replicas at once, not only in the next minute.", "chat"),
    "tables": Verb(MakeTable, "Make a table, or add families to it.", "chat"),
}

PATHS: Mapping[str, Verb] = {
    **{f"/v1/pools/{{pool}}/{verb}": each for verb, each in POOL_VERBS.items()},
    **{f"/v1/clusters/{{cluster}}/{verb}": each for verb, each in RING_VERBS.items()},
}
"""Where the JSON API has each of them."""
