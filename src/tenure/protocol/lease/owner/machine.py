"""The owner machine: joining, asking, and ceasing to believe in time.

It asks the manager on a timer, on a poke, and again when no answer came; at most one request is
unanswered (P1), and only the answer to the newest is taken (P2). What it may believe counts from
when that request was sent (P3). Everything due at `now` is done before an event is looked at, so
that an answer that comes after the end of the term finds nothing left to prolong (P6).
"""

from random import Random

import msgspec

from tenure.base.instants import FAR_FUTURE, Instant
from tenure.base.machine import Output
from tenure.base.noted import Noted
from tenure.base.ranges import in_words
from tenure.protocol.lease.client_events import ManagerLost, ManagerSaid, ManagersNamed, TellManager
from tenure.protocol.lease.messages import (
    Attest,
    Introduction,
    LeaseResponse,
    Poke,
    Refusal,
    ShortResponse,
    Standby,
    ToManager,
    ToOwner,
)
from tenure.protocol.lease.other_leaders import is_of_realm, rival_of, two_leaders, wrong_realm
from tenure.protocol.lease.owner import events
from tenure.protocol.lease.owner.belief import NO_NUMBER
from tenure.protocol.lease.owner.events import (
    OwnerAction,
    OwnerConfig,
    OwnerEvent,
    OwnerView,
    Phase,
)
from tenure.protocol.lease.owner.noted import REFUSED, News, OwnerKind
from tenure.protocol.lease.owner.possession import Possession
from tenure.protocol.lease.owner.requests import (
    ANSWERS_A_RENEWAL,
    FIRST_RENEW_NS,
    LONGEST_PAUSE_NS,
    SHORTEST_PAUSE_NS,
    Request,
    ShownSeal,
    message_of,
)
from tenure.protocol.lease.owner.who_leads import WhoLeads
from tenure.protocol.lease.owner.witness import look, testify
from tenure.protocol.lease.search import HOLDERS_PAUSE_NS, Patience, Search, Silence
from tenure.protocol.lease.search import LONGEST_PAUSE_NS as LONGEST_SEARCH_PAUSE_NS


