"""The judge of small worlds of leases: beliefs, commits and routes, as plain numbers.

There is one key, so each promise is about a few numbers. They are part of the state that is
searched: if two stories led to the same machines, but made different promises, both go on.
"""

from typing import Any, NamedTuple

from tenure.sim.kernel.checkers import Violation


class SeenLease(NamedTuple):
    """The lease of the key that an owner's readers see."""

    incarnation: int = 0
    number: int = 0
    expires_at: int = 0


class SeenRoute(NamedTuple):
    """The route that a lookup's readers see, and the state on which its client relies."""

    address: str = ""
    in_contact: bool = False
    sequence: int = 0
    sent_at: int = 0
    """When the newest question was sent, by the lookup's clock."""
    asked_at: int = 0
    """When the question was sent that was answered last."""
    knew: int = 0
    """The number that the lookup knew before the step that is under way."""
    relies_on: int = 0
    """The number under which an owner took what the client published. 0 if there is none."""
    lost_at: int = 0
    """The LSN of the record that ended that state. 0 if it is unbroken."""


class SmallJudge(NamedTuple):
    """The judge, with what the checkers remember."""

    beliefs: tuple[SeenLease, ...]
    route: SeenRoute = SeenRoute()
    last_number: int = 0
    owner: int = 0
    """The key's owner, by the journal."""
    number: int = 1
    """The highest number that the journal has."""
    since: int = 0
    numbers: tuple[tuple[int, int], ...] = ()
    """All numbers that were ever given, each with the LSN of its record."""

    # --- what is believed ---

    def with_belief(self, owner: int, belief: SeenLease) -> "SmallJudge":
        """An owner's readers see a new belief."""
        beliefs = (*self.beliefs[:owner], belief, *self.beliefs[owner + 1 :])
        return self._replace(beliefs=beliefs)

    def check_belief(self, number: int, *, went_on: bool) -> "SmallJudge":
        """An owner alone believes under this number: its belief went on, or is a new one."""
        if number > self.number:
            raise Violation("S4: told before it was durable", f"number {number}")
        if not went_on and number <= self.last_number:
            raise Violation("S3: a number came again", f"{number} after {self.last_number}")
        return self._replace(last_number=number)

    # --- what is committed ---

    def with_entry(self, owner: int, number: int, since: int, lsn: int) -> "SmallJudge":
        """The journal has a new entry for the key."""
        if number <= self.number and number != 1:
            raise Violation("S3: a number came again", f"{number} in the journal")
        route = self.route
        if route.lost_at == 0 and 0 < route.relies_on < since:
            route = route._replace(lost_at=lsn)
        numbers = (*self.numbers, (lsn, number))
        return SmallJudge(self.beliefs, route, self.last_number, owner, number, since, numbers)

    # --- what is routed ---

    def with_route(self, **changes: Any) -> "SmallJudge":
        """Something about the lookup has changed."""
        return self._replace(route=self.route._replace(**changes))

    def with_loss(self, why: str) -> "SmallJudge":
        """The lookup signals that the key's state is gone."""
        knew = self.route.knew
        if why == "lost" and self.since <= knew:
            raise Violation(
                "S2: signalled in vain", f"unbroken since {self.since}, known under {knew}"
            )
        return self.with_route(relies_on=0, lost_at=0)

    def check_route(self, lsn: int) -> "SmallJudge":
        """The lookup knows the journal up to `lsn`, so it must have signalled what was lost up to
        there.
        """
        route = self.route
        if route.in_contact and 0 < route.lost_at <= lsn:
            raise Violation(
                "S2: a loss was not signalled",
                f"relied on under {route.relies_on}, unbroken only since {self.since}",
            )
        known = (number for at, number in reversed(self.numbers) if at <= lsn)
        return self.with_route(knew=next(known, 0))
