"""Whether a store answers, as everybody who uses it is told: in errors, and in the log."""

import logging

from tenure.errors import StoreAway, StoreFailed

logger = logging.getLogger("tenure.entities")


class StoreHealth:
    """The health of one pool's store, as it is seen from one process."""

    def __init__(self, pool: str, store: str) -> None:
        self._what = f"the store of {pool!r}, {store},"
        self.is_away = False
        """Whether the store failed the last time."""
        self._is_told = False
        """Whether the log says that it is away."""

    def answered(self) -> None:
        """The store has answered."""
        if self._is_told:
            logger.warning("%s answers again", self._what)
        self.is_away = self._is_told = False

    def failed(self, why: object) -> StoreFailed:
        """The error for a change of which nobody knows whether the store has kept it."""
        self.is_away = True
        return StoreFailed(f"{self._what} failed, and may have kept the last change or not: {why}")

    def not_sent(self, why: object) -> StoreFailed:
        """The error for a change that was not even sent. What the call has done elsewhere is
        done, so it is not called "not begun".
        """
        self.is_away = True
        return StoreFailed(f"{self._what} failed, and was not sent the last change: {why}")

    def away(self, why: object) -> StoreAway:
        """The error for what was to be asked before anything was begun."""
        self.is_away = True
        if not self._is_told:
            logger.warning(
                "%s cannot be asked, so calls are refused and alarms wait; nothing of them is "
                "begun, and they go on when it answers: %s",
                self._what,
                why,
            )
        self._is_told = True
        return StoreAway(f"{self._what} cannot be asked, so nothing was begun: {why}")

    def not_opened(self, why: object) -> StoreFailed:
        """The error for a store that cannot be opened."""
        return StoreFailed(f"{self._what} cannot be opened: {why}")