class OwnerMachine:
    """The machine of one owner process."""

    def __init__(self, config: OwnerConfig, random: Random) -> None:
        self.config = config
        self.random = random
        self.phase: Phase = "joining"
        self._waits = False  # while it drains, for somebody who can take what it has
        self.search = Search(random)
        self.who_leads = WhoLeads(random)
        self.others = self.who_leads.others
        self.manager: str | None = None
        self.manager_nonce = self.leadership = 0
        self.owner_nonce = self.who_leads.draw_nonce()
        self.sequence = 0
        self.request: Request | None = None
        self.unanswered_since: Instant | None = None
        """When the first request without an answer was sent: silence counts from there (P24)."""
        self._patience = Patience()
        self._refusal: Refusal | None = None
        self._ask_again = False
        self._receipt = b""  # of the last answer, for whoever leads next (P22)
        self._fingerprint = b""
        """The leader's fingerprint of the leases that it renews: while just these are held,
        requests are short."""
        self.renew_ns = FIRST_RENEW_NS
        self._ask_at = Instant(0)
        self.possession = Possession(config.pool, gives_reads=config.reads_ns > 0)
        self.belief, self.copies = self.possession.belief, self.possession.copies
        self._ends_at = FAR_FUTURE
        """When the term of all that it has ends, as it was after the last step."""
        self.news = News(config.pool)
        self._actions: list[OwnerAction] = []
        self.silence = Silence(config.watchdog_ns)
        self.search.start(Instant(0))

    # --- the machine ---

    def handle(self, now: Instant, event: OwnerEvent) -> Output[OwnerAction]:
        """Do what is due at `now`, then take `event`."""
        self._advance(now)
        match event:
            case ManagerSaid(manager=manager, message=message):
                self._on_message(now, manager, message)
            case ManagerLost(manager=manager):
                if manager == self.manager:
                    self._look_for_leader(now)
            case events.Revoked() | events.ReadsEnded():
                if self.possession.let_go(event) or self.is_leaving:
                    self._ask_soon(now)
            case events.Lapsed():
                self._lapse(now)
            case events.Alive():
                self.silence.on_alive(now)
            case events.CloseRequested():
                self._close(now)
            case events.DrainRequested(waits=waits):
                self._drain(now, waits=waits)
            case ManagersNamed(managers=managers):
                self.config = msgspec.structs.replace(self.config, managers=managers)
            case events.Looked():
                if self.phase != "closed" and self._leads_us(event.manager, event.question):
                    nonces = self.owner_nonce, self.manager_nonce
                    self._actions.extend(testify(self.config, event, *nonces))
            case _:
                actions, changes_what_is_asked = self.possession.on_hand_off(now, event)
                self._actions.extend(actions)
                if changes_what_is_asked:
                    self._ask_soon(now)
        return self._output(now)

    def advance(self, now: Instant) -> Output[OwnerAction]:
        """Do what is due at `now`."""
        self._advance(now)
        return self._output(now)

    def _advance(self, now: Instant) -> None:
        if self.phase == "closed":
            return
        # Before any event is looked at: nothing is decided in belief that is over (P6).
        if now >= self._ends_at:
            self._lapse(now)
        elif now >= self.silence.speaks_at:
            self._warn(now)
        # The application does not answer: its leases must end, so they are not renewed.
        if now > self.silence.hangs_at:
            return
        if now >= self._ask_at and self.manager is not None:
            self._ask_or_search(now)
        if now >= self.search.at:
            self._ask_who_leads(now)
        if self.who_leads.is_due(now) and not self.search.is_on:
            self._say_hello(now)

    def _output(self, now: Instant) -> Output[OwnerAction]:
        self._actions += self.possession.decide(now, may_take=self.phase == "joined")
        self._ends_at = self.possession.ends_at
        # Belief ends before its owner acts on anything that it was told at that time (P4, P6).
        assert not self.belief.leases or now < self.belief.expires_at, self.belief.expires_at
        assert not self.belief.leases or self.belief.incarnation != NO_NUMBER
        wake_at = self.possession.wake_at
        if self.phase != "closed":
            wake_at = min(wake_at, self.silence.speaks_at)
            if now <= self.silence.hangs_at:
                ask_at = self._ask_at if self.manager else FAR_FUTURE
                wake_at = min(wake_at, ask_at, self.search.at, self.who_leads.wake_at)
        actions, self._actions = self._actions, []
        return Output(actions, max(wake_at, now))

    def view(self) -> OwnerView:
        """The owner, as the shell that runs it may see it."""
        return OwnerView(
            config=self.config,
            phase=self.phase,
            journal=self.belief.journal,
            incarnation=self.belief.incarnation,
            leadership=self.leadership,
            leases=len(self.belief.leases),
            listed=len(self.belief.held()),
            copies=len(self.copies.listed()),
            is_searching=self.search.is_on,
            renew_ns=self.renew_ns,
            refusal=self._refusal,
        )

    @property
    def is_leaving(self) -> bool:
        """Whether it is on its way out."""
        return self.phase in ("draining", "closing")

    # --- asking ---

    def _ask_or_search(self, now: Instant) -> None:
        """Ask; if no manager has answered for a renewal's time, look for another leader too."""
        silent_since = self.unanswered_since
        if silent_since is not None and now - silent_since >= self.renew_ns:
            self.search.start(now)
        self._ask(now)

    def _ask(self, now: Instant) -> None:
        """Send a request, the newest; an answer to any earlier one will not be taken."""
        if self.manager is None or now > self.silence.hangs_at:
            return
        self.sequence += 1
        is_last = self.phase == "closing" and not self.belief.is_giving_up
        copies = self.copies.listed() if self.copies.kept else ()
        is_short = (
            bool(self._fingerprint)
            and self.phase == "joined"
            and not copies
            and not self.others
            and self.belief.has_only(self._fingerprint, self.owner_nonce, self.manager_nonce)
        )
        renewing = self.belief.leases if is_short else None
        # An answer to any earlier request is void from here on (P2).
        self.request = Request(self.sequence, now, self.manager, is_last, copies, renewing)
        if self.unanswered_since is None:
            self.unanswered_since = now
        self._ask_again = False
        wait_ns = self._patience.asked(now, self.renew_ns // ANSWERS_A_RENEWAL, self.renew_ns)
        self._ask_at = Instant(now + wait_ns)
        self._actions.append(TellManager(self.manager, self._message(self.request)))

    def _message(self, request: Request) -> ToManager:
        nonces = self.owner_nonce, self.manager_nonce
        if self.belief.incarnation == NO_NUMBER:
            return self.config.join(*nonces, self.sequence)
        # Said while it still lists something, so that it is given nothing more; but not with an
        # empty list before its callbacks are done: then it would be gone.
        leaving = request.is_last or (self.is_leaving and self.possession.has_anything)
        return message_of(
            request,
            self.belief,
            ShownSeal(self.config.pool, nonces, self.leadership, self._fingerprint, self._receipt),
            self.others.rival,
            leaving=leaving,
            waits=self.phase == "draining" and self._waits,
        )

    def _ask_soon(self, now: Instant) -> None:
        """Ask now, or as soon as the request under way is answered: one at a time (P1)."""
        if self.request is not None:
            self._ask_again = True
        elif self.phase != "closed":  # a callback may end later than that
            self._ask(now)

    # --- finding the leader ---

    def _look_for_leader(self, now: Instant) -> None:
        if self.phase != "closed":
            self.search.start(now)
            if now >= self.search.at and now <= self.silence.hangs_at:
                self._ask_who_leads(now)

    def _ask_who_leads(self, now: Instant) -> None:
        self._say_hello(now)
        # A search must not cost a short term. The answer to an earlier question is heard, too.
        holders_ns = min(self.renew_ns // 2, HOLDERS_PAUSE_NS)
        longest_ns = holders_ns if self.belief.held() else LONGEST_SEARCH_PAUSE_NS
        self.search.asked(now, longest_ns)

    def _say_hello(self, now: Instant) -> None:
        shown = self.belief.journal, self._receipt, self._patience.needed_ns
        self._actions.extend(self.who_leads.ask(now, self.config, *shown))

    def _on_introduction(self, now: Instant, manager: str, message: Introduction) -> None:
        """Take whoever leads for our manager, and ask it with its present nonce."""
        if not is_of_realm(message.realm, self.config.realm):
            why_not = wrong_realm(message.realm, self.config.realm)
            self._note(OwnerKind.WRONG_REALM, f"does not follow {manager}: {why_not}")
            return
        if not self._is_present(manager, message):
            self._note(OwnerKind.OLD_INTRODUCTION)
            if self.who_leads.hear(now, manager, message):
                self._ask_soon(now)  # ours may have ended since
            return
        if message.journal != self.belief.journal:
            self._meet_journal(message.journal)
            if self.phase == "closed":
                return
        elif message.leadership < self.leadership:
            self._note(OwnerKind.LOWER_LEADERSHIP)
            return
        elif self.is_another_leader(message):
            self._note(OwnerKind.ANOTHER_LEADER, f"does not follow {manager}")
            return
        self.who_leads.follow(rival_of(manager, message), message.over)
        self.search.found()
        self._patience.heard()
        self.manager = manager
        self.manager_nonce = message.manager_nonce
        self.leadership = message.leadership
        self._fingerprint = b""
        self._ask(now)

    def is_another_leader(self, message: Introduction) -> bool:
        """Whether another leads under the number of the leader that this incarnation knows: on an
        old copy, since in one history a leadership has one leader. The receipt tells it so (P22).
        """
        is_numbered = self.belief.incarnation != NO_NUMBER
        is_same = message.leadership == self.leadership
        return is_numbered and is_same and message.manager_nonce != self.manager_nonce

    def _is_present(self, manager: str, message: Introduction) -> bool:
        """Whether it answers what was asked last, and not something long ago."""
        if message.token:
            is_ours = message.journal == self.belief.journal  # which only ours leads, if it answers
            is_ours &= manager == self.manager or self.belief.incarnation == NO_NUMBER
            is_higher = is_ours and message.leadership > self.leadership
            return (self.search.is_on or is_higher) and message.token == self.who_leads.token
        return self.request is not None and self.request.met(manager, message, self.owner_nonce)

    def _meet_journal(self, journal: int) -> None:
        """Another history: what was held under the old one has no meaning in it (P22)."""
        self._become_nobody(OwnerKind.ANOTHER_JOURNAL, "the manager has another journal")
        self.belief.begin_anew(journal)
        self.others.forget_all()
        self.leadership = 0

    def _become_nobody(self, kind: OwnerKind, why: str) -> None:
        """Drop everything and join anew, as a new incarnation."""
        self._drop_all(kind, why)
        self.owner_nonce = self.who_leads.draw_nonce()
        self.belief.incarnation = NO_NUMBER
        self.request = None
        if self.is_leaving:
            self._become_closed()
        else:
            self.phase = "joining"

    # --- answers ---

    def _on_message(self, now: Instant, manager: str, message: ToOwner) -> None:
        if self.phase == "closed":
            return
        match message:
            case Poke():
                if manager == self.manager:
                    self._actions.extend(self.news.of(message))
                    if not (self.possession.waits_for_application or self.others):
                        self._ask_soon(now)
            case Standby():
                if manager == self.manager:
                    self._look_for_leader(now)
            case Introduction():
                self._on_introduction(now, manager, message)
            case LeaseResponse():
                self._on_response(now, message)
            case ShortResponse():
                if self.request is None or self.request.renewing is None:
                    self._note(OwnerKind.OLD_ANSWER)
                    return
                told = self.belief.reads_ns, self._fingerprint
                self._on_response(now, self.request.answered_in_full(message, *told))
            case Refusal():
                self._on_refusal(now, message)
            case Attest():
                if self._leads_us(manager, message):
                    self._actions.extend(look(self.config, manager, message))

    def is_answer_to_newest(self, message: LeaseResponse | Refusal) -> bool:
        """Whether the message answers the newest request of this incarnation's nonce (P2)."""
        return (
            self.request is not None
            and message.sequence == self.request.sequence
            and message.owner_nonce == self.owner_nonce
            and message.manager_nonce == self.manager_nonce
        )

    def _leads_us(self, manager: str, message: Attest) -> bool:
        return (manager, message.manager_nonce) == (self.manager, self.manager_nonce)

    def _is_from_our_leader(self, message: LeaseResponse | Refusal) -> bool:
        return message.journal == self.belief.journal and message.leadership == self.leadership

    def _on_response(self, now: Instant, message: LeaseResponse) -> None:
        named = message.incarnation  # or numbered, by an answer to the first request
        is_for_us = named != NO_NUMBER and self.belief.incarnation in (NO_NUMBER, named)
        is_ours = is_for_us and self._is_from_our_leader(message)
        # An older one would renew what a newer request has given back (P2).
        if not (self.is_answer_to_newest(message) and is_ours):
            self._note(OwnerKind.OLD_ANSWER)
            return
        request = self.request
        assert request is not None
        # Not from now: the manager may have answered at the very instant of the question (P3).
        expires_at = Instant(request.sent_at + message.term_ns)
        is_leaving = self.is_leaving
        self._answered(now, message.renew_ns, request.sent_at)
        for rival in self.others.answered(request.sent_at):
            two = two_leaders(request.manager, self.belief.journal, rival)
            self._note(OwnerKind.TWO_LEADERS, two)
        if self.others.may_have_granted:  # what two may have granted has to run out
            expires_at = min(expires_at, self.belief.expires_at)
        self._receipt, self._fingerprint = message.receipt, message.fingerprint
        if self.belief.incarnation == NO_NUMBER:
            self.belief.incarnation = message.incarnation
            self.phase = "joined"
            if self.silence.alive_at is None:  # before that the application waits to be let in
                self.silence.on_alive(now)
            joined = f"joined as incarnation {message.incarnation}"
            self._actions.append(Noted(OwnerKind.JOINED, self.config.pool, joined, message.cause))
            self._ask_again = True  # the second exchange shows that it lives (P9)
        if back := self.silence.broken(now, request.sent_at, message.term_ns):
            self._note(OwnerKind.HEARD, back)
        if message.cause or message.same_address:
            self._actions.extend(self.news.of(message))
        self.belief.reads_ns = message.reads_ns
        actions, asks = self.possession.take(
            now,
            message,
            request.copies,
            expires_at,
            is_leaving=is_leaving,
            gives_up=self.phase == "closing",
            has_rival=bool(self.others),
        )
        self._actions.extend(actions)
        self._ask_again = self._ask_again or asks
        if request.is_last:
            self._become_closed()
        elif self.phase == "draining" and self.possession.is_empty:
            self._close(now)
        elif self._ask_again:
            self._ask(now)

    def _answered(self, now: Instant, renew_ns: int, sent_at: Instant) -> None:
        self.request = self._refusal = None
        self.unanswered_since = None
        self._patience.answered(now - sent_at)
        self.search.found()
        self.renew_ns = max(renew_ns, SHORTEST_PAUSE_NS)
        self._ask_at = max(Instant(sent_at + renew_ns), now)
        self.who_leads.has_leader(now, self.config, self.renew_ns)

    def _on_refusal(self, now: Instant, message: Refusal) -> None:
        seal = message.owner_nonce, message.manager_nonce
        is_final = message.reason == "past" and seal == (self.owner_nonce, self.manager_nonce)
        # That an incarnation is past stays so, whatever was asked: that is taken unasked, too.
        is_taken = is_final or self.is_answer_to_newest(message)
        if not (is_taken and self._is_from_our_leader(message)):
            self._note(OwnerKind.OLD_ANSWER)
            return
        self._answered(now, self.renew_ns, self.request.sent_at if self.request else now)
        self._refusal = message
        self._note(REFUSED[message.reason], f"is refused: {message.detail}")
        if message.reason == "past":
            self._become_nobody(OwnerKind.PAST, "its incarnation is past")
            if self.phase != "closed":
                self._ask(now)
        else:
            pause_ns = min(message.retry_after_ns, LONGEST_PAUSE_NS)
            self._ask_at = Instant(now + max(pause_ns, SHORTEST_PAUSE_NS))

    # --- leaving ---

    def _drain(self, now: Instant, *, waits: bool) -> None:
        """Go on serving until everything is handed over, and then go."""
        self._waits = waits
        if self.phase == "joining":
            self._close(now)
        elif self.phase in ("joined", "draining"):
            self.phase = "draining"
            self._ask_soon(now)

    def _close(self, now: Instant) -> None:
        """Believe nothing more, let the callbacks run, return everything, and go (P12)."""
        if self.phase in ("closing", "closed"):
            return
        if self.belief.incarnation == NO_NUMBER:
            self._become_closed()
            return
        self.phase = "closing"
        # It stops believing before it says so, and lists it until callbacks are done (P12).
        self._actions.extend(self.possession.give_up_all())
        self._ask_soon(now)

    def _become_closed(self) -> None:
        self.phase = "closed"
        self._actions.append(events.Closed())

    def _warn(self, now: Instant) -> None:
        held, ends_at = len(self.belief.leases), self.belief.expires_at
        self._note(OwnerKind.UNHEARD, self.silence.warning(now, held, ends_at))

    def _lapse(self, now: Instant) -> None:
        is_twice = self.others.may_have_granted
        why = "two leaders may have granted it" if is_twice else self.silence.speak(now)
        self._drop_all(OwnerKind.LAPSED, f"its term has run out, because {why}")
        if self.phase != "closed":
            self._ask_soon(now)  # unlisted ranges are free, and may be granted to this owner anew

    def _drop_all(self, kind: OwnerKind, why: str) -> None:
        if self.belief.leases:
            held = in_words(len(self.belief.leases))
            self._note(kind, f"no longer holds its {held}: {why}")
        self._actions.extend(self.possession.drop_all())

    def _note(self, kind: OwnerKind, detail: str = "") -> None:
        self._actions.append(Noted(kind, self.config.pool, detail))

    def invariants(self) -> None:
        """The invariants of its belief hold; an owner that is gone believes nothing."""
        self.belief.invariants()
        assert not (self.phase == "closed" and self.belief.leases)
