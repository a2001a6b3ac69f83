"""The claims of the Volume Leases paper about its protocol, tried on the machines themselves.

There is one test for each claim, with its section or figure. `test_volume_leases.py` has the costs
of its algorithms on a workload.
"""

import pytest

from tenure.base.instants import seconds
from tenure.protocol.volume.messages import Fetched, Invalidate, Reconnect, Reconnected, Renewed
from tenure.protocol.volume.server.events import ServerConfig, VolumeMemory
from tenure.protocol.volume.server.terms import Terms
from tests.unit.protocol.volume.stage import K, L, Stage, held, opened

M = b"m"
BASIC = Terms(invalidate="at once")
BEST_EFFORT = Terms(mode="best effort")


def reader_of(stage: Stage, name: str = "a") -> int:
    return stage.nonce(name)


# --- figure 2: what there is of a volume and of an object ---


def test_figure_2_a_volume_has_an_epoch_and_who_holds_it_until_when() -> None:
    stage = held("a", "b")
    view = stage.server.view()
    assert view.epoch
    assert [each.client for each in view.readers] == [reader_of(stage, n) for n in "ab"]
    assert all(each.volume_until > stage.now("s") for each in view.readers)


def test_figure_2_an_object_has_a_version_and_who_holds_it() -> None:
    stage = held("a", "b")
    assert [each.client for each in stage.server.context.readers.holders(K)] == [
        reader_of(stage, n) for n in "ab"
    ]
    before = stage.as_of("a").count
    stage.write()
    stage.settle()
    stage.read("a")
    assert stage.as_of("a").count == before + 1


# --- figure 3: the server ---


def test_figure_3_a_write_invalidates_every_holder_and_waits_for_all() -> None:
    stage = held("a", "b")
    stage.write()
    assert len(stage.letters("Invalidate")) == 2
    stage.carry("Invalidate", to="a")
    stage.carry("Acknowledge")
    assert not stage.bodies
    stage.carry("Invalidate", to="b")
    stage.carry("Acknowledge")
    assert stage.bodies


def test_figure_3_a_write_invalidates_nobody_whose_object_lease_has_ended() -> None:
    stage = held("a", terms=Terms(lease_ns=seconds(1)))
    stage.pass_(1.1)
    stage.write()
    assert not stage.letters("Invalidate")
    assert stage.bodies


def test_figure_3_a_renewal_of_an_old_epoch_is_answered_with_must_renew_all() -> None:
    """Every client on record before a crash is unreachable afterwards."""
    stage = held("a")
    stage.restart()
    stage.use("a", K)
    stage.carry("Renew")
    stage.carry("UnknownReader")
    message = stage.carry("Reconnect")
    assert isinstance(message, Reconnect)
    assert [each.key for each in message.listed] == [K]


def test_figure_3_who_does_not_acknowledge_is_unreachable_in_the_basic_algorithm() -> None:
    """It was sent an invalidation, and neither acknowledged it nor was heard again."""
    stage = held("a", terms=Terms(invalidate="at once", keep_ns=0))
    stage.write()
    stage.take("Invalidate")
    stage.pass_(3.3)
    stage.wake()
    assert stage.bodies
    assert not len(stage.server.context.readers)


# --- figure 4: the client ---


def test_figure_4_a_client_reads_while_both_leases_run() -> None:
    stage = held("a")
    stage.pass_(2.9)
    assert stage.hit("a") == b"old"
    stage.pass_(0.2)
    assert stage.hit("a") is None


def test_figure_4_a_volume_lease_alone_is_renewed_without_the_object() -> None:
    stage = held("a")
    stage.pass_(4)
    stage.want("a")
    assert [each.name for each in stage.sent] == ["Renew"]
    stage.settle()
    assert stage.hit("a") == b"old"


