"""Machines of caches with one rule left out, which the checkers must catch."""

from dataclasses import dataclass

import msgspec

from tenure.base.instants import FAR_FUTURE
from tenure.protocol.volume.asking import Asks
from tenure.protocol.volume.carried_writes import CarriedWrites
from tenure.protocol.volume.client import CacheMachine
from tenure.protocol.volume.drains import Drains
from tenure.protocol.volume.entries import Entries
from tenure.protocol.volume.epochs import Opening
from tenure.protocol.volume.fills import Fills
from tenure.protocol.volume.invalidations import Invalidations
from tenure.protocol.volume.loads import LoadsUnderWay
from tenure.protocol.volume.own_writes import OwnWriting
from tenure.protocol.volume.read_leases import ReadLeases
from tenure.protocol.volume.readers import Readers
from tenure.protocol.volume.served_ranges import ServedRanges
from tenure.protocol.volume.server import VolumeServer
from tenure.protocol.volume.terms import Terms
from tenure.protocol.volume.versions import Versions
from tenure.protocol.volume.withdrawn_ranges import Withdrawals
from tenure.protocol.volume.write_turns import WriteTurns
from tenure.protocol.volume.writes import Acknowledgements, Writes
from tenure.sim.kernel.canaries import RuleLeftOut, called
from tenure.sim.volume import breaks
from tenure.sim.volume.store import FencedStore
from tenure.sim.volume.trial import VolumeTrial


@dataclass(frozen=True)
class VolumeCanary(RuleLeftOut):
    """A rule of caches left out."""

    skew: int | None = None

    def trial(self, trial: VolumeTrial) -> VolumeTrial:
        """The trial, with what the canary changes of it."""
        return trial if self.skew is None else msgspec.structs.replace(trial, skew=self.skew)


