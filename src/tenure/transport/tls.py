"""TLS from files, which are read again when they change.

A certificate is replaced every few weeks, while connections live for months. A server looks at the
files at each handshake, at most once a second; existing connections keep the certificate that they
began with. If the files cannot be used at such a moment, because one of two is already written and
the other is not, nothing changes.
"""

import logging
import os
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tenure.errors import ConfigurationError

File: TypeAlias = str | os.PathLike[str]
LOOK_SECONDS = 1.0
"""How often the files are checked, whatever the number of handshakes."""

_log = logging.getLogger("tenure.transport")


class _Reread:
    """A context made from files, and made again when they change."""

    def __init__(self, files: tuple[File, ...], make: Callable[[], ssl.SSLContext]) -> None:
        self._files = files
        self._make = make
        self._seen = self._stamp()
        self._looked = time.monotonic()
        self._context = make()

    def context(self) -> ssl.SSLContext:
        """The present context."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return self._context
        self._looked = now
        stamp = self._stamp()
        if stamp == self._seen:
            return self._context
        try:
            self._context = self._make()
            self._seen = stamp
            _log.info("read again: %s", ", ".join(map(str, self._files)))
        except ConfigurationError as error:
            _log.warning("going on with the certificates that there were: %s", error)
        return self._context

    def _stamp(self) -> tuple[tuple[int, int, int], ...]:
        return tuple(_state(file) for file in self._files)


def _state(file: File) -> tuple[int, int, int]:
    try:
        found = Path(file).stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


class ClientTls:
    """How a client makes TLS connections. Raises ConfigurationError for unusable files."""

    def __init__(self, ca: File | None, cert: File | None, key: File | None) -> None:
        self._ca, self._cert, self._key = ca, cert, key
        files = tuple(file for file in (ca, cert, key) if file is not None)
        # Without files there is nothing to check, and the system's authorities are slow to load.
        self._reread = _Reread(files, self._make) if files else None

    def context(self) -> ssl.SSLContext:
        """The present context."""
        if self._reread is None:
            self._reread = _Reread((), self._make)
        return self._reread.context()

    def _make(self) -> ssl.SSLContext:
        with _plain("the authorities in", self._ca):
            context = ssl.create_default_context(
                ssl.Purpose.SERVER_AUTH, cafile=None if self._ca is None else os.fspath(self._ca)
            )
        _load(context, self._cert, self._key)
        return context


class ServerTls:
    """How a server takes TLS connections. Raises ConfigurationError for unusable files.

    With `client_ca`, every client must have a certificate of that authority.
    """

    def __init__(self, cert: File, key: File, client_ca: File | None = None) -> None:
        self._cert, self._key, self._client_ca = cert, key, client_ca
        files = (cert, key) if client_ca is None else (cert, key, client_ca)
        self._reread = _Reread(files, self._make)

    def context(self) -> ssl.SSLContext:
        """The context to listen with. At each handshake the context of the present files replaces
        it.
        """
        listening = self._make()

        def at_handshake(connection: ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> None:
            connection.context = self._reread.context()

        listening.sni_callback = at_handshake
        return listening

    def _make(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # A session that is resumed is not asked for its certificate again: whoever had one ticket
        # would be let in after its authority was withdrawn, or its certificate has expired.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        _load(context, self._cert, self._key)
        if self._client_ca is not None:
            # Before TLS 1.3 a server also resumes sessions that it remembers, without a ticket.
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            with _plain("the authorities in", self._client_ca):
                context.load_verify_locations(os.fspath(self._client_ca))
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _load(context: ssl.SSLContext, cert: File | None, key: File | None) -> None:
    if cert is None or key is None:
        return
    with _plain(f"the certificate in {cert} and the key in", key):
        context.load_cert_chain(os.fspath(cert), os.fspath(key), password=_no_password)


def _no_password() -> str:
    """Refuse to ask: OpenSSL would ask on the terminal, and wait for ever."""
    raise ConfigurationError("its key is encrypted; tenure asks nobody for a password: decrypt it")


class _plain:  # noqa: N801  # it reads as a word
    """Turns an error into one that says which file is unusable, and why."""

    def __init__(self, what: str, file: File | None) -> None:
        self._what = f"{what} {file}"

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError | ValueError):  # ssl.SSLError is an OSError
            why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"{self._what} cannot be used: {why}; TLS takes files in PEM format, of which the "
                "certificate's fits the key"
            ) from error
