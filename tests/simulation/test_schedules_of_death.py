"""The schedules that a naive version fails, 8: the neighbour that cannot see.

As in `test_schedules`. The owner `o` holds every key, and `p` is to have them after it. What became
of `o` is for its neighbours to see: processes have pids here, on hosts and in namespaces.
"""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from lab.worlds.lease.hosts import as_process
from tenure.base.ranges import WHOLE
from tenure.protocol.lease.attestation import Sight
from tenure.protocol.lease.messages import Attest, Attested, Process
from tenure.protocol.lease.timing import DEFAULT
from tenure.sim.kernel.hosts import HostProcess, Place
from tests.simulation.actors import ManagerActor, OwnerActor
from tests.simulation.stage import Stage
from tests.simulation.stories import KEY, ends_badly

HERE = Place()
ATTESTED, REFUSED = "owner attested dead", "refused: attestation"
HOLD, OVERDUE = DEFAULT.hold_ns / 1e9, 1.5 * DEFAULT.renew_ns / 1e9
SOON = 0.5
"""Long enough for a death to be attested and the keys to be taken up, far shorter than a hold."""


class Scene(NamedTuple):
    """A manager, an owner, and one beside it, or not quite."""

    stage: Stage
    a: ManagerActor
    o: OwnerActor
    p: OwnerActor

    def is_attested(self) -> bool:
        return ATTESTED in self.a.notes

    def part(self) -> None:
        """`o` lives and believes, its connection breaks, and nothing of it is heard any more."""
        self.stage.part("o", "a")
        self.a.lose(self.o)


def process(stage: Stage, pid: int, place: Place = HERE, namespace: int = 1) -> HostProcess:
    started = stage.now // 10_000_000 + 100
    return stage.hosts.put(HostProcess(place, namespace, pid, started))


def scene(place: Place = HERE, pid: int = 11, namespace: int = 1) -> Scene:
    """`o` has pid 10; `p`, which will be asked about it, lives where the test says."""
    stage = Stage()
    stage.prefer((WHOLE, ("o", "p")))
    a = stage.manager("a")
    o = stage.owner("o", on_host=process(stage, 10))
    p = stage.owner("p", on_host=process(stage, pid, place, namespace))
    stage.run(1)
    assert stage.holders(KEY) == ["o"]
    return Scene(stage, a, o, p)


# --- the death that is attested -------------------------------------------------------------------


def test_8_a_neighbour_attests_and_the_keys_are_served_at_once() -> None:
    """P14: freed by one record, as if its hold had run out, and long before."""
    it = scene()
    it.o.die()
    it.a.lose(it.o)
    it.stage.run(SOON)
    assert (it.stage.holders(KEY), it.is_attested()) == (["p"], True)
    assert "owner expired" not in it.a.notes


def _always(*_: object) -> bool:
    return True


def a_liar_says_that_a_living_owner_is_gone() -> None:
    it = scene()
    with pytest.MonkeyPatch.context() as liars:
        liars.setattr(Sight, "shows_gone", _always)
        it.stage.owner("liar", name="o", on_host=process(it.stage, 12))
        it.stage.run(2)
    assert (it.stage.holders(KEY), it.is_attested()) == (["o"], False)


def test_8_a_living_owner_that_is_said_to_be_gone_objects() -> None:
    """P14: any owner that joined could say so. The accused is told over its own connection, and
    asks.
    """
    a_liar_says_that_a_living_owner_is_gone()
    ends_badly(a_liar_says_that_a_living_owner_is_gone, without="no-objection")


def test_8_a_successor_under_its_own_name_waits_for_the_objection_only() -> None:
    it = scene()
    it.o.die()
    it.a.lose(it.o)
    it.p.close()
    it.stage.prefer((WHOLE, ("o",)))
    it.stage.owner("heir", name="o", on_host=process(it.stage, 13))
    it.stage.run(0.8)
    assert it.stage.holders(KEY) == ["heir"]


def test_8_the_dead_are_zombies_until_their_parent_comes() -> None:
    """P14: the pid is still in use, its first thread has ended, and it has no other."""
    it = scene()
    it.o.kill()
    it.a.lose(it.o)
    it.stage.run(SOON)
    assert (it.stage.holders(KEY), it.is_attested()) == (["p"], True)


def test_8_a_forked_child_keeps_the_socket() -> None:
    """P14: no connection breaks; the owner is suspect as soon as it misses a renewal."""
    it = scene()
    it.o.die()
    it.stage.run(OVERDUE + DEFAULT.renew_ns / 1e9)
    assert (it.stage.holders(KEY), it.is_attested()) == (["p"], True)


def test_8_an_owner_of_another_pool_attests() -> None:
    """P14: all owners beside it are asked, whatever they serve."""
    it = scene(Place(host=1))
    neighbour = it.stage.owner("q", pool="another", on_host=process(it.stage, 12))
    it.stage.run(1)
    it.o.die()
    it.a.lose(it.o)
    it.stage.run(SOON)
    assert (it.stage.holders(KEY), it.is_attested()) == (["p"], True)
    assert "attested" in neighbour.notes


