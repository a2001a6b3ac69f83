"""The URL of an etcd journal: where the members are, and how to speak with them.

    etcd:http://h1:2379,http://h2:2379,http://h3:2379?prefix=/tenure/chat/

A URL is logged, shown by the manager's API and listed with its process. So it has no place for a
password: it names a file that holds the password.
"""

import ssl
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import msgspec

from tenure.base.names import shown_url
from tenure.errors import ConfigurationError

EXAMPLE = "etcd:http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379"

_OPTIONS = ("prefix", "timeout", "ca", "cert", "key", "user", "password_file")
_MAX_PREFIX_BYTES = 1_024  # every key of every record repeats it


class EtcdOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The address of etcd, and how to speak with it. Raises ConfigurationError if an option cannot
    be used.
    """

    endpoints: tuple[str, ...]
    """The members' client URLs, tried in this order; whichever answered last is asked first."""
    prefix: str = "/tenure/"
    """The beginning of all keys of this journal: another prefix is another journal."""
    timeout: float = 0.5
    """How many seconds one member has to answer, before the next one is asked. A leader counts on
    its leadership for 1.5 s from a beat that it sent: there must be time for a second member."""
    ca: str = ""
    """A file of certificates to trust instead of the system's."""
    cert: str = ""
    """The manager's own certificate, where etcd asks for one; `key` is its private key."""
    key: str = ""
    user: str = ""
    password_file: str = ""
    """Read whenever a token is needed, so that the password can be changed."""

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ConfigurationError(f"the etcd journal has no endpoint; write it like {EXAMPLE}")
        for endpoint in self.endpoints:
            _check_endpoint(endpoint)
        _check_prefix(self.prefix)
        if not 0 < self.timeout <= 60:  # noqa: PLR2004 - a minute is no timeout any more
            raise ConfigurationError(
                f"the etcd journal's timeout is {self.timeout} s; it must be above 0 and at most 60"
            )
        if bool(self.cert) != bool(self.key):
            raise ConfigurationError(
                "the etcd journal's client certificate takes two files: give both cert= and key="
            )
        if bool(self.user) != bool(self.password_file):
            raise ConfigurationError(
                "to log in to etcd, give both user= and password_file=, a file that holds nothing "
                "but the password"
            )

    def ssl_context(self) -> ssl.SSLContext | None:
        """How to speak TLS, where an endpoint does. Raises ConfigurationError for unusable files.

        Reads files.
        """
        if not any(endpoint.startswith("https:") for endpoint in self.endpoints):
            if self.ca or self.cert:
                raise ConfigurationError(
                    "the etcd journal has certificates, but no endpoint with https://"
                )
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key)
        except OSError as error:  # ssl's own errors are OSErrors
            raise ConfigurationError(
                f"the etcd journal's certificates cannot be used ({error}): see that ca, cert and "
                "key name PEM files that the manager's user can read"
            ) from error
        return context

    def password(self) -> str:
        """The password, without the line end that editors leave. Raises ConfigurationError."""
        try:
            return Path(self.password_file).read_text("utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"the etcd journal's password_file {self.password_file} cannot be read ({error})"
            ) from error


def parse_etcd_url(url: str) -> EtcdOptions:
    """The options that `url` names. Raises ConfigurationError."""
    rest = url.removeprefix("etcd:")
    endpoints, _, query = rest.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if query else []
    except ValueError:
        raise ConfigurationError(
            "in the journal's URL, what follows ? is not name=value&name=value"
        ) from None
    options = dict(pairs)
    unknown = sorted(options.keys() - set(_OPTIONS))
    if unknown or len(options) != len(pairs):
        what = ", ".join(unknown) or "an option that is given twice"
        raise ConfigurationError(
            f"the etcd journal does not know {what}; it knows {', '.join(_OPTIONS)}, each once"
        )
    members = tuple(each.rstrip("/") for each in endpoints.split(",") if each)
    try:
        return msgspec.convert({**options, "endpoints": members}, EtcdOptions, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"the etcd journal's URL cannot be read: {error}") from error


def _check_endpoint(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        is_good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is not a number
        is_good = False
    else:
        if parts.username is not None:
            raise ConfigurationError(
                "an etcd journal's URL is shown and logged, so it takes no password: say "
                "?user=NAME&password_file=PATH at its end"
            )
        is_good = is_good and not parts.path and not parts.fragment
    if not is_good:
        raise ConfigurationError(
            f"{shown_url(endpoint)} is not an endpoint of etcd; write it with its scheme and port: "
            f"{EXAMPLE}"
        )


def _check_prefix(prefix: str) -> None:
    if not (prefix.startswith("/") and prefix.endswith("/") and prefix.isprintable()):
        raise ConfigurationError(
            f"the etcd journal's prefix is {prefix!r}; it begins and ends with /, as /tenure/"
        )
    if len(prefix.encode()) > _MAX_PREFIX_BYTES:
        raise ConfigurationError(
            f"the etcd journal's prefix is longer than {_MAX_PREFIX_BYTES} bytes"
        )
