"""Services with one rule left out, which the checkers must catch."""

from dataclasses import dataclass

import msgspec

from tenure.entities.entities import Entities
from tenure.services.documents.document import Condition, Document
from tenure.services.pubsub.topic import Topic
from tenure.services.pubsub.topic_state import TopicState
from tenure.services.queues.queue import Queue
from tenure.sim.kernel.canaries import RuleLeftOut, called
from tenure.sim.services import breaks
from tenure.sim.services.trial import ServicesTrial


@dataclass(frozen=True)
class ServicesCanary(RuleLeftOut):
    """A rule of services left out."""

    mix: tuple[str, ...] | None = None
    """The faults while it is hunted, if all together hardly ever show it."""
    rate: float = 1.0
    """How often that strikes, beside what is drawn."""
    stored: bool | None = None
    """Whether documents have a store; None: drawn."""

    def trial(self, trial: ServicesTrial) -> ServicesTrial:
        """The trial to simulate."""
        if self.mix is None:
            return trial
        return msgspec.structs.replace(
            trial,
            faults=self.mix,
            fault_rate=self.rate,
            has_all_faults=True,
            stored=self.stored,
        )


NONE = ServicesCanary("none")
CANARIES = (
    ServicesCanary(
        "published-before-the-queues",
        "a message is with every target when that is said",
        ((Topic, "settled", breaks.settled_at_once),),
        mix=("crash of an owner", "queue refuses", "queue late"),
        rate=4.0,
    ),
    ServicesCanary(
        "refused-counts-as-taken",
        "what a target refuses is sent again",
        ((TopicState, "report", breaks.all_taken),),
        mix=("queue refuses",),
    ),
    ServicesCanary(
        "one-epoch",
        "a topic that begins anew begins another epoch",
        ((Topic, "_epoch", breaks.always_the_same_epoch),),
    ),
    ServicesCanary(
        "loss-dropped-when-read",
        "a loss stays in the queue until it is acknowledged",
        ((Queue, "sign_on", breaks.without_losses),),
    ),
    ServicesCanary(
        "begins-in-silence",
        "a queue that begins says that an earlier one may be lost",
        ((Queue, "_begin_if_new", breaks.begins_in_silence),),
    ),
    ServicesCanary(
        "reader-not-taken-over",
        "there is one reader, the newest",
        ((Queue, "_take_over", breaks.nothing), (Queue, "_check_reader", breaks.nothing)),
    ),
    ServicesCanary(
        "lost-pool-not-told",
        "losses of other pools are told",
        ((Queue, "look_for_losses", breaks.looks_at_nothing),),
        mix=("crash of an owner",),
        rate=4.0,
    ),
    ServicesCanary(
        "place-forgotten-in-a-move",
        "a repeat counts once, also at the next owner",
        ((Queue, "on_activate", breaks.without_sources),),
        mix=("queue answer lost", "queue late", "leaving"),
        rate=4.0,
    ),
    ServicesCanary(
        "late-put-taken",
        "what a source sent before what the queue has of it is not put in",
        ((Queue, "enqueue", breaks.known_by_ids),),
        mix=("queue late", "crash of an owner"),
        rate=4.0,
    ),
    ServicesCanary(
        "acknowledged-and-kept",
        "what was acknowledged is not delivered again",
        ((Queue, "_acknowledge", breaks.acknowledged_and_kept),),
    ),
    ServicesCanary(
        "published-under-any-id",
        "a repeated publication counts once",
        (
            (Entities, "once", breaks.under_no_id),
            (TopicState, "publish", breaks.under_no_name),
        ),
    ),
    ServicesCanary(
        "any-version",
        "an update depends on the version that is there",
        ((Condition, "check", breaks.nothing),),
    ),
    ServicesCanary(
        "version-stays",
        "each update has a version of its own",
        ((Document, "_put", breaks.version_stays),),
    ),
    ServicesCanary(
        "versions-begin-anew",
        "no version comes again after a loss",
        ((Document, "_put", breaks.versions_begin_anew),),
        mix=("crash of an owner",),
        rate=4.0,
        stored=False,
    ),
    ServicesCanary(
        "section-alone",
        "an update of a section leaves the others",
        ((Document, "put_section", breaks.section_alone),),
    ),
)


def services_canary(name: str) -> ServicesCanary:
    """The canary of that name. Raises ConfigurationError, which lists them all."""
    return NONE if name == NONE.name else called(name, CANARIES)
