"""The credentials of a process, and the peers that it trusts: a token, certificates, an authority.

They are files and environment variables rather than arguments of every class: an operator gives
them, and the application need not know. Files are read again when they change, so that neither a
new certificate nor a new token needs a restart.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tenure.base.hosts import is_loopback
from tenure.base.names import shown
from tenure.errors import ConfigurationError
from tenure.runtime.private_files import warn_of_readers
from tenure.transport.tls import ClientTls, ServerTls

TOKEN, TOKEN_FILE = "TENURE_TOKEN", "TENURE_TOKEN_FILE"
CA, CERT, KEY = "TENURE_CA", "TENURE_CERT", "TENURE_KEY"
MUTUAL, INSECURE = "TENURE_MUTUAL_TLS", "TENURE_INSECURE"
TOKEN_BYTES = 4096
"""The most bytes of a file with a token: a token has 60."""


class UnsafeAddressError(ConfigurationError):
    """A token would have gone over the network in the clear, for everybody on the way to read."""


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """The credentials of a client: what it shows to managers and other owners, and what it demands
    of them.

    `token` is what `tenure token new` printed; in `token_file` it may be replaced while the process
    runs. `ca` is a file with the authorities whose certificates are trusted; without it, the
    system's are. `cert` and `key` are this process's own: it shows them when it is asked, and if it
    listens itself, it listens with TLS. With `mutual`, every client that connects to it must have a
    certificate of `ca`, too. A token is sent in the clear to other machines only with `insecure`.

    Raises ConfigurationError if these do not fit together, or a file cannot be read.
    """

    token: str | None = field(default=None, repr=False)
    token_file: str | os.PathLike[str] | None = None
    ca: str | os.PathLike[str] | None = None
    cert: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None
    mutual: bool = False
    insecure: bool = False

    def __post_init__(self) -> None:
        for name in "token_file", "ca", "cert", "key":
            _check_path(name, getattr(self, name))
        for name in "mutual", "insecure":
            _check_flag(name, getattr(self, name))
        if self.token is not None and self.token_file is not None:
            raise ConfigurationError("token and token_file are both given; leave one out")
        if (self.cert is None) != (self.key is None):
            there, missing = ("cert", "key") if self.key is None else ("key", "cert")
            raise ConfigurationError(f"{there} is given without {missing}; TLS needs both")
        if self.mutual and (self.ca is None or self.cert is None):
            raise ConfigurationError("mutual TLS needs ca, cert and key; one of them is missing")
        if self.token is not None:
            _checked_token(self.token, "token")
        if self.token_file is not None:
            self._read_token()
            warn_of_readers(Path(self.token_file), "a token")
        if self.key is not None:
            warn_of_readers(Path(self.key), "a private key")
        object.__setattr__(self, "_client", ClientTls(self.ca, self.cert, self.key))
        server = None
        if self.cert is not None and self.key is not None:
            server = ServerTls(self.cert, self.key, self.ca if self.mutual else None)
        object.__setattr__(self, "_server", server)

    _client: ClientTls = field(init=False, repr=False, compare=False)
    _server: ServerTls | None = field(init=False, repr=False, compare=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Credentials":
        """The credentials that the environment names; it may name none."""
        said = {name: environment.get(name) or None for name in (TOKEN, TOKEN_FILE, CA, CERT, KEY)}
        try:
            return cls(
                token=said[TOKEN],
                token_file=said[TOKEN_FILE],
                ca=said[CA],
                cert=said[CERT],
                key=said[KEY],
                mutual=_said(environment, MUTUAL),
                insecure=_said(environment, INSECURE),
            )
        except ConfigurationError as error:
            names = ", ".join(name for name, value in said.items() if value)
            raise ConfigurationError(f"{error} (from the environment: {names})") from error

    @property
    def listens_with_tls(self) -> bool:
        """Whether this process listens with TLS."""
        return self._server is not None

    @property
    def scheme(self) -> str:
        """The scheme of the URLs under which this process is reached."""
        return "https" if self.listens_with_tls else "http"

    def headers(self, url: str) -> dict[str, str]:
        """The headers of a request to `url`. Raises UnsafeAddressError if the token would go in the
        clear.
        """
        token = self.token if self.token_file is None else self._read_token()
        if token is None:
            return {}
        parts = urlsplit(url)
        if parts.scheme == "http" and not self.insecure and not is_loopback(parts.hostname or ""):
            raise UnsafeAddressError(
                f"the token would go to {url} in the clear: let the server have TLS and name it "
                f"with https://, or set {INSECURE}=1 if you trust everybody on the way"
            )
        return {"Authorization": f"Bearer {token}"}

    def to(self, url: str) -> ssl.SSLContext | None:
        """The TLS context to connect to `url` with; None if the URL needs no TLS."""
        return self._client.context() if urlsplit(url).scheme == "https" else None

    def for_listening(self) -> ssl.SSLContext | None:
        """The TLS context to listen with; None if this process has no certificate."""
        return None if self._server is None else self._server.context()

    def _read_token(self) -> str:
        assert self.token_file is not None
        try:
            with Path(self.token_file).open(encoding="ascii") as file:
                text = file.read(TOKEN_BYTES).strip()
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"the token in {self.token_file} cannot be read: {error}; write what "
                "`tenure token new` printed into it, and nothing more"
            ) from error
        return _checked_token(text, f"the token in {self.token_file}")


def _checked_token(text: object, what: str) -> str:
    if isinstance(text, str) and text and text.isascii() and text.isprintable() and " " not in text:
        return text
    raise ConfigurationError(  # without the text itself, which would get into logs
        f"{what} is not a token: a token is one word, as `tenure token new` prints it"
    )


def _check_path(name: str, value: object) -> None:
    if value is not None and not _can_be_path(value):
        raise ConfigurationError(
            f"{name} is the path of a file, not {value!r:.100} ({type(value).__name__})"
        )


def _can_be_path(value: object) -> bool:
    """Whether it is a text or a path that the system can be asked for."""
    try:
        return isinstance(value, str | os.PathLike) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _check_flag(name: str, value: object) -> None:
    """Refuse anything but a bool: any text would count as true, and the token would go in the
    clear.
    """
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is True or False, not {value!r:.100}")


def _said(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "")
    if value.lower() in ("", "0", "false", "no"):
        return False
    if value.lower() in ("1", "true", "yes"):
        return True
    raise ConfigurationError(f"{name} is 1 or 0, not {shown(value)}")


NOTHING = Credentials()
"""The credentials of a process that shows nothing."""
