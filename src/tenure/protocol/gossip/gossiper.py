"""The gossiper: each round, it talks with three others, and both sides take what is new to them
(R29).

A round has three messages. The first is a digest of all that its sender knows. The receiver answers
with the values that it knows better, and with a digest of those that it knows less well; the sender
then sends these. Digests contain heartbeats, so a digest alone is a sign of life of every node in
it.

A gossiper draws its partners among the nodes that are not convicted. Sometimes it asks a convicted
node or a seed as well: otherwise the two halves of a divided network would never hear of each other
again.

Each promise that a replica must not forget, and each life that takes part, raises a counter on its
disk (R26). The digest of the node carries the counter. A disk that was restored has a lower one. A
node that hears of a later life with a lower counter, in whichever order, refuses the node, and says
so with a counter that no node can reach. So all nodes come to refuse it, also those that were down
meanwhile, and it hears so itself.

A new life first tells the counter that it found. Another node *vouches* for it by saying that it
knows this life. The new life takes part when a majority of the ring, itself among it, vouches for
it, and only the convicted do not. Then it raises its counter. No manager is needed for that. Until
then it asks all silent nodes, several times in a round, because the others miss its node meanwhile.
Its heartbeat stays the same, so that they do not take these messages for the rhythm of its rounds.
If the datagrams of two nodes do not reach each other, a third node tells each that the other is
alive, and
neither is convicted. So a new life waits for no node longer than for a dead one.
"""

from collections.abc import Iterable
from random import Random
from typing import assert_never

import msgspec

from tenure.base.instants import FAR_FUTURE, MILLISECOND_NS, Instant
from tenure.base.machine import Output
from tenure.base.noted import Noted
from tenure.protocol.gossip.delta import cut_deltas, knows_better, knows_less
from tenure.protocol.gossip.digest import cut_digests
from tenure.protocol.gossip.failure_detector import FailureDetector
from tenure.protocol.gossip.gossiper_events import (
    GossiperAction,
    GossiperConfig,
    GossiperEvent,
    GossiperView,
    GossipHeard,
    GossipPeer,
    KeepPromises,
    MembersKnown,
    NodeView,
    PromisesNotKept,
    PromisesRaised,
    SendGossip,
    StateSet,
    TellAcquitted,
    TellConvicted,
    TellState,
    TellVouched,
    TellWentBack,
)
from tenure.protocol.gossip.limits import KEYS, NODES, PARTS_BYTES
from tenure.protocol.gossip.messages import (
    REFUSED,
    GossipAck,
    GossipEnd,
    GossipMessage,
    GossipSyn,
    NodeDelta,
    NodeDigest,
    NodeId,
    StateEntry,
    heads_of,
    size_of,
)
from tenure.protocol.gossip.noted import GossiperKind
from tenure.protocol.gossip.state import NodeState

ADDRESS = "address"
"""The name of the value that a node tells first."""
PAUSE_ROUNDS = 2
"""A process that is woken later than this many rounds has stood still itself."""
ASKS_A_ROUND = 5
"""How often in a round a new life asks to be vouched for."""
WAITED_ROUNDS = 12
"""The most rounds to wait for a node that may know better: a dead one is convicted by then."""
ASKED_AT_ONCE = 8
"""The most nodes to ask at once: in a large ring all may start together."""


