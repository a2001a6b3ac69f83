"""`python -m tests.simulation.whole_stories TIER` tells the whole stories of ten seeds of a tier.

A fingerprint has who did what, and when. This has the details, too, and none of the events is left
out, so that two processes can be compared line by line.
"""

import sys
from zlib import crc32

from lab.simulate.command import TIERS
from lab.worlds.gossip.world import GossipTrial, GossipWorld
from lab.worlds.run import Outcome, outcome_of
from tenure.sim.kernel.cores import no_progress
from tenure.sim.kernel.story import Story

FIRST_SEED, SEEDS = 100, 10
HOURS = {
    "lease": 0.2,
    "cache": 0.2,
    "entity": 0.3,
    "services": 0.05,
    "columns": 0.3,
    "gossip": 0.05,
}
"""The simulated hours of a seed in each tier: a second or two for all ten."""


def tell_all() -> None:
    """Print each event of every story from now on, while it happens."""
    keep = Story.tell

    def tell(self: Story, real: int, who: str, what: str, detail: object = "") -> None:
        keep(self, real, who, what, detail)
        details = self.in_words(detail)
        print(real, who, what, f"{crc32(details.encode()):08x}", details[:80])

    Story.tell = tell  # type: ignore[method-assign]


def run(tier: str, seed: int, hours: float) -> Outcome:
    if tier == "gossip":
        world = GossipWorld(GossipTrial(seed=seed, hours=hours))
        return outcome_of(seed, world, no_progress)
    of = TIERS[tier]
    (outcome,) = of.run_many([of.trial(seed=seed, hours=hours)], workers=1)
    return outcome


if __name__ == "__main__":
    tell_all()
    name = sys.argv[1]
    for number in range(FIRST_SEED, FIRST_SEED + SEEDS):
        print(run(name, number, HOURS[name]))
