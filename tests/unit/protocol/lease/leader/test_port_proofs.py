"""What owners and lookups are told of their pool's secret, and when they are told to ask for it."""

from tenure.base.ranges import WHOLE
from tenure.protocol.lease.leader.context import LeaderContext, Seal
from tenure.protocol.lease.leader.noted import LeaderKind
from tenure.protocol.lease.leader.publisher import Publisher
from tenure.protocol.lease.leader.session import Session
from tenure.protocol.lease.messages import Join, LeaseResponse, Sync, SyncResponse
from tenure.protocol.lease.port_proof import PortProof
from tenure.protocol.lease.records import PoolCreated
from tenure.protocol.lease.timing import DEFAULT
from tests.unit.protocol.lease.desk import SEAL, ByName, Desk, Unrivalled, at

ANN, BOB, LOOKUP = 101, 102, 7


def desk(secret: bytes = b"s" * 16) -> Desk:
    made = Desk(ByName((WHOLE, "ann bob")))
    made.context.history.secret = secret
    return made


def join(at_desk: Desk, name: str, nonce: int, *, proves: bool = True) -> LeaseResponse:
    at_desk.sequence += 1
    message = Join(
        pool="p",
        kind=None,
        name=name,
        address=f"http://{name}",
        owner_nonce=nonce,
        manager_nonce=SEAL.nonce,
        sequence=at_desk.sequence,
        proves=proves,
    )
    at_desk.pool.on_join(at(0), nonce, message)
    at_desk.commit()
    (answer,) = at_desk.told(nonce, LeaseResponse)
    return answer


def sync(at_desk: Desk, *, proves: bool = True) -> PortProof | None:
    message = Sync(pool="p", sequence=1, journal=0, leadership=0, lsn=0, nonce=1, proves=proves)
    at_desk.pool.publisher.on_sync(at(0), LOOKUP, message)
    at_desk.commit()
    (answer,) = at_desk.told(LOOKUP, SyncResponse)
    return answer.proof


def test_owners_and_lookups_of_a_pool_are_told_the_same_and_to_ask_for_it() -> None:
    here = desk()
    told = join(here, "ann", ANN).proof
    assert told is not None
    assert told.is_wanted
    assert join(here, "bob", BOB).proof == sync(here) == told
    assert repr(told.secret) not in repr(told)


def test_another_pool_and_another_journal_have_another_secret() -> None:
    def secret_of(pool: str, seal: Seal) -> bytes:
        history = desk().context.history
        history.apply(PoolCreated(pool="q", kind="ordered"))
        context = LeaderContext(seal, DEFAULT, history, Unrivalled())
        told = Publisher(context, history.tables[pool]).proofs.synced(LOOKUP, proves=True)
        assert told is not None
        return told.secret

    same = secret_of("p", SEAL)
    assert same == secret_of("p", SEAL._replace(leadership=2, nonce=3)), "as its successor tells"
    others = {secret_of("q", SEAL), secret_of("p", SEAL._replace(journal=10))}
    assert len({same, *others}) == 3


def test_while_a_process_of_the_pool_cannot_prove_anything_nobody_is_told_to_ask() -> None:
    here = desk()
    number = here.owner(at(0), "ann", ANN)
    held = here.settle(at(0.3), number, ANN)
    told = here.ask(at(1), number, ANN, held).proof  # type: ignore[union-attr]
    assert told is None, "this one cannot: its version sends no such field"
    new = join(here, "bob", BOB).proof
    assert new is not None
    assert not new.is_wanted
    session = here.pool.sessions[number]
    here.pool.on_death(at(1), session, LeaderKind.LEFT)
    after = sync(here)
    assert after is not None
    assert after.is_wanted
    assert after.secret == new.secret


def test_an_owner_hears_of_a_change_although_it_asks_in_short() -> None:
    here = desk()
    session = Session(1, "ann", ANN, at(9))
    responses, proofs = here.pool.responses, here.pool.proofs
    session.connection = ANN
    responses.respond(session, ())
    responses.renew(session, (), (), is_short=True)
    here.commit()
    assert [each.proof for each in here.told(ANN, LeaseResponse)] == [proofs.for_owner(session)]
    sync(here, proves=False)
    responses.renew(session, (), (), is_short=True)
    here.commit()
    (news,) = here.told(ANN, LeaseResponse)
    assert news.proof is not None
    assert not news.proof.is_wanted
    here.pool.on_disconnected(LOOKUP)
    responses.renew(session, (), (), is_short=True)
    here.commit()
    (news,) = here.told(ANN, LeaseResponse)
    assert news.proof is not None
    assert news.proof.is_wanted


def test_a_journal_without_a_secret_tells_none() -> None:
    here = desk(b"")
    assert join(here, "ann", ANN).proof is None
    assert sync(here) is None