class Gossiper:
    """The machine of gossip."""

    def __init__(self, config: GossiperConfig, random: Random) -> None:
        self.config = config
        self._random = random
        self.own = NodeState(config.node)
        self.own.head = NodeDigest(config.node, config.generation, 0, 0, config.promises)
        self.states: dict[NodeId, NodeState] = {}
        """The states of all other nodes."""
        self.detector = FailureDetector(config.interval_ns, config.threshold, config.window)
        self.gone_back: set[NodeId] = set()
        self.removed: frozenset[NodeId] = frozenset()
        self.ignored = 0
        self.vouching: set[NodeId] = set()
        """The nodes that know of this life."""
        self.is_vouched = False
        self._ring: frozenset[NodeId] = frozenset()
        self._addresses: dict[NodeId, str] = {}
        self._addresses_told: dict[NodeId, str] = {}
        """The addresses that the topology has told."""
        self._clocks_ahead_us: dict[NodeId, int] = {}
        self._clocks_off: set[NodeId] = set()
        """The nodes whose clocks were told of: each of their datagrams shows them again."""
        self._next_round: Instant | None = None
        self._asks_at = FAR_FUTURE
        """When this life next asks to be vouched for."""
        self._waits_until = FAR_FUTURE
        """The time after which a majority is enough."""
        self._stepped_at = Instant(0)
        self._keeps_promises = False
        self._actions: list[GossiperAction] = []

    # --- the door ---

    def handle(self, now: Instant, event: GossiperEvent) -> Output[GossiperAction]:
        """Do what is due, then take an event."""
        self._advance(now)
        match event:
            case GossipHeard():
                self._on_heard(now, event)
            case StateSet(key=key, value=value):
                self._on_state_set(key, value)
            case PromisesRaised(promises=promises):
                assert promises >= self.own.head.promises
                self.own.head = msgspec.structs.replace(self.own.head, promises=promises)
            case PromisesNotKept():
                self._keeps_promises = True
            case MembersKnown(members=members, removed=removed, ring=ring):
                self._ring = frozenset(ring)
                self._on_members(now, members, removed)
                if ring and not self.is_vouched:
                    self._asks_at = now
                    if self._waits_until == FAR_FUTURE:
                        self._waits_until = Instant(now + WAITED_ROUNDS * self.config.interval_ns)
            case _:
                assert_never(event)
        return self._output()

    def advance(self, now: Instant) -> Output[GossiperAction]:
        """Do what is due."""
        self._advance(now)
        return self._output()

    def _output(self) -> Output[GossiperAction]:
        if not self.is_vouched and not self.has_ended and self.has_enough_vouching():
            self.is_vouched = True
            self._asks_at = FAR_FUTURE
            self._actions.append(TellVouched())
        actions, self._actions = self._actions, []
        assert self._next_round is not None
        wake_at = min(self._next_round, self._asks_at)
        convicts_at = self.detector.next_at()
        return Output(actions, wake_at if convicts_at is None else min(wake_at, convicts_at))

    def has_enough_vouching(self) -> bool:
        """Whether enough nodes vouch for this life, so that it may take part.

        Any two majorities have a node in common. So if a majority has kept how far this node was,
        one of them has been asked. Every node that is up is waited for as well: it may know better.
        A node that is heard only by way of others hears what they know, too.
        """
        vouching = self._ring & (self.vouching | {self.config.node})
        silent = sorted(self._ring - vouching - self.gone_back)
        is_majority = 2 * len(vouching) > len(self._ring)
        has_waited = self._stepped_at >= self._waits_until
        return is_majority and (has_waited or all(map(self.detector.is_convicted, silent)))

    @property
    def has_ended(self) -> bool:
        """Whether this node says nothing more, because its own disk went back."""
        return self.config.node in self.gone_back

    # --- time ---

    def _advance(self, now: Instant) -> None:
        interval_ns = self.config.interval_ns
        if self._next_round is None:
            self._begin(now)
        elif (stood_ns := now - self._stepped_at - interval_ns) > PAUSE_ROUNDS * interval_ns:
            self._note(GossiperKind.OWN_PAUSE, f"{stood_ns // MILLISECOND_NS} ms")
            self.detector.on_own_pause(stood_ns)
            self._waits_until = min(FAR_FUTURE, Instant(self._waits_until + stood_ns))
        self._stepped_at = now
        for node in self.detector.convict(now):
            self._actions.append(TellConvicted(node))
            self._note(GossiperKind.CONVICTED, self._name_of(node))
        assert self._next_round is not None
        if now >= self._next_round:
            self._next_round = Instant(now + round(interval_ns * self._random.uniform(0.9, 1.0)))
            self._round()
        if now >= self._asks_at:
            self._ask_for_vouching(now)

    def _begin(self, now: Instant) -> None:
        # Nodes that were started together must not speak at one instant for ever: so each round has
        # a length of its own.
        self._next_round = Instant(now + self._random.randrange(self.config.interval_ns))
        self._on_state_set(ADDRESS, self.config.address.encode())
        for digest in self.config.known:
            state = self._meet(now, digest.node)
            if state is not None:
                state.begin_anew(digest)
                if digest.promises == REFUSED:
                    self._give_up(state, digest)

    def _round(self) -> None:
        head = self.own.head
        self.own.head = msgspec.structs.replace(head, heartbeat=head.heartbeat + 1)
        if self.has_ended:
            return
        for address in self._partners():
            self._say_all_to(address)
        if self._keeps_promises:
            self._keep_promises()

    def _keep_promises(self) -> None:
        self._keeps_promises = False
        known = (state.head for state in self.states.values())
        self._actions.append(KeepPromises(tuple(each for each in known if each.promises)))

    def _ask_for_vouching(self, now: Instant) -> None:
        if self.has_ended:
            self._asks_at = FAR_FUTURE
            return
        self._asks_at = Instant(now + self.config.interval_ns // ASKS_A_ROUND)
        silent = sorted((self._ring & self._addresses.keys()) - self.vouching - self.gone_back)
        if len(silent) > ASKED_AT_ONCE:
            silent = self._random.sample(silent, ASKED_AT_ONCE)
        for node in silent:
            self._say_all_to(self._addresses[node])

    def _say_all_to(self, address: str) -> None:
        own = self.own.head
        heads = [state.head for state in self.states.values()]
        others = cut_digests(heads, self._random, PARTS_BYTES - size_of(own))
        is_whole = len(others) == len(heads)
        digests = (own, *others)
        self._send(address, GossipSyn(own.node, self.config.address, is_whole, digests))

    def _partners(self) -> list[str]:
        """The addresses to write to: some of the living nodes, and perhaps a convicted node and a
        seed.
        """
        random, seeds = self._random, self.config.seeds
        reachable = [node for node in self._addresses if node not in self.gone_back]
        living = [node for node in reachable if not self.detector.is_convicted(node)]
        dead = [node for node in reachable if self.detector.is_convicted(node)]
        chosen = random.sample(living, min(self.config.fan_out, len(living)))
        if dead and random.random() < len(dead) / (len(living) + 1):
            chosen.append(random.choice(dead))
        partners = [self._addresses[node] for node in chosen]
        if seeds and random.random() < len(seeds) / (len(reachable) or 1):
            partners.append(random.choice(seeds))
        return [each for each in dict.fromkeys(partners) if each != self.config.address]

    # --- what this node and its topology say ---

    def _on_state_set(self, key: str, value: bytes) -> None:
        if self.own.get(key) != value:
            self.own.put(StateEntry(key, value, self.own.head.version + 1))
            assert len(self.own.all()) <= KEYS, f"{KEYS} values at most"

    def _on_members(
        self, now: Instant, members: Iterable[GossipPeer], removed: Iterable[NodeId]
    ) -> None:
        self.removed = frozenset(removed)
        for node in [each for each in self.states if each in self.removed]:
            del self.states[node]
            self._addresses.pop(node, None)
            self._addresses_told.pop(node, None)
            self._clocks_ahead_us.pop(node, None)
            self._clocks_off.discard(node)
            self.detector.forget(node)
            self.gone_back.discard(node)
        for member in members:
            if self._meet(now, member.node) is None:
                continue
            # The address that the node itself tells counts, until the topology tells a new one.
            if self._addresses_told.get(member.node) != member.address:
                self._addresses[member.node] = member.address
            self._addresses_told[member.node] = member.address

    # --- what others say ---

    def _on_heard(self, now: Instant, heard: GossipHeard) -> None:
        message = heard.message
        sender = message.sender
        if sender in self.removed or self.has_ended or sender == self.config.node:
            self.ignored += 1
            return
        if sender in self.gone_back:
            self.ignored += 1
            self._tell_what_it_promised(sender, heard.address)
            return
        self._look_at_clock(sender, heard.ahead_us)
        self._take_message(now, heard, message)
        if any(self._is_this_life(head) for head in heads_of(message)):
            self.vouching.add(sender)

    def _is_this_life(self, head: NodeDigest) -> bool:
        own = self.own.head
        return (head.node, head.generation) == (own.node, own.generation)

    def _take_message(self, now: Instant, heard: GossipHeard, message: GossipMessage) -> None:
        match message:
            case GossipSyn():
                self._on_syn(now, heard, message)
            case GossipAck(wanted=wanted):
                self._take(now, message.deltas)
                self._observe_all(now, wanted)
                if better := self._deltas_for(wanted, PARTS_BYTES):
                    self._send(heard.address, GossipEnd(self.config.node, better))
            case GossipEnd(deltas=deltas):
                self._take(now, deltas)
            case _:
                assert_never(message)

    def _look_at_clock(self, node: NodeId, ahead_us: int) -> None:
        self._clocks_ahead_us[node] = ahead_us
        if abs(ahead_us) <= self.config.clock_bound_us:
            self._clocks_off.discard(node)
        elif node not in self._clocks_off:
            self._clocks_off.add(node)
            detail = f"{self._name_of(node)}, by {ahead_us / 1e6:.0f} s"
            self._note(GossiperKind.CLOCK_OFF, detail)

    def _tell_what_it_promised(self, node: NodeId, address: str) -> None:
        known = NodeDelta(self.states[node].head, 0)
        self._send(address, GossipAck(self.config.node, (known,), ()))

    def _on_syn(self, now: Instant, heard: GossipHeard, syn: GossipSyn) -> None:
        self._observe_all(now, syn.digests)
        sender = syn.sender
        if sender in self.gone_back:
            self._tell_what_it_promised(sender, heard.address)
            return
        if sender in self.states:
            self._addresses[sender] = syn.address
        theirs = list(syn.digests)
        if syn.is_whole:
            named = {digest.node for digest in theirs}
            all_nodes = (self.config.node, *self.states)
            theirs += [NodeDigest(node, 0, 0, 0) for node in all_nodes if node not in named]
        less = (each for each in theirs if (state := self._wants(each)) and knows_less(state, each))
        wanted = cut_digests(
            (self.states[each.node].head for each in less), self._random, PARTS_BYTES // 2
        )
        deltas = self._deltas_for(theirs, PARTS_BYTES - sum(size_of(each) for each in wanted))
        if deltas or wanted:
            self._send(heard.address, GossipAck(self.config.node, deltas, wanted))

    def _wants(self, digest: NodeDigest) -> NodeState | None:
        """The node of a delta, if its values are to be taken."""
        return None if digest.node in self.gone_back else self.states.get(digest.node)

    def _deltas_for(self, theirs: Iterable[NodeDigest], room: int) -> tuple[NodeDelta, ...]:
        known = {**self.states, self.config.node: self.own}
        behind = (
            (state, digest)
            for digest in theirs
            if (state := known.get(digest.node)) and knows_better(state, digest)
        )
        return cut_deltas(behind, self._random, room)

    def _take(self, now: Instant, deltas: Iterable[NodeDelta]) -> None:
        self._observe_all(now, (delta.head for delta in deltas))
        for delta in deltas:
            state = self._wants(delta.head)
            for entry in state.take(delta) if state else ():
                node = delta.head.node
                self._actions.append(TellState(node, entry.key, entry.value))
                if entry.key == ADDRESS:
                    self._addresses[node] = entry.value.decode(errors="replace")

    # --- signs of life ---

    def _observe_all(self, now: Instant, heads: Iterable[NodeDigest]) -> None:
        for head in heads:
            if head.node == self.config.node:
                self._hear_of_self(head)
            elif head.node not in self.removed and (state := self._meet(now, head.node)):
                self._observe(now, state, head)

    def _observe(self, now: Instant, state: NodeState, head: NodeDigest) -> None:
        node, known = head.node, state.head
        if node in self.gone_back:
            return
        known_age, head_age = known.age, head.age
        is_earlier = head_age < known_age
        earlier, later = (head, known) if is_earlier else (known, head)
        has_fewer = earlier.promises > later.promises and known_age != head_age
        if has_fewer or head.promises == REFUSED:
            self._give_up(state, earlier)
            self._keep_promises()  # at once: its counter may grow while this node is down
        elif state.see(head):
            self._keeps_promises |= head.promises > known.promises
            if known.generation and head.generation > known.generation:
                self._note(GossiperKind.RESTARTED, self._name_of(node))
            is_rhythm = head.generation == known.generation
            if self.detector.arrive(node, now, is_rhythm=is_rhythm):
                self._actions.append(TellAcquitted(node))
                self._note(GossiperKind.ACQUITTED, self._name_of(node))

    def _give_up(self, state: NodeState, head: NodeDigest) -> None:
        """Refuse a node. All others will refuse it, and this node will in its later lives, however
        much the refused node promises from now on.
        """
        state.begin_anew(msgspec.structs.replace(head, promises=REFUSED))
        self._keeps_promises = True
        self.gone_back.add(head.node)
        self._actions.append(TellWentBack(head.node))
        self._note(GossiperKind.WENT_BACK, self._name_of(head.node))

    def _hear_of_self(self, head: NodeDigest) -> None:
        own = self.own.head
        if head.promises > own.promises:
            self.gone_back.add(own.node)
            self._actions.append(TellWentBack(own.node))
            self._note(GossiperKind.OWN_DISK_WENT_BACK, f"its counter is {own.promises}")
        elif head.age > own.age:
            # The clock that generations are drawn from went back. The words of this life must count
            # nevertheless.
            self.own.head = msgspec.structs.replace(own, generation=head.generation + 1)
            self.vouching.clear()
            self._note(GossiperKind.SAME_ID, f"generation {head.generation}")

    def _meet(self, now: Instant, node: NodeId) -> NodeState | None:
        """The state of a node, which may be new; None if there are too many nodes."""
        if node == self.config.node or node in self.removed:
            return None
        if node not in self.states:
            if len(self.states) >= NODES:
                self._note(GossiperKind.TOO_MANY, f"{NODES} at most")
                return None
            self.states[node] = NodeState(node)
            self.detector.begin(node, now)
            self._note(GossiperKind.MET, self._name_of(node))
        return self.states[node]

    # --- watching ---

    def _send(self, address: str, message: GossipMessage) -> None:
        self._actions.append(SendGossip(address, message))

    def _note(self, kind: GossiperKind, detail: str) -> None:
        self._actions.append(Noted(kind, detail=detail))

    def _name_of(self, node: NodeId) -> str:
        return f"{node:x} at {self._addresses.get(node, 'an unknown address')}"

    def view(self, now: Instant) -> GossiperView:
        """The gossiper, as it is now."""
        return GossiperView(
            own=self.own.head,
            nodes=tuple(
                NodeView(
                    node=node,
                    address=self._addresses.get(node, ""),
                    digest=state.head,
                    phi=self.detector.phi(node, now),
                    is_convicted=self.detector.is_convicted(node),
                    has_gone_back=node in self.gone_back,
                    clock_ahead_us=self._clocks_ahead_us.get(node, 0),
                    state=state.all(),
                )
                for node, state in self.states.items()
            ),
            ignored=self.ignored,
        )

    def invariants(self) -> None:
        """All nodes of which something is known are watched, and none of them was removed."""
        assert self.config.node not in self.states
        assert not self.removed & self.states.keys()
        assert set(self.detector.watched()) == self.states.keys()
        assert self.gone_back <= {self.config.node, *self.states}
        self.detector.invariants()
        for state in (self.own, *self.states.values()):
            state.invariants()