def test_figure_4_an_object_lease_is_renewed_with_the_version_that_the_client_has() -> None:
    stage = held("a", terms=Terms(lease_ns=seconds(1)))
    stage.pass_(1.1)
    stage.want("a")
    stage.carry("Fetch")
    answer = stage.carry("Fetched")
    assert isinstance(answer, Fetched)
    assert (answer.kind, answer.value) == ("unchanged", b"")
    assert not stage.loads
    assert stage.hit("a") == b"old"


def test_figure_4_what_was_invalidated_is_dead_before_it_is_acknowledged() -> None:
    stage = held("a")
    stage.write()
    stage.carry("Invalidate")
    assert stage.letters("Acknowledge")
    assert stage.hit("a") is None


# --- section 3.1 ---


def test_3_1_a_modified_object_comes_with_its_lease() -> None:
    """The server piggybacks the data on the renewal: one exchange."""
    stage = held("a", terms=Terms(lease_ns=seconds(1)))
    stage.pass_(1.1)
    stage.write()
    stage.settle()
    stage.want("a")
    stage.carry("Fetch")
    stage.load()
    answer = stage.carry("Fetched")
    assert isinstance(answer, Fetched)
    assert (answer.kind, answer.value) == ("value", b"new")
    assert stage.hit("a") == b"new"


@pytest.mark.parametrize(("lease_s", "waits_s"), [(600, 3.25), (1, 1.09)])
def test_3_1_a_write_waits_until_the_earlier_of_the_two_leases_ends(
    lease_s: float, waits_s: float
) -> None:
    """Table 1: min(t, t_v), here with the margin for clocks."""
    stage = held("a", terms=Terms(lease_ns=seconds(lease_s)))
    stage.write()
    stage.take("Invalidate")
    stage.pass_(waits_s - 0.02)
    stage.wake()
    assert not stage.bodies
    stage.pass_(0.02)
    stage.wake()
    assert stage.bodies


# --- section 3.1.1: clients that cannot be reached ---


def test_3_1_1_one_exchange_says_which_of_its_entries_a_client_may_keep() -> None:
    """Renew what was not modified; invalidate what was."""
    stage = opened()
    stage.store[M] = b"old"
    for key in (K, L, M):
        stage.read("a", key)
    stage.pass_(70)
    stage.wake()
    assert not len(stage.server.context.readers), "it has not been heard for t_v and d"
    stage.write(L)
    stage.settle()
    stage.use("a")
    stage.carry("Renew")
    stage.carry("UnknownReader")
    stage.carry("Reconnect")
    answer = stage.carry("Reconnected")
    assert isinstance(answer, Reconnected)
    assert [each.key for each in answer.live] == [K, M]
    assert [stage.hit("a", key) for key in (K, L, M)] == [b"old", None, b"old"]


# --- section 3.1.2: servers that fail ---


def test_3_1_2_a_server_waits_out_the_longest_volume_lease_that_it_may_have_given() -> None:
    stage = held("a")
    stage.restart()
    stage.write()
    stage.pass_(3.2)
    stage.wake()
    assert not stage.bodies
    stage.pass_(0.1)
    stage.wake()
    assert stage.bodies


def test_3_1_2_or_until_the_latest_end_that_is_written_down() -> None:
    config = ServerConfig(remembers="latest end", boot_id="boot")
    stage = held("a", config=config)
    assert isinstance(stage.memory, VolumeMemory)
    assert stage.memory.until > stage.now("s")
    stage.pass_(30)
    stage.restart(config)
    stage.write()
    assert stage.bodies, "every lease had ended before it began"


# --- section 3.2: invalidations that are delayed ---


def test_3_2_who_has_no_volume_lease_is_sent_nothing_until_it_comes_back() -> None:
    """The invalidations of several objects then come in one message, with its volume lease."""
    stage = opened()
    for key in (K, L):
        stage.read("a", key)
    stage.pass_(4)
    for ticket, key in enumerate((K, L), 1):
        stage.write(key, ticket=ticket)
        stage.end_body()
    assert not stage.sent
    stage.use("a")
    stage.carry("Renew")
    answer = stage.carry("Renewed")
    assert isinstance(answer, Renewed)
    assert [each.key for each in answer.items] == [K, L]