NONE = VolumeCanary("none")
CANARIES = (
    VolumeCanary(
        "acknowledged-before-applied",
        "V1: what is acknowledged is dead",
        ((CacheMachine, "on_invalidate", breaks.acknowledged_at_once),),
    ),
    VolumeCanary(
        "older-answer-taken",
        "V2: only the answer to the newest question is taken",
        ((Asks, "answers", breaks.any_older_answer),),
    ),
    VolumeCanary(
        "counted-from-receipt",
        "V3: a client counts a lease from when it asked",
        ((Fills, "counted_from", staticmethod(breaks.counted_from_receipt)),),
    ),
    VolumeCanary(
        "no-margin",
        "V3: a server counts a lease for longer than it told",
        ((Terms, "held_ns", breaks.as_long_as_told),),
    ),
    VolumeCanary(
        "bare-lease",
        "V4: a volume lease comes with every item that is not acknowledged",
        ((ReadLeases, "items_for", breaks.no_items),),
    ),
    VolumeCanary(
        "nobody-waited-for",
        "V5: a write waits for whoever may hit the old value",
        ((Acknowledgements, "wait_for", breaks.nothing),),
    ),
    VolumeCanary(
        "half-the-wait",
        "V5: a write waits until the earlier of the two leases ends",
        ((Invalidations, "deadline", staticmethod(breaks.half_as_long)),),
    ),
    VolumeCanary(
        "granted-during-a-write",
        "V5: no object lease is given while a write has its turn",
        ((Writes, "is_written", breaks.never),),
    ),
    VolumeCanary(
        "waits-for-the-mute",
        "V6: how long an item is waited for is fixed when it is made",
        (
            (Acknowledgements, "are_over", breaks.only_by_acknowledging),
            (Acknowledgements, "due_at", FAR_FUTURE),
        ),
    ),
    VolumeCanary(
        "late-fills-kept",
        "V7: an answer below the mark is not kept",
        ((Fills, "keeps", breaks.always),),
    ),
    VolumeCanary(
        "suspects-not-compared",
        "V8, V15: only what is current is live again",
        ((ReadLeases, "is_current", breaks.all_that_are_listed),),
    ),
    VolumeCanary(
        "unknown-and-unimpressed",
        "V8: who is not on record has suspects only, and no volume lease",
        ((Asks, "doubt_all", breaks.kept_under_another_number),),
    ),
    VolumeCanary(
        "writers-never-waited-for",
        "V9: a writer acknowledges only leases that are older than its write",
        ((WriteTurns, "acknowledges_by_writing", breaks.always_its_own),),
    ),
    VolumeCanary(
        "own-entry-outlives-the-write",
        "V9: before it writes a client makes its entry dead, and answers on their way void",
        ((OwnWriting, "kill_before_writing", breaks.nothing),),
    ),
    VolumeCanary(
        "joined-any-answer",
        "V10: who joined a fetch takes what is live, not what it brought",
        ((CacheMachine, "land", breaks.for_all),),
    ),
    VolumeCanary(
        "overtaken-load-kept",
        "V10: a load that a body overtook gives no lease",
        (
            (LoadsUnderWay, "overtake", breaks.never_overtaken),
            (LoadsUnderWay, "begin", breaks.begun_as_if_alone),
        ),
    ),
    VolumeCanary(
        "overtaken-load-joined",
        "V10: a load that a body overtook takes no joiners",
        ((LoadsUnderWay, "overtake", breaks.joined_though_overtaken),),
    ),
    VolumeCanary(
        "no-fence",
        "V14: the store refuses the writes of past servers",
        ((FencedStore, "write", breaks.whatever_its_number),),
    ),
    VolumeCanary(
        "floors-stay",
        "V15: forgetting a write raises the floor",
        ((Versions, "raise_floor", breaks.floors_stay),),
    ),
    VolumeCanary(
        "writes-not-known",
        "V15: an entry is compared with the last write of its object",
        ((Versions, "written", breaks.raised_by_nothing),),
    ),
    VolumeCanary(
        "known-writes-stay-behind",
        "V15: what is known of writes goes where the state goes",
        ((CarriedWrites, "add", breaks.nothing),),
    ),
    VolumeCanary(
        "starts-at-once",
        "V16: a new server writes nothing while readers of the last one may hit",
        ((Opening, "quiet_ns", breaks.at_once),),
    ),
    VolumeCanary(
        "instant-of-another-boot",
        "V16: an instant that an earlier boot told says nothing",
        ((Opening, "counts_here", breaks.always),),
    ),
    VolumeCanary(
        "old-memory-believed",
        "V16: the store tells that a memory was put back",
        ((VolumeServer, "_on_fenced", breaks.believed_as_it_is),),
    ),
    VolumeCanary(
        "forgotten-while-active",
        "V17: whoever may hit stays on record",
        ((Readers, "may_forget", breaks.always), (Readers, "forgettable", breaks.who_is_silent)),
    ),
    VolumeCanary(
        "never-forgotten",
        "C6, V17: who is silent is forgotten",
        ((Readers, "forgettable", breaks.nobody),),
    ),
    VolumeCanary(
        "no-limit",
        "C6, V17: there are no more object leases than the limit says",
        ((Readers, "has_room", breaks.always),),
    ),
    VolumeCanary(
        "never-renewed",
        "C7: a volume lease in use is renewed before it ends",
        ((CacheMachine, "on_used", breaks.nothing),),
    ),
    VolumeCanary(
        "held-and-fetched-anew",
        "C7, V15: what is listed while its object lease runs is current, whatever is forgotten",
        ((ReadLeases, "is_held", staticmethod(breaks.never)),),
    ),
    VolumeCanary(
        "held-whatever-it-has",
        "V15: an object lease says nothing of an entry from before it was given",
        ((ReadLeases, "is_held", staticmethod(breaks.held_whatever_it_has)),),
    ),
    VolumeCanary(
        "lease-before-items",
        "V1, V4: items are applied before the lease is believed that they came with",
        ((Fills, "take", breaks.lease_before_items),),
    ),
    VolumeCanary(
        "live-before-lease",
        "V1: the end of the volume lease is read before whether the entry is live",
        ((Entries, "hit", breaks.live_before_lease),),
    ),
    VolumeCanary(
        "reconnects-in-any-order",
        "V2: a Reconnect is taken in rising order",
        ((Readers, "is_newer", breaks.always),),
    ),
    VolumeCanary(
        "written-twice",
        "V2: writes of a reader are taken in rising order",
        ((WriteTurns, "is_new_write", breaks.always),),
    ),
    VolumeCanary(
        "quiet-without-margin",
        "V16: the quiet is as long as leases may last on the slowest clock",
        ((Opening, "quiet_ns", breaks.the_present_term),),
    ),
    VolumeCanary(
        "deaf-to-what-others-saw",
        "C5: what the application saw it never reads older",
        ((CacheMachine, "on_saw", breaks.nothing),),
    ),
    VolumeCanary(
        "last-request-remembered",
        "V9: an object lease is remembered by its highest request",
        ((Readers, "highest", staticmethod(breaks.the_last)),),
    ),
    VolumeCanary(
        "lease-beyond-the-term",
        "V11: a volume lease ends within the owner's term",
        ((ReadLeases, "bound_ns", breaks.unbounded),),
    ),
    VolumeCanary(
        "answer-before-the-end-of-the-term",
        "V11: the end of the term comes before any event",
        ((VolumeServer, "handle", breaks.term_after_the_event),),
    ),
    VolumeCanary(
        "returned-undrained",
        "V12, V16: what goes, or closes, does so when nobody can hit anything of it",
        ((Withdrawals, "is_drained", breaks.always),),
    ),
    VolumeCanary(
        "leased-while-draining",
        "V12: what is withdrawn is given no more object leases",
        ((Drains, "is_draining", breaks.never),),
    ),
    VolumeCanary(
        "written-while-draining",
        "V5, V12: whoever comes next for the same keys waits with the one before",
        ((Invalidations, "wait_with", breaks.nothing),),
    ),
    VolumeCanary(
        "no-quiet-after-death",
        "V13: a grant carries the quiet",
        ((ServedRanges, "quiet_until", breaks.not_at_all),),
    ),
    VolumeCanary(
        "read-as-lost-at-once",
        "V13: where the state died too, reads wait as well",
        ((ServedRanges, "reads_from", breaks.not_at_all),),
    ),
    VolumeCanary(
        "as-of-by-count-alone",
        "V15: counts compare within one number",
        ((Versions, "is_current", breaks.by_count_alone),),
    ),
    VolumeCanary(
        "grant-without-a-floor",
        "V15: the floor of a grant is its own number",
        ((Versions, "begin", breaks.any_number_is_the_floor),),
    ),
    VolumeCanary("skew-over-the-bound", "clock rates within 13/12", skew=90_000),
)
BY_SCHEDULE = (
    VolumeCanary(
        "items-of-any-reader",
        "V2: items are taken under the present reader number only",
        ((CacheMachine, "is_of_present_reader", breaks.items_of_any_reader),),
    ),
    VolumeCanary(
        "acknowledged-and-not-applied",
        "V2: what is for a number that is not known is not acknowledged",
        ((CacheMachine, "on_invalidate", breaks.unapplied_but_acknowledged),),
    ),
    VolumeCanary(
        "listed-without-marks",
        "V7: what a Renew or Reconnect lists leaves a mark too",
        ((Fills, "raise_marks", breaks.marks_of_contacts_stay),),
    ),
)
"""Rules that no world breaks, or none soon enough: a schedule catches each."""


def cache_canary(name: str) -> VolumeCanary:
    """The canary called `name`. Raises ConfigurationError, naming those there are."""
    return called(name, (NONE, *CANARIES), BY_SCHEDULE)
