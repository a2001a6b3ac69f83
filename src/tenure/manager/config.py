"""The settings of a manager: one frozen value, checked when it is made.

Values come from three places, of which the later ones win: the defaults, the configuration file
(`config_file`), the command line. None means "not said", so that a default can depend on other
values: a first owner may create its pool if only this machine's processes can be owners.

The settings are listed here and nowhere else. The options of `tenure manager` are these fields, and
what is said below each is the option's help; the configuration file takes all but `first_start`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from tenure.base.names import shown_url
from tenure.errors import ConfigurationError
from tenure.manager.limits import ManagerLimits
from tenure.protocol.lease.leader.events import CreatePool
from tenure.protocol.lease.rivalry import check_realm
from tenure.protocol.lease.timing import PRESETS, Timing, preset

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7400
HIGHEST_PORT = 65_535
JOURNAL_FILE = "journal.sqlite"
STATE_VARIABLE = "TENURE_STATE"


class ManagerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a manager. Raises ConfigurationError if they do not fit together."""

    host: str = DEFAULT_HOST
    """The address to listen on; 127.0.0.1 by default."""
    port: int = DEFAULT_PORT
    """The port to listen on; 7400 by default, 0 takes a free one."""
    journal: str | None = None
    """memory, sqlite:PATH or etcd:URL,URL,...; by default journal.sqlite in the state directory."""
    state_dir: Path | None = None
    """The directory of the journal; by default $TENURE_STATE, or ~/.local/state/tenure."""
    preset: Literal["paper", "default", "test"] = "default"
    """How long leases last: paper (60 s), test (1.2 s), or default (12 s), which is the default."""
    advertise: str | None = None
    """The URL by which others find this manager; without a port, the port that it listens on."""
    create_pools: bool | None = None
    """Whether a pool's first owner creates the pool; by default only on a loopback address."""
    insecure: bool = False
    """Listen on an address that other machines reach, and trust everybody there."""
    # A manager without tokens answers to no others: a page in a browser could be of one.
    known_as: tuple[str, ...] = ()
    """Another host name that clients use; needed where no tokens are asked for. Can be repeated."""
    others: tuple[str, ...] = ()
    "The URL of another manager of the journal: the leader asks it whether it leads. Repeatable."
    realm: str = ""
    """The name of these managers, kept in the journal: clients that know it follow no others."""
    tls_cert: Path | None = None
    """A file with the certificate to show, in PEM; replaced while it runs, it is read again."""
    tls_key: Path | None = None
    """The file with the key of the certificate."""
    tls_client_ca: Path | None = None
    """A file with authorities: whoever connects must have a certificate of one of them."""
    tokens: Path | None = None
    """The file of tokens, made with `tenure token new`: whoever connects must show one."""
    viewers_see_contents: bool = False
    """Show tokens of the role viewer what is kept of entities, and not only their keys."""
    audit_log: Path | None = None
    """A file to which every change is written: who, what, from where."""
    hide_hot_keys: bool = False
    """Tell tokens of the role viewer who has the hottest keys, and not which keys these are."""
    # They are code, which the manager runs as its own user.
    policies: tuple[str, ...] = ()
    "A policy of yours that may be chosen for a pool: module:Class or an entry point. Repeatable."
    first_start: bool = False
    """There was no earlier manager of these owners: with a new journal, grant after 2 s at most."""
    limits: ManagerLimits = ManagerLimits()
    """The limits on what others may take of the manager."""
    pools: tuple[CreatePool, ...] = ()
    """Made when this manager leads, unless they are there."""

    def __post_init__(self) -> None:
        if not self.host:
            raise ConfigurationError(f"the host is empty; {DEFAULT_HOST} is this machine's own")
        if not 0 <= self.port <= HIGHEST_PORT:
            raise ConfigurationError(
                f"there is no port {self.port}; they go from 1 to {HIGHEST_PORT}, "
                "and 0 takes a free one"
            )
        preset(self.preset)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigurationError("tls_cert and tls_key belong together; one is missing")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ConfigurationError("tls_client_ca asks for TLS: give tls_cert and tls_key too")
        if self.advertise is not None:
            check_url("the advertised URL", self.advertise)
        for url in self.others:
            check_url("one of the other managers", url)
        check_realm(self.realm)
        names = [pool.pool for pool in self.pools]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(f"the pool {name!r} is configured twice; leave one out")

    @property
    def timing(self) -> Timing:
        """The durations of the preset."""
        return PRESETS[self.preset]

    def journal_url(self, environment: Mapping[str, str] = os.environ) -> str:
        """The journal to open."""
        if self.journal is not None:
            return self.journal
        directory = self.state_dir or state_directory(environment)
        return f"sqlite:{directory.absolute() / JOURNAL_FILE}"


def state_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The default place of a manager's files: $TENURE_STATE, or the XDG directory.

    Raises ConfigurationError if there is no home directory for it.
    """
    if own := environment.get(STATE_VARIABLE):
        return Path(own)
    state = environment.get("XDG_STATE_HOME", "")
    if Path(state).is_absolute():  # the XDG specification: ignore relative paths
        return Path(state) / "tenure"
    try:
        return Path.home() / ".local" / "state" / "tenure"
    except RuntimeError:
        raise ConfigurationError(
            "no home directory is known to keep the journal in; name one with --state-dir, "
            f"{STATE_VARIABLE} or --journal sqlite:PATH"
        ) from None


def check_url(what: str, url: str) -> None:
    """Raise ConfigurationError unless `url` is that of a manager: http://HOST[:PORT]."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        good = good and (parts.port is None or parts.port > 0)
    except ValueError:
        good, parts = False, urlsplit("")
    if not good or parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise ConfigurationError(
            f"{what} is {shown_url(url)}, which is not the address of a manager; it looks like "
            f"http://127.0.0.1:{DEFAULT_PORT}"
        )
