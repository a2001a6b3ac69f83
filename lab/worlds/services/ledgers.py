"""All that was published, and its rules: a number belongs to one message, and a message has one
number in an epoch.
"""

from lab.worlds.services.device import Publication
from tenure.sim.kernel.checkers import Violation


class PublicationLedger:
    """The ledger of all topics."""

    def __init__(self) -> None:
        self._payloads: dict[tuple[str, str, int], str] = {}
        self.count = 0

    def add(self, of: Publication) -> None:
        """This was accepted. Raises Violation."""
        self.count += 1
        place = of.topic, of.epoch, of.number
        there = self._payloads.setdefault(place, of.payload)
        if there != of.payload:
            raise Violation("one message a number", f"{there} and {of.payload} are at {place}")
