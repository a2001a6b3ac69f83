"""A gateway's offer to take a socket over: who is told of the socket, and how."""

from tenure.entities.socket_offer import TakenSocket, is_offered, offer, read_told, told
from tenure.protocol.lease.port_proof import PortProof
from tenure.transport.pool_secret import PoolSecret

NONCE = "0123456789abcdef" * 2


def knowing(secret: bytes) -> PoolSecret:
    known = PoolSecret()
    known.told(PortProof(secret=secret, is_wanted=True))
    return known


OURS, OTHERS = knowing(b"s" * 32), knowing(b"t" * 32)


def test_an_offer_counts_for_its_pool_and_its_secret_only() -> None:
    made = offer("rooms", OURS, NONCE)
    assert made is not None
    assert is_offered([made], "rooms", OURS)
    assert is_offered(["carts x y z", made], "rooms", OURS)
    assert not is_offered([made], "carts", OURS)
    assert not is_offered([made], "rooms", OTHERS)
    assert not is_offered([made], "rooms", PoolSecret())
    assert not is_offered([made.replace("rooms", "carts")], "carts", OURS)
    assert not is_offered([made[:-1]], "rooms", OURS)
    assert not is_offered(["", "rooms", "rooms a b c"], "rooms", OURS)


def test_who_knows_no_secret_makes_no_offer() -> None:
    assert offer("rooms", PoolSecret(), NONCE) is None


def test_what_is_told_arrives_and_nonsense_does_not() -> None:
    for key, attachment in (("attic", "ann"), (7, {"user": "ann", "roles": ["x"]}), ("ä", None)):
        taken = TakenSocket("rooms", key, attachment)
        assert read_told(told(taken).encode()) == taken
    for bad in (b"", b"!", b"AAAA", b"A" * 20_000, told(TakenSocket("a", "b", 0)).encode()[:-4]):
        assert read_told(bad) is None
