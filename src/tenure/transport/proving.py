"""How a process that connects proves that it belongs to the pool, and has the listener prove it.

One more request goes before the first on each connection. A listener whose version knows no proofs
is believed as long as the managers do not say that every process of the pool can prove itself.
"""

import secrets

import aiohttp

from tenure.base.challenges import NONCE_BYTES, Challenge, is_sealed, seal
from tenure.base.origin import parse
from tenure.transport.answer_body import read_body
from tenure.transport.credentials import Credentials
from tenure.transport.pool_secret import PoolSecret
from tenure.transport.port_guard import HEADER, PATH, origin_of
from tenure.transport.urls import url_at

ANSWER_BYTES = 400
"""The most that is read of an answer: an id, a nonce and a seal have 146."""
PROVES_NOTHING = (
    "does not prove that it belongs to the pool: it is of an older version, has not heard from its "
    "managers yet, or something else listens there"
)
OK = 200
_PARTS = 3


class Unproven(ConnectionError):
    """The listener does not prove that it belongs to the pool. Nothing was sent to it."""


async def proof_for(
    url: str, secret: PoolSecret, session: aiohttp.ClientSession, credentials: Credentials
) -> dict[str, str]:
    """The header to send with the request that follows, to the listener at `url`; none if this
    process was told no secret. Raises Unproven, and the errors of aiohttp.
    """
    ids = secret.ids
    if not ids:
        return {}
    at, nonce = origin_of(url), secrets.token_hex(NONCE_BYTES)
    where = url_at(parse(url, "address"), PATH, asked_for(at, nonce, ids))
    tls = credentials.to(url) or True
    async with session.get(where, ssl=tls, allow_redirects=False) as answer:
        said = await read_body(answer, ANSWER_BYTES) if answer.status == OK else None
    shown = answered(said or b"", Challenge(at, nonce, ""), secret)
    if shown is None and secret.is_wanted:
        raise Unproven(f"{url} {PROVES_NOTHING}")
    return {} if shown is None else {HEADER: shown}


def asked_for(at: str, nonce: str, ids: tuple[str, ...]) -> str:
    """The query by which a challenge is asked for."""
    return f"at={at}&nonce={nonce}&ids={','.join(ids)}"


def answered(said: bytes, asked: Challenge, secret: PoolSecret) -> str | None:
    """The proof to show to a listener that has said this; None if it did not prove itself."""
    parts = said.decode("latin-1").split(" ")
    if len(parts) != _PARTS:
        return None
    id_, theirs, sealed = parts
    mine = secret.get(id_)
    challenge = asked._replace(listener=theirs)
    if mine is None or not is_sealed(sealed, mine, "listener", challenge):
        return None
    return f"{id_} {asked.client} {theirs} {seal(mine, 'client', challenge)}"