def test_3_2_an_inactive_client_is_forgotten_with_its_pending_list_after_d() -> None:
    stage = held("a", terms=Terms(keep_ns=seconds(10)))
    stage.pass_(4)
    stage.write()
    stage.end_body()
    stage.pass_(9.2)
    stage.wake()
    assert [each.items for each in stage.server.view().readers] == [1]
    stage.pass_(0.1)
    stage.wake()
    assert not len(stage.server.context.readers)
    assert stage.read("a") == b"new"


def test_3_2_writes_do_not_wait_for_who_is_inactive() -> None:
    stage = held("a", "b")
    stage.pass_(2)
    stage.use("b")
    stage.settle()
    stage.pass_(1.5)
    stage.write()
    assert [each.to for each in stage.letters("Invalidate")] == ["b"]


# --- section 3.3: best effort ---


def test_3_3_best_effort_writes_at_once_and_tells_in_parallel() -> None:
    stage = held("a", terms=BEST_EFFORT)
    stage.write()
    assert stage.bodies
    assert stage.letters("Invalidate")
    stage.end_body()
    assert stage.hit("a") == b"old"
    stage.carry("Invalidate")
    assert stage.hit("a") is None


def test_3_3_best_effort_is_stale_for_no_longer_than_a_volume_lease() -> None:
    """The reader is a client that is cut off, and knows nothing."""
    stage = held("a", terms=BEST_EFFORT)
    stage.write()
    stage.end_body()
    stage.take("Invalidate")
    stage.pass_(3)
    assert stage.hit("a") is None
    assert stage.read("a") == b"new", "its next volume lease brings what it missed"


# --- table 1: what the three volume algorithms cost, in messages ---

HOLDERS = "abcdefghij"


def holders(terms: Terms) -> Stage:
    """Ten clients hold an object; the volume leases of five have ended."""
    stage = Stage(terms, clients=HOLDERS)
    stage.pass_(3.25)
    stage.wake()
    for name in HOLDERS:
        stage.read(name)
    stage.pass_(2)
    for name in HOLDERS[:5]:
        stage.use(name)
    stage.settle()
    stage.pass_(1.5)
    return stage


def told_by_a_write(stage: Stage) -> int:
    stage.write()
    return len([each for each in stage.sent if isinstance(each.message, Invalidate)])


def test_table_1_a_write_costs_every_holder_of_the_object_with_volume_leases() -> None:
    assert told_by_a_write(holders(BASIC)) == len(HOLDERS)


def test_table_1_a_write_costs_every_active_holder_with_delayed_invalidations() -> None:
    assert told_by_a_write(holders(Terms())) == len(HOLDERS) // 2


def test_table_1_a_read_costs_a_renewal_in_t_v_for_all_objects_of_a_volume() -> None:
    """Ten objects, each read ten times a second for a minute: 1/(R t_v) of the reads ask."""
    stage = opened()
    keys = [b"%d" % i for i in range(10)]
    for key in keys:
        stage.store[key] = b"old"
        stage.read("a", key)
    asked = 0
    for _ in range(600):
        stage.pass_(0.1)
        for key in keys:
            if stage.hit("a", key) is None:
                stage.want("a", key)
                asked += len([each for each in stage.sent if each.to == "s"])
                stage.settle()
    assert asked == 60 // 3


def test_table_1_a_server_has_state_of_active_and_lately_inactive_clients_only() -> None:
    stage = holders(Terms(keep_ns=seconds(1)))
    assert stage.server.context.readers.leases == len(HOLDERS)
    stage.pass_(1)
    stage.wake()
    assert stage.server.context.readers.leases == len(HOLDERS) // 2
