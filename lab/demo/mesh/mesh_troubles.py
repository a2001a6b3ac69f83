"""What may happen to whom in a round of the scenario, and in which order rounds try it."""

from collections.abc import Iterator
from itertools import count, product
from typing import Literal, TypeAlias, get_args

import msgspec

from lab.demo.mesh.live_mesh import MANAGER, OF_EACH, SERVICES
from lab.demo.mesh.mesh_devices import HOME_PC, WORK_PC

Step: TypeAlias = Literal["address", "saying", "drain", "draining"]
Trouble: TypeAlias = Literal["kill", "stop"]
Part: TypeAlias = Literal["worker", "frontend", "manager", "client"]
WHEN: dict[Step, str] = {
    "address": "before the home PC says its address",
    "saying": "while the home PC says its address",
    "drain": "when that was acknowledged, before the work PC comes online",
    "draining": "while the work PC drains its queue",
}
TROUBLES: dict[Trouble, str] = {
    "kill": "is killed",
    "stop": "is stopped past the term of its leases",
}
STRIDE = 7


class PlannedTrouble(msgspec.Struct, frozen=True):
    """Something that happens to one process in a round."""

    who: str
    trouble: Trouble
    step: Step

    @property
    def part(self) -> Part:
        """The part that it plays."""
        if self.who in (HOME_PC, WORK_PC):
            return "client"
        if self.who == MANAGER:
            return "manager"
        return "frontend" if self.who.startswith("frontend") else "worker"

    def __str__(self) -> str:
        return f"{self.who} {TROUBLES[self.trouble]} {WHEN[self.step]}"


FIRST = (
    PlannedTrouble(HOME_PC, "kill", "saying"),
    PlannedTrouble("frontend-1", "kill", "saying"),
    PlannedTrouble("devices-1", "kill", "saying"),
    PlannedTrouble(HOME_PC, "kill", "drain"),
    PlannedTrouble(MANAGER, "kill", "drain"),
    PlannedTrouble("queues-2", "stop", "address"),
    PlannedTrouble(WORK_PC, "kill", "draining"),
    PlannedTrouble("frontend-2", "kill", "draining"),
)
"""One of each kind, which every run tries, however short it is."""


def planned() -> Iterator[PlannedTrouble]:
    """The troubles of all rounds, for ever."""
    yield from FIRST
    workers = [f"{name}-{number + 1}" for name in SERVICES for number in range(OF_EACH)]
    frontends = [f"frontend-{number + 1}" for number in range(OF_EACH)]
    everything = [
        PlannedTrouble(who, trouble, step)
        for step, who, trouble in [
            *product(get_args(Step), workers, get_args(Trouble)),
            *product(get_args(Step), [*frontends, MANAGER], ["kill"]),
            *[("saying", HOME_PC, "kill"), ("drain", HOME_PC, "kill")],
            ("draining", WORK_PC, "kill"),
        ]
    ]
    for turn in count():
        # A stride that reaches all, and soon something of everything.
        yield everything[turn * STRIDE % len(everything)]