def test_8_a_successor_attests_for_its_predecessor() -> None:
    """P14, P8: no other owner is there; the name is its own at once, not after a hold."""
    it = scene(Place(host=1))
    it.o.die()
    assert it.stage.right(KEY).owner == it.o.holdings.incarnation
    successor = it.stage.owner("o2", name="o", on_host=process(it.stage, 12))
    it.stage.run(SOON)
    assert it.is_attested()
    assert (successor.machine.phase, it.stage.holders(KEY)) == ("joined", ["o2"])


def test_8_a_later_leader_asks_too() -> None:
    """P14, P19, P21: owner and leader end together; the next one inherits the owner's process."""
    it = scene()
    b = it.stage.manager("b")
    it.stage.run(1)
    it.o.die()
    it.a.kill()
    it.stage.run_until(lambda: b.leads, at_most=5)
    it.stage.run(OVERDUE + DEFAULT.renew_ns / 1e9)
    assert (it.stage.holders(KEY), ATTESTED in b.notes) == (["p"], True)


def test_8_who_speaks_again_is_asked_about_no_more() -> None:
    """P14: its connection broke, and it came back over another."""
    it = scene()
    it.a.lose(it.o)
    it.stage.run(1)
    assert it.stage.count(Attest, sender="a") > 0
    it.stage.run(2)
    asked = it.stage.count(Attest, sender="a")
    it.stage.run(60)
    assert it.stage.count(Attest, sender="a") == asked
    assert (it.stage.holders(KEY), it.is_attested()) == (["o"], False)


def test_8_a_witness_that_is_not_asked_is_not_believed() -> None:
    """P14, P2: nor one that answers under another seal, nor about another process."""
    it = scene()
    questions = it.stage.hold(Attest)
    it.part()
    it.stage.run(0.01)
    asked: Attest = questions.last.message
    nonce, own = it.p.machine.owner_nonce, it.p.machine.config.process
    assert own is not None
    good = Attested(
        pool=asked.pool,
        incarnation=asked.incarnation,
        process=asked.process,
        witness=own,
        owner_nonce=nonce,
        manager_nonce=asked.manager_nonce,
    )
    later = Process(
        boot_id="host-0",
        pid_namespace=1,
        time_namespace=asked.process.time_namespace,
        pid=10,
        start_time=asked.process.start_time + 1,
    )
    bad = (
        replace(good, manager_nonce=1),
        replace(good, owner_nonce=1),
        replace(good, witness=later),
        replace(good, process=later),
        replace(good, incarnation=99),
        replace(good, pool="another"),
    )
    stranger = it.stage.owner("q", on_host=process(it.stage, 12))
    for message in bad:
        it.stage.send_to_manager(it.p, "a", message)
    it.stage.send_to_manager(stranger, "a", good)
    it.stage.settle()
    assert it.a.notes.count(REFUSED) == len(bad)
    assert it.a.notes.count("late attestation") == 1, "of the incarnation that is not there"
    assert (it.stage.holders(KEY), it.is_attested()) == (["o"], False)


# --- the neighbour that cannot see ----------------------------------------------------------------


def never_attested(it: Scene) -> None:
    """`o` goes on for its whole term, and is waited for."""
    it.part()
    it.stage.run(DEFAULT.term_ns / 1e9 - 4)
    assert (it.stage.holders(KEY), it.is_attested()) == (["o"], False)
    it.stage.run(HOLD)
    assert (it.stage.holders(KEY), it.is_attested()) == (["p"], False)


def a_socket_is_closed() -> None:
    never_attested(scene())


def test_8_a_closed_socket_proves_nothing() -> None:
    """P14: the neighbour is asked, looks, and sees it."""
    a_socket_is_closed()
    ends_badly(a_socket_is_closed, without="closed-socket-is-death", promise="freed too early")


def a_stopped_owner() -> None:
    """It neither renews nor answers; its readers may believe until its term ends."""
    it = scene()
    it.o.stop()
    it.a.lose(it.o)
    it.stage.run(DEFAULT.term_ns / 1e9 - 4)
    assert (it.stage.holders(KEY), it.is_attested()) == (["o"], False)


def test_8_a_stopped_owner_is_not_dead() -> None:
    a_stopped_owner()
    ends_badly(a_stopped_owner, without="closed-socket-is-death", promise="freed too early")


def the_neighbour_cannot_read() -> None:
    never_attested(scene(Place(hides_pids=True)))


def test_8_hidepid() -> None:
    """P14: somebody has the pid, and nothing of it can be read. That may be `o`."""
    the_neighbour_cannot_read()
    ends_badly(
        the_neighbour_cannot_read, without="unread-taken-for-gone", promise="freed too early"
    )


def test_8_hidepid_shows_a_pid_that_nobody_has() -> None:
    """P14: that is told without reading anything."""
    it = scene(Place(hides_pids=True))
    it.o.die()
    it.a.lose(it.o)
    it.stage.run(SOON)
    assert (it.stage.holders(KEY), it.is_attested()) == (["p"], True)


