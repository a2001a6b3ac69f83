"""Machines broken on purpose: the checkers must catch every one.

A checker that has never caught anything may be checking nothing. Each canary is the system with one
rule left out and nothing else changed; its unbroken twin must stay clean on the very same seeds.
"""

from dataclasses import dataclass

import msgspec

from tenure.journals.memory import JournalContents
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.leader.change_log import ChangeLog
from tenure.protocol.lease.leader.context import LeaderContext
from tenure.protocol.lease.leader.first_start import FirstStart
from tenure.protocol.lease.leader.leader import Leader
from tenure.protocol.lease.leader.manager import Manager
from tenure.protocol.lease.leader.moving import Moving
from tenure.protocol.lease.leader.pool import Pool
from tenure.protocol.lease.leader.publisher import Publisher
from tenure.protocol.lease.leader.renumbering import Renumbering
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.leader.witnesses import Witnesses
from tenure.protocol.lease.lookup.machine import LookupMachine
from tenure.protocol.lease.messages import Process
from tenure.protocol.lease.owner.belief import Belief
from tenure.protocol.lease.owner.copies import Copies
from tenure.protocol.lease.owner.events import OwnerConfig
from tenure.protocol.lease.owner.giving import Giving
from tenure.protocol.lease.owner.machine import OwnerMachine
from tenure.protocol.lease.table import LeaseTable
from tenure.protocol.lease.timing import Timing
from tenure.protocol.log.leadership import Leadership
from tenure.sim.kernel.canaries import RuleLeftOut, called
from tenure.sim.lease import breaks
from tenure.sim.lease.operator import Operator

SKEW_AT_THE_BOUND = 40_000
"""Parts in a million, up and down: rates of 0.96 and 1.04 are 8.33 % apart, as the paper allows."""
SKEW_OVER_THE_BOUND = 49_881
"""Parts in a million, up and down: these rates are 10.5 % apart."""


@dataclass(frozen=True)
class Canary(RuleLeftOut):
    """One rule left out."""

    no_hold_margin: bool = False
    clock_stops_in_suspend: bool = False
    leads_by_wall_clock: bool = False
    skew: int = SKEW_AT_THE_BOUND

    def timing(self, timing: Timing) -> Timing:
        """The managers' timing."""
        if not self.no_hold_margin:
            return timing
        return msgspec.structs.replace(timing, hold_ns=timing.term_ns + 1)


