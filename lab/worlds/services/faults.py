"""The faults of a world of services: those of programs, and queues that fail to answer pubsub."""

from lab.worlds.entity.faults import LINK_BREAKS, LINKS_BREAK
from lab.worlds.entity.store import STORE_FAULTS
from tenure.sim.app.strikes import FAULTS as OF_PROGRAMS
from tenure.sim.kernel.faults import Fault, FaultTable

QUEUE_SLOW = Fault("queue slow")
QUEUE_REFUSES = Fault("queue refuses")
QUEUE_ANSWER_LOST = Fault("queue answer lost")
QUEUE_LATE = Fault("queue late")
"""A queue takes a message when its sender has given up, and has sent others, or is gone."""
OF_QUEUES = QUEUE_SLOW, QUEUE_REFUSES, QUEUE_ANSWER_LOST, QUEUE_LATE
FAULTS = FaultTable(
    (*OF_PROGRAMS.faults, LINKS_BREAK, LINK_BREAKS, *STORE_FAULTS, *OF_QUEUES),
    {name: each for name, each in OF_PROGRAMS.aliases.items() if name not in ("all", "none")},
    OF_PROGRAMS.idle,
)