def test_8_another_user() -> None:
    """P14: to a user without permissions, a pid is neither there nor not."""
    o = as_process(process(Stage(), 10))
    assert not Sight(seen_from=o, is_there=None, start_time=None).shows_gone(o)


def the_neighbour_is_on_another_host() -> None:
    never_attested(scene(Place(host=1)))


def test_8_another_host() -> None:
    """P14: the same namespaces by number, as every host's first ones are; another boot id."""
    the_neighbour_is_on_another_host()
    ends_badly(
        the_neighbour_is_on_another_host, without="attested-across-hosts", promise="freed too early"
    )


def the_neighbour_is_in_another_container() -> None:
    never_attested(scene(namespace=2, pid=1))


def test_8_another_pid_namespace() -> None:
    """P14: nobody has the pid 10 there."""
    the_neighbour_is_in_another_container()
    ends_badly(
        the_neighbour_is_in_another_container,
        without="attested-across-pid-namespaces",
        promise="freed too early",
    )


def the_neighbour_counts_from_another_time() -> None:
    never_attested(scene(Place(time_offset=500)))


def test_8_another_time_namespace() -> None:
    """P14: the same process, which began at another time by that clock."""
    the_neighbour_counts_from_another_time()
    ends_badly(
        the_neighbour_counts_from_another_time,
        without="attested-across-time-namespaces",
        promise="freed too early",
    )


def the_first_thread_has_ended() -> None:
    it = scene()
    assert it.o.on_host is not None
    it.o.on_host.first_thread_ended = True
    never_attested(it)


def test_8_a_zombie_leader_with_live_threads() -> None:
    """P14: the thread that the pid is named after has ended; the others renew and serve."""
    the_first_thread_has_ended()
    ends_badly(
        the_first_thread_has_ended, without="first-thread-taken-for-all", promise="freed too early"
    )


def test_8_a_reused_pid_shows_that_its_first_holder_is_gone() -> None:
    """P14: the pid belongs to a process that began later."""
    it = scene()
    it.o.die()
    it.stage.run(0.1)
    process(it.stage, 10)
    it.a.lose(it.o)
    it.stage.run(SOON)
    assert (it.stage.holders(KEY), it.is_attested()) == (["p"], True)


def a_pid_is_used_again_by_an_owner() -> None:
    """The word that the first is gone is repeated when the second has lost its connection."""
    it = scene()
    it.stage.prefer((WHOLE, ("o", "second", "p")))
    words = it.stage.hold(Attested)
    it.o.die()
    it.a.lose(it.o)
    it.stage.run(SOON)
    words.end_and_deliver()
    it.stage.run(SOON)
    assert it.is_attested()
    second = it.stage.owner("second", on_host=process(it.stage, 10))
    it.stage.run(10)
    assert it.stage.holders(KEY) == ["second"]
    it.a.notes.clear()
    it.stage.part("second", "a")
    it.a.lose(second)
    it.stage.run(SOON)
    words.last.deliver()
    it.stage.run(SOON)
    assert (it.stage.holders(KEY), it.is_attested()) == (["second"], False)


def test_8_a_reused_pid_is_another_process() -> None:
    """P14: an attestation names the incarnation and its process, to the start time."""
    a_pid_is_used_again_by_an_owner()
    ends_badly(
        a_pid_is_used_again_by_an_owner, without="attested-by-pid-alone", promise="freed too early"
    )


def the_witness_has_moved() -> None:
    """It is now in another place than the one from which it joined: what it sees there shows
    nothing.
    """
    it = scene()
    assert it.p.on_host is not None
    it.p.on_host.namespace = 2
    never_attested(it)


def test_8_a_witness_looks_from_where_it_joined() -> None:
    the_witness_has_moved()
    ends_badly(a_socket_is_closed, without="always-gone", promise="freed too early")


def test_8_an_attestation_comes_after_the_hold_has_run_out() -> None:
    """P14: there is nothing left to free, and the present owners of the keys keep them."""
    it = scene()
    words = it.stage.hold(Attested)
    it.o.die()
    it.a.lose(it.o)
    it.stage.run(HOLD + 2)
    assert it.stage.holders(KEY) == ["p"]
    number = it.stage.right(KEY).number
    words.end_and_deliver()
    it.stage.run(SOON)
    assert (it.stage.holders(KEY), it.stage.right(KEY).number) == (["p"], number)
    assert (it.a.notes.count(REFUSED), it.is_attested()) == (0, False)


def test_8_questions_are_asked_a_few_at_a_time() -> None:
    """P14: twenty neighbours are not all asked at once, and each is asked in its turn."""
    it = scene(Place(host=1))
    beside = [it.stage.owner(f"q{i}", on_host=process(it.stage, 20 + i)) for i in range(20)]
    it.stage.run(1)
    questions = it.stage.hold(Attest)
    it.part()
    assert len(questions.caught) == 3
    it.stage.run(8)
    assert {letter.receiver for letter in questions.caught} == {owner.slot for owner in beside}
