"""A gateway's offer to take a socket over: who is told of the socket, how, and who is believed."""

import pytest

from tenure.entities.socket_offer import (
    MOST_BYTES,
    SocketOffer,
    TakenSocket,
    offer,
    offered,
    read_told,
    told,
)
from tenure.protocol.lease.port_proof import PortProof
from tenure.transport.pool_secret import PoolSecret

NONCE = "0123456789abcdef" * 2
ANN = TakenSocket("rooms", "attic", "ann")


def knowing(secret: bytes) -> PoolSecret:
    known = PoolSecret()
    known.told(PortProof(secret=secret, is_wanted=True))
    return known


OURS, OTHERS = knowing(b"s" * 32), knowing(b"t" * 32)


def made(pool: str = "rooms", secret: PoolSecret = OURS, nonce: str = NONCE) -> SocketOffer:
    it = offer(pool, secret, nonce)
    assert it is not None
    return it


def test_an_offer_counts_for_its_pool_and_its_secret_only() -> None:
    said = made().header
    assert offered([said], "rooms", OURS)
    assert offered(["carts x y z", said], "rooms", OURS)
    assert not offered([said], "carts", OURS)
    assert not offered([said], "rooms", OTHERS)
    assert not offered([said], "rooms", PoolSecret())
    assert not offered([said.replace("rooms", "carts")], "carts", OURS)
    assert not offered([said[:-1]], "rooms", OURS)
    assert not offered(["", "rooms", "rooms a b c"], "rooms", OURS)


def test_who_knows_no_secret_makes_no_offer() -> None:
    assert offer("rooms", PoolSecret(), NONCE) is None


def test_what_is_told_arrives_and_nonsense_does_not() -> None:
    for key, attachment in (("attic", "ann"), (7, {"user": "ann", "roles": ["x"]}), ("ä", None)):
        taken = TakenSocket("rooms", key, attachment)
        assert read_told(told(taken).encode()) == taken
    for bad in (b"", b"!", b"AAAA", b"A" * 20_000, told(TakenSocket("a", "b", 0)).encode()[:-4]):
        assert read_told(bad) is None


@pytest.mark.parametrize("taken", [ANN, TakenSocket("rooms", 7, {"roles": ["x"]})])
def test_the_answer_of_a_process_of_the_pool_is_believed(taken: TakenSocket) -> None:
    at_gateway = made()
    at_worker = offered([at_gateway.header], "rooms", OURS)
    assert at_worker is not None
    assert at_gateway.taken(at_worker.answer(taken).encode()) == taken


def test_an_answer_stays_good_while_the_secret_changes() -> None:
    changing = knowing(b"s" * 32)
    at_gateway = made(secret=changing)
    changing.told(PortProof(secret=b"u" * 32, is_wanted=True))
    at_worker = offered([at_gateway.header], "rooms", changing)
    assert at_worker is not None
    assert at_gateway.taken(at_worker.answer(ANN).encode()) == ANN


def test_no_other_answer_is_believed() -> None:
    whole = made().answer(ANN).encode()
    shown, _, _ = whole.partition(b" ")
    of_offer = made().header.split(" ")[-1]
    forged = told(TakenSocket("rooms", "attic", "ADMIN"))
    for bad in (
        forged.encode(),
        f" {forged}".encode(),
        shown + b" " + forged.encode(),
        f"{of_offer} {forged}".encode(),
        f"{of_offer} ".encode(),
        made(secret=OTHERS).answer(ANN).encode(),
        made(nonce=NONCE[::-1]).answer(ANN).encode(),
        made("carts").answer(ANN).encode(),
        made().answer(TakenSocket("carts", "attic", "ann")).encode(),
        whole[:-1],
        whole + b"=",
        whole.swapcase(),
        whole + b" " * MOST_BYTES,
        "ÿ".encode("latin-1") * 64 + b" " + forged.encode(),
        b"",
    ):
        assert made().taken(bad) is None, bad
    assert made().taken(whole) == ANN
