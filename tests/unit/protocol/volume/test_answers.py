"""What a server answers, what it keeps to itself, and until when it says that a lease lasts."""

from tenure.base.instants import Instant, seconds
from tenure.base.noted import Noted
from tenure.base.ranges import WHOLE
from tenure.protocol.volume.messages import Acknowledge, RequestRefused, WriteDone
from tenure.protocol.volume.noted import VolumeServerKind
from tenure.protocol.volume.server.events import (
    BodyEnded,
    ClientAsked,
    ObjectLoaded,
    RangeGranted,
    ServerConfig,
)
from tenure.protocol.volume.server.readers import label_of
from tests.unit.protocol.volume.stage import OWNED, TERMS, K, Stage, held, opened
from tests.unit.protocol.volume.test_what_is_over import fetch

LONG = "it broke " * 1000


def refused(stage: Stage) -> RequestRefused:
    """The refusal that is on its way."""
    message = stage.take("RequestRefused").message
    assert isinstance(message, RequestRefused)
    return message


def test_an_acknowledgement_of_nobody_is_not_answered() -> None:
    """It asks nothing; the next question is answered (V8)."""
    stage = held("a")
    contact = stage.caches["a"].contacts["s"]
    for reader in (contact.reader, contact.reader + 1):
        stage.tell_server(
            ClientAsked(
                Acknowledge(
                    client=contact.nonce, epoch=contact.epoch, reader=reader, items=(1, 2, 3)
                )
            )
        )
    assert not stage.sent


def test_whoever_reads_too_early_is_told_when_it_may() -> None:
    """The state died with its owner, and its readers may still hit (V13)."""
    stage = Stage(config=ServerConfig(alone=False))
    stage.grant(quiet_s=2)
    stage.want("a")
    stage.carry("Reconnect")
    stage.carry("Reconnected")
    stage.carry("Fetch")
    told = refused(stage)
    assert (told.why, told.again_ns) == ("quiet", seconds(2))


def test_whoever_is_refused_without_an_instant_asks_again_after_a_lease() -> None:
    """And the server's people are told that there are too many."""
    stage = held("a")
    stage.server.context.refuse(fetch(stage, "a"), "too many")
    actions = stage.server.context.take_actions()
    assert Noted(VolumeServerKind.TOO_MANY, "", label_of(stage.nonce("a"))) in actions
    stage.server.context.refuse(fetch(stage, "a"), "closed")
    stage.do_server(stage.server.advance(stage.now("s")))
    told = refused(stage)
    assert (told.why, told.again_ns) == ("closed", TERMS.term_ns)


# --- loads ---


def test_a_reader_that_has_reconnected_meanwhile_is_not_given_the_load() -> None:
    """It asks again, and what was loaded for its earlier number is nobody's (V2)."""
    stage = opened(patient=True)
    stage.read("a", b"l")
    stage.want("a")
    stage.settle_to("", loads=True)
    stage.reconnect("a")
    stage.carry("Reconnect")
    stage.sent.clear()
    stage.load()
    assert not stage.letters("Fetched")


def test_a_slow_load_does_not_make_leases_longer() -> None:
    """They count from when the question came (V3), so a write waits no longer for them (C3)."""
    stage = opened(patient=True)
    stage.want("a")
    stage.settle_to("", loads=True)
    received = stage.now("s")
    stage.pass_(2)
    stage.load()
    (reader,) = stage.server.context.readers
    assert reader.volume_until == Instant(received + TERMS.held_ns(TERMS.term_ns))
    assert reader.leases[K].until == Instant(received + TERMS.held_ns(TERMS.lease_ns))


def test_a_load_under_way_when_its_range_is_granted_anew_is_not_told() -> None:
    """Another owner may have written there, and this one was never asked to let it go (V10)."""
    stage = Stage(config=OWNED)
    stage.grant(7)
    stage.want("a")
    stage.settle_to("", loads=True)
    stage.grant(9)
    stage.load(b"of before")
    assert stage.letters("Elsewhere")
    assert not stage.letters("Fetched")


def test_what_is_said_of_an_error_is_short() -> None:
    """Whatever an application raises, a message stays within its bound."""
    stage = opened()
    stage.want("a")
    stage.settle_to("", loads=True)
    stage.tell_server(ObjectLoaded(stage.loads.pop().load, None, LONG))
    assert len(refused(stage).detail) == 2000
    stage = held("a")
    stage.write_at("a")
    stage.carry("Write")
    stage.tell_server(BodyEnded(stage.bodies.pop().write, ok=False, detail=LONG))
    done = stage.take("WriteDone").message
    assert isinstance(done, WriteDone)
    assert len(done.detail) == 2000


# --- what is not served ---


def test_a_server_of_an_owner_serves_nothing_before_it_knows_the_term() -> None:
    """Its leases would have no end (V11)."""
    stage = Stage(config=OWNED)
    stage.tell_server(RangeGranted(range=WHOLE, number=7, history=99))
    assert not stage.server.view().is_open
    stage.grant(7)
    assert stage.server.view().is_open