NONE = Canary("none")
CANARIES = (
    Canary("no-hold-margin", "the margin of the hold over the term", no_hold_margin=True),
    Canary(
        "term-from-receipt",
        "P3: the term counts from when the request was sent",
        ((OwnerMachine, "term_ends", breaks.term_from_receipt),),
    ),
    Canary(
        "requests-in-any-order",
        "P2: requests are taken in rising order",
        ((Session, "is_in_order", breaks.always),),
    ),
    Canary(
        "answer-to-an-older-request",
        "P2: only the answer to the newest request is taken",
        ((OwnerMachine, "is_answer_to_newest", breaks.the_last_but_one),),
    ),
    Canary(
        "no-nonce-check",
        "P2, P9: a manager acts only on its own present nonce",
        ((Leader, "knows_this_nonce", breaks.always),),
    ),
    Canary(
        "nonce-kept-across-leaderships",
        "P2: the nonce is drawn anew at each takeover",
        ((Manager, "draw_nonce", breaks.kept_nonce),),
    ),
    Canary(
        "incarnations-not-ordered",
        "P8, P9: an incarnation is not unseated by another's join",
        ((Pool, "_refuse_name", breaks.name_taken_over),),
    ),
    Canary(
        "lapsed-lease-revived",
        "P5: renewed is only what is held",
        ((Belief, "may_renew", breaks.always),),
    ),
    Canary(
        "lapsed-lease-not-disclaimed",
        "P5: what a request does not list is returned",
        ((Pool, "not_listed", breaks.nothing_returned),),
    ),
    Canary(
        "fingerprint-not-compared",
        "P5: a short request counts only if its fingerprint is that of what the table gives",
        ((Pool, "lists", breaks.always),),
    ),
    Canary(
        "answer-before-expiry",
        "P6: what is due is done before the event is looked at",
        ((OwnerMachine, "handle", breaks.event_first),),
    ),
    Canary(
        "answer-before-commit",
        "P18: nothing leaves before the records it depends on are durable",
        ((LeaderContext, "say", breaks.said_at_once),),
    ),
    Canary(
        "recall-outlives-nothing",
        "P10, P4: a recalled range is not freed while its owner still renews",
        ((Pool, "advance", breaks.free_at_the_deadline),),
    ),
    Canary(
        "plan-is-a-grant",
        "P12: a plan grants nothing: it is not for the policy to say what is free",
        ((Pool, "_grant", breaks.free_what_is_planned),),
    ),
    Canary(
        "counter-not-in-snapshot",
        "P21: the snapshot carries the next lease number",
        ((LeaseTable, "from_state", classmethod(breaks.forget_the_counter)),),
    ),
    Canary(
        "numbers-begin-anew-with-a-pool",
        "S3: a pool that is created again goes on with the numbers that it had",
        ((LeaseTable, "__init__", breaks.created_without_former),),
    ),
    Canary(
        "takeover-does-not-wait",
        "P19: a new leader waits out what its predecessors may have promised",
        ((Leader, "wait_until", staticmethod(breaks.waits_half)),),
    ),
    Canary(
        "contact-from-receipt",
        "P17: contact counts from when the question was sent",
        ((LookupMachine, "_answered", breaks.contact_from_receipt),),
    ),
    Canary(
        "nothing-published-on-return",
        "P17: who was out of contact puts up its whole table on return",
        ((LookupMachine, "_take", breaks.published_where_it_changed),),
    ),
    Canary(
        "change-log-begins-too-early",
        "P15: a new leader tells changes from the last one on that it has read, and none before",
        ((Publisher, "__init__", breaks.log_from_the_beginning),),
    ),
    Canary(
        "leads-by-wall-clock",
        "P19: a leadership is proven by a clock that nobody sets",
        leads_by_wall_clock=True,
    ),
    Canary(
        "append-not-guarded",
        "P18: the journal takes nothing from a leader that is deposed",
        ((JournalContents, "_append", breaks.any_append_lands),),
    ),
    Canary(
        "loss-by-last-flag",
        "P16: loss is told by `since`, not by whether the last change was clean",
        ((LookupMachine, "lost_by", breaks.by_the_last_flag),),
    ),
    Canary(
        "loss-signalled-in-vain",
        "P16: only what was known under a number below `since` is lost",
        ((LookupMachine, "lost_by", breaks.all_that_is_known),),
    ),
    Canary(
        "renumbered-with-since",
        "P11: what is renumbered keeps its `since`, or it would seem to be lost",
        ((Renumbering, "runs", staticmethod(breaks.whatever_its_since)),),
    ),
    Canary(
        "handed-over-while-served",
        "P13: the source ends its belief before it sends the last difference",
        ((Belief, "hand_over", breaks.end_it_for_nobody),),
    ),
    Canary(
        "moved-before-it-has-settled",
        "P13: what has begun in a range finishes before the range moves",
        ((Giving, "is_to_settle", breaks.never),),
    ),
    Canary(
        "granted-without-the-import",
        "P13: a grant that names an import is taken only where that is",
        ((Copies, "cover", breaks.always),),
    ),
    Canary(
        "import-of-an-earlier-number",
        "P13: an import is used only under the grant that names it",
        ((Moving, "counts", breaks.always), (Moving, "that_count", breaks.all_of_them)),
    ),
    Canary(
        "import-without-its-grant",
        "P13: what was imported and is not granted is discarded first",
        ((Copies, "is_clear_for", breaks.always),),
    ),
    Canary(
        "granted-before-let-go",
        "nothing is taken before the application has let go of what it had there",
        ((Belief, "has_let_go", breaks.always),),
    ),
    Canary(
        "evicts-the-living",
        "P14: only a process that is gone is confirmed dead",
        ((Operator, "is_dead", breaks.always),),
    ),
    Canary(
        "clock-stops-in-suspend",
        "the owner's clock goes on while its machine sleeps",
        clock_stops_in_suspend=True,
    ),
    Canary(
        "closed-socket-is-death",
        "P14: a closed socket proves nothing",
        ((Witnesses, "on_disconnected", breaks.closed_is_dead),),
    ),
    Canary(
        "attested-across-hosts",
        "P14: a witness has the suspect's boot id",
        ((Process, "place", property(lambda self: ("", *breaks.original_place(self)[1:]))),),
    ),
    Canary(
        "attested-across-pid-namespaces",
        "P14: a witness has the suspect's pid namespace",
        ((Process, "place", property(lambda self: (*breaks.original_place(self)[::2], 0))),),
    ),
    Canary(
        "attested-across-time-namespaces",
        "P14: a witness has the suspect's time namespace",
        ((Process, "place", property(lambda self: (*breaks.original_place(self)[:2], 0))),),
    ),
    Canary(
        "attested-by-pid-alone",
        "P14: an attestation names the incarnation and its very process; pids are used again",
        ((Witnesses, "on_attested", breaks.by_pid_alone),),
    ),
    Canary(
        "unread-taken-for-gone",
        "P14: what cannot be read is not gone",
        ((Sight, "shows_gone", breaks.unread_is_gone),),
    ),
    Canary(
        "first-thread-taken-for-all",
        "P14: a process whose first thread has ended may have others",
        ((Sight, "shows_gone", breaks.first_thread_is_all),),
    ),
    Canary(
        "old-copy-not-noticed",
        "P22: what managers, owners and lookups have seen is checked against the journal",
        ((Leader, "is_missing", breaks.never),),
    ),
    Canary("skew-over-the-bound", "clock rates within 8.33 %", skew=SKEW_OVER_THE_BOUND),
)
BY_SCHEDULE = (
    Canary(
        "takeover-waits-its-own-hold",
        "P7, P19: a new leader waits what was promised, whatever its own preset",
        ((Leader, "__init__", breaks.waits_its_own_hold),),
    ),
    Canary(
        "leads-from-the-answer",
        "P19: a leadership counts from when its last confirmed beat was sent",
        (
            (Leadership, "advance", breaks.noting_the_time),
            (Leadership, "on_beaten", breaks.proven_from_the_answer),
        ),
    ),
    Canary(
        "lower-leadership-followed",
        "P19: an owner ignores a leadership lower than one it has seen",
        ((OwnerMachine, "_on_introduction", breaks.follows_anybody),),
    ),
    Canary(
        "receipt-not-shown",
        "P22: an owner that looks for a leader shows how far the journal went",
        ((OwnerConfig, "hello", breaks.without_its_receipt),),
    ),
    Canary(
        "listed-numbers-not-compared",
        "P5: what is listed under another number is returned",
        ((Pool, "not_listed", breaks.ranges_alone),),
    ),
    Canary(
        "equal-number-granted",
        "P5: a grant is under a number that was never used before",
        ((Belief, "take", breaks.equal_numbers_too),),
    ),
    Canary(
        "new-journal-waits-a-term",
        "P22: a journal without records waits the longest hold that there may be",
        ((Leader, "__init__", breaks.waits_a_term),),
    ),
    Canary(
        "leads-whatever-journal",
        "P18, P22: who leads one journal writes nothing to another",
        ((JournalContents, "leads", breaks.by_number_alone),),
    ),
    Canary(
        "other-histories-not-heard",
        "P22: who comes with another history proves that it is no first start",
        ((FirstStart, "hear", breaks.never),),
    ),
    Canary(
        "change-log-forgets-that-it-forgot",
        "P15: who was away for longer than changes are kept is given the whole table",
        ((ChangeLog, "forget_before", breaks.forgets_that_it_forgot),),
    ),
)
"""Rules that chance would leave unbroken for too long. Each is caught by a schedule of its own."""


def canary(name: str) -> Canary:
    """The canary called `name`. Raises ConfigurationError, which lists all names."""
    return called(name, (NONE, *CANARIES), BY_SCHEDULE)
