"""The faults of a world of entities: those of programs, of their connections, and of a store."""

from lab.worlds.entity.store import STORE_FAULTS
from tenure.sim.app.strikes import FAULTS as OF_PROGRAMS
from tenure.sim.app.strikes import AppStrikes
from tenure.sim.kernel.faults import Fault, FaultTable, terms_apart


class EntityStrikes(AppStrikes):
    """The faults of managers, of programs, and of the messages between programs."""

    def links_break(self) -> None:
        """End all connections between programs."""
        self.site.links.cut()


LINKS_BREAK = Fault("links break", terms_apart, EntityStrikes.links_break)
LINK_BREAKS = Fault("link breaks")
"""A link breaks in the middle of a message."""
FAULTS = FaultTable(
    (*OF_PROGRAMS.faults, LINKS_BREAK, LINK_BREAKS, *STORE_FAULTS),
    {
        **{name: each for name, each in OF_PROGRAMS.aliases.items() if name not in ("all", "none")},
        "store": STORE_FAULTS,
    },
    OF_PROGRAMS.idle,
)
