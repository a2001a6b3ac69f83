"""The leaders of other journals that answer a client, beside the one that it follows (P25).

A client that is answered by the leaders of two journals is the one that can see that there are two.
One answer is only a suspicion. The other may have ended before the client's own leader began: so
the answer counts only if the client had that leader before it asked. And that leader may have ended
since: so the other is proven when it answers a question that was asked after the other was heard.
"""

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.protocol.lease.messages import Introduction
from tenure.protocol.lease.rivalry import Rival
from tenure.protocol.lease.timing import PAPER

FORGOTTEN_NS = PAPER.hold_ns
"""How long after it was last heard a rival is forgotten: whatever it had granted has run out."""
KEPT_OF_A_MANAGER = 8
"""How many journals of one manager are remembered: a process has one, and may be started anew. One
that lies, and names another with each answer, hides no other manager, and takes no memory.
"""
AROUND = 10
"""After how many renewals, or syncs, a client asks all managers whether any other leads."""
WAY_OUT = (
    "stop the managers of the journal that is not to go on, or run `tenure resolve --keep URL`; "
    "see `tenure docs operating/several-managers`"
)


class OtherLeader(msgspec.Struct, frozen=True, kw_only=True):
    """A leader of another journal, as it has introduced itself."""

    rival: Rival
    granted: bool
    """Whether it may have granted anything."""
    since: Instant
    heard_at: Instant
    is_proven: bool = False


class OtherLeaders:
    """All leaders of other journals that are known."""

    def __init__(self) -> None:
        self._known: dict[int, OtherLeader] = {}
        self._over: frozenset[int] = frozenset()
        self.managers: frozenset[str] = frozenset()
        """Those that have led another journal: they are told of ours, whether theirs is over or
        not.
        """

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def rival(self) -> Rival | None:
        """The one to tell leaders of: only what is proven is told, as they stop because of it."""
        return next((each.rival for each in self._known.values() if each.is_proven), None)

    @property
    def may_have_granted(self) -> bool:
        """Whether another leader is proven that may have granted what this client's leader has
        granted, too.
        """
        return any(each.is_proven and each.granted for each in self._known.values())

    def hear(self, now: Instant, rival: Rival, *, granted: bool) -> None:
        """A leader of another journal has answered."""
        known = self._known.get(rival.journal)
        self.managers |= {rival.manager}
        if rival.journal in self._over or (known is None and self._names_many(rival.manager)):
            return
        self._known[rival.journal] = OtherLeader(
            rival=rival,
            granted=granted,
            since=known.since if known else now,
            heard_at=now,
            is_proven=known is not None and known.is_proven,
        )

    def _names_many(self, manager: str) -> bool:
        of_it = (each for each in self._known.values() if each.rival.manager == manager)
        return sum(1 for _ in of_it) >= KEPT_OF_A_MANAGER

    def answered(self, asked_at: Instant) -> list[Rival]:
        """The client's own leader has answered a question that was sent then; which others are
        proven by it.
        """
        new = [e for e in self._known.values() if not e.is_proven and e.since <= asked_at]
        for each in new:
            proven = msgspec.structs.replace(each, is_proven=True)
            self._known[each.rival.journal] = proven
        return [each.rival for each in new]

    def decided(self, over: tuple[int, ...]) -> None:
        """The client's own leader says which journals are over: their leaders are no rivals."""
        self._over = frozenset(over)
        self._known = {each: leader for each, leader in self._known.items() if each not in over}

    def advance(self, now: Instant) -> None:
        """Forget those that have been silent for long enough."""
        for journal, each in list(self._known.items()):
            if now >= each.heard_at + FORGOTTEN_NS:
                del self._known[journal]

    @property
    def wake_at(self) -> Instant:
        """When the next is forgotten."""
        heard = (Instant(each.heard_at + FORGOTTEN_NS) for each in self._known.values())
        return min(heard, default=FAR_FUTURE)

    def forget_all(self) -> None:
        """The client follows another leader from now on: begin anew."""
        self._known.clear()
        self._over, self.managers = frozenset(), frozenset()


def rival_of(manager: str, said: Introduction) -> Rival:
    """The leader of another journal, as it has introduced itself."""
    return Rival(manager=manager, journal=said.journal, succeeds=said.succeeds)


def two_leaders(ours: str, journal: int, rival: Rival) -> str:
    """The note about two living leaders."""
    return (
        f"{ours} leads the journal {journal:016x}, and {rival.manager} leads another, "
        f"{rival.journal:016x}: each would grant every key. Nothing more is taken from either; "
        f"{WAY_OUT}"
    )


def is_of_realm(theirs: str, ours: str) -> bool:
    """Whether a manager may be followed by a client. One without a realm may be an older one."""
    return not (theirs and ours) or theirs == ours


def wrong_realm(theirs: str, ours: str) -> str:
    """Why a manager is not followed."""
    return (
        f"it is of the realm {theirs!r}, and this client of {ours!r}; name the managers of its own "
        "realm, or give it the realm of these (TENURE_REALM)"
    )
