"""One whose authority is withdrawn: it kept the sessions of TLS that it had before."""

import asyncio
import socket
import ssl

from benchmarks._attacks.attempt import Attempt, Family

SECONDS = 5.0
ASKED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_kept: dict[ssl.TLSVersion, tuple[ssl.SSLContext, ssl.SSLSession | None]] = {}


def _context(identity: str, version: ssl.TLSVersion) -> ssl.SSLContext:
    """One that shows the certificate in this file, and takes any of the listener."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.minimum_version = made.maximum_version = version
    made.load_cert_chain(identity)
    return made


def _let_in(
    to: tuple[str | None, int | None], context: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[bool, bool, ssl.SSLSession | None]:
    """Whether it is let in, whether by this session, and the session that it has now. Raises
    OSError where that says nothing of certificates.
    """
    try:
        with (
            socket.create_connection(to, SECONDS) as raw,
            context.wrap_socket(raw, session=session) as it,
        ):
            it.sendall(ASKED)
            is_in = it.recv(100).startswith(b"HTTP/1.1 200")
            return is_in, bool(it.session_reused), it.session
    except ssl.SSLError:
        return False, False, None


async def resumptions(it: Attempt) -> None:
    """S12: a session from before the withdrawal, when the certificate is taken no more."""
    version = (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2)[it.number % 2]
    if version not in _kept:
        _kept[version] = _context(it.token, version), None
    context, kept = _kept[version]
    is_in, _, session = await asyncio.to_thread(_let_in, it.to, context, None)
    if is_in:
        _kept[version] = context, session
        return
    if kept is None:
        raise ConnectionRefusedError("it was let in at no time")
    is_in, is_resumed, _ = await asyncio.to_thread(_let_in, it.to, context, kept)
    if is_in and is_resumed:
        it.reach()


FAMILIES = (Family(resumptions, "guarded", 2, "certificate"),)
