"""Checks what users pass to an Owner or a Lookup when they make it, not when it is first used."""

import re
from collections.abc import Mapping
from math import isfinite
from random import Random
from typing import Protocol
from urllib.parse import urlsplit

from tenure.base.hosts import host_of, is_every_address, is_loopback
from tenure.base.keys import PoolKind, UserKey
from tenure.base.names import NAME_CHARACTERS, shown, shown_url, wrong_with_name, wrong_with_text
from tenure.errors import ConfigurationError
from tenure.protocol.balance.load import HIGHEST_RATE
from tenure.protocol.lease.limits import (
    CAPACITY_LABEL,
    LABEL_CHARACTERS,
    LABELS_PER_OWNER,
    LEVELS_PER_REPORT,
    METRIC_CHARACTERS,
    REQUESTS,
)

ADDRESS_CHARACTERS = 2000
LOOPBACK = "127.0.0.1"
LAST_PORT = 65535
RANDOM_DIGITS = 8
"""The length of a drawn name, in hexadecimal: among a thousand processes at one address, two draw
the same name once in ten thousand deployments, and the second is told that the name is held.
"""

METRIC = re.compile(rf"[a-z][a-z0-9_-]{{0,{METRIC_CHARACTERS - 1}}}")


class KeyFinder(Protocol):
    """What a `Lookup` is to an `Owner` in the same process: it says who has the other keys."""

    @property
    def pool(self) -> str: ...
    def find(self, key: UserKey) -> str | None:
        """The address of the owner of `key`, as far as is known."""
        ...


def checked_lookup(lookup: KeyFinder | None, pool: str) -> KeyFinder | None:
    """Return the Lookup that says where keys are that an owner of `pool` does not hold."""
    if lookup is None:
        return None
    is_one = callable(getattr(lookup, "find", None)) and hasattr(lookup, "pool")
    if isinstance(lookup, type) or not is_one:
        raise ConfigurationError(
            f"lookup is a Lookup of the same pool, not {shown(lookup)}; write it like "
            f"lookup=Lookup(pool={pool!r})"
        )
    if lookup.pool != pool:
        raise ConfigurationError(
            f"lookup is of the pool {lookup.pool!r}, and this owner is of the pool {pool!r}: the "
            "keys of one pool say nothing about another's. Pass a Lookup of this pool"
        )
    return lookup


def checked_name(what: str, name: object) -> str:
    """Return `name` if it can be the name of a pool or an owner."""
    why = wrong_with_name(name)
    if why is not None:
        raise ConfigurationError(f"{what} cannot be {shown(name)}: {why}")
    assert isinstance(name, str)
    return name


def checked_address(address: object) -> str:
    """Return the address where an owner serves: any text that the clients of the pool
    understand.
    """
    example = 'address="http://10.0.0.7:8000"'
    if address is None or (isinstance(address, str) and not address.strip()):
        raise ConfigurationError(
            "an owner needs an address: it is what Lookup.find returns to whoever looks for its "
            f"keys. Pass the one under which this process is reached, for example {example}"
        )
    if not isinstance(address, str):
        raise ConfigurationError(
            f"address is a str, not {shown(address)} ({type(address).__name__}); write it like "
            f"{example}"
        )
    if len(address) > ADDRESS_CHARACTERS:
        raise ConfigurationError(
            f"address has at most {ADDRESS_CHARACTERS} characters, not {len(address)}"
        )
    if why := wrong_with_text(address):
        raise ConfigurationError(f"address cannot be {shown(address)}: {why}")
    host = host_of(address if "://" in address else f"//{address}", "//")
    if is_every_address(host) or is_every_address(address):
        raise ConfigurationError(
            f"address cannot be {address!r}: {host or address} stands for every address of this "
            f"machine, and clients need one that they can reach; pass it, for example {example}"
        )
    return address


def checked_kind(kind: object) -> PoolKind:
    """Return the kind that the pool is expected to have."""
    if kind == "hashed":
        return "hashed"
    if kind == "ordered":
        return "ordered"
    raise ConfigurationError(f'kind is "hashed" or "ordered", not {shown(kind)}')


def checked_seconds(what: str, value: object) -> float:
    """A duration."""
    seconds = _as_float(value)
    if seconds is None or seconds <= 0:
        raise ConfigurationError(f"{what} is a number of seconds above 0, not {shown(value)}")
    return seconds


def _as_float(value: object) -> float | None:
    """Return `value` as a float if time and load can be counted in it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # of an int
        return None
    return number if isfinite(number) else None


def checked_share(what: str, value: object) -> float:
    """A part of the whole."""
    share = _as_float(value)
    if share is None or not 0 <= share <= 1:
        raise ConfigurationError(f"{what} is a share from 0 to 1, not {shown(value)}")
    return share


def checked_drain(value: object, what: str = "drain") -> float:
    """Return a duration that may be 0, such as how long an owner hands over before it leaves."""
    seconds = _as_float(value)
    if seconds is None or seconds < 0:
        raise ConfigurationError(f"{what} is a number of seconds, 0 or more, not {shown(value)}")
    return seconds


def checked_listening(
    given: object,
    address: str,
    told: str | None = None,
    *,
    insecure: bool = False,
    of: str = "hand_off_",
) -> str:
    """Return where to listen for state or for caches: the given place, or the host of the owner's
    address, or loopback.

    If the owner listens on every address of the machine, `told` must be one that others can reach.
    If other machines can reach it without a certificate, `insecure` must say that everybody there
    is trusted, as for a manager.
    """
    if given is None:
        host = host_of(address) or LOOPBACK
        listen = f"[{host}]:0" if ":" in host else f"{host}:0"
    elif isinstance(given, str):
        listen = given
    else:
        raise _no_place(given, of)
    host, _, port = listen.rpartition(":")
    if not (host and port.isdecimal() and int(port) <= LAST_PORT):
        raise _no_place(given, of)
    if told is None and is_every_address(host.strip("[]")):
        raise ConfigurationError(
            f"{of}listen={given!r} stands for every address of this machine, and "
            f"others need one that they can reach: pass it with {of}address, "
            f'for example {of}address="http://10.0.0.7:8400"'
        )
    if not insecure and not is_loopback(host.strip("[]")):
        what = of.rstrip("_") or "a volume"
        raise ConfigurationError(
            f"{what} listens on {host}, which other machines reach, and this process has no "
            "certificate: state passes in the clear, and whoever is on the way reads it and can "
            f'change it. Listen on loopback with {of}listen="127.0.0.1:0", give TENURE_CERT and '
            f"TENURE_KEY, or say with {of}insecure=True that everybody on that network is trusted"
        )
    return listen


def _no_place(given: object, of: str) -> ConfigurationError:
    return ConfigurationError(
        f'{of}listen is "HOST:PORT", port 0 for one that is free, not {shown(given)}; '
        f'write it like {of}listen="10.0.0.7:0"'
    )


def checked_told_address(given: object, of: str = "hand_off_") -> str | None:
    """Return the URL under which others find the owner."""
    if given is None:
        return None
    is_url = isinstance(given, str) and urlsplit(given).scheme in ("http", "https")
    if not is_url or len(str(given)) > ADDRESS_CHARACTERS:
        raise ConfigurationError(
            f"{of}address is the URL under which others reach this owner, like "
            f'"http://10.0.0.7:8400", not {shown_url(given)}; leave it out where that is where it '
            "listens"
        )
    return str(given).rstrip("/")


def checked_capacity(capacity: object) -> dict[str, float]:
    """Return how much of the pool an owner can take, by metric: compared with other owners if that
    is requests alone, and otherwise in the metrics' units.
    """
    if not isinstance(capacity, Mapping):
        number = _as_float(capacity)
        if number is None or number <= 0:
            raise ConfigurationError(
                f"capacity is a number above 0, not {shown(capacity)}: it compares owners, 1 being "
                "usual"
            )
        return {REQUESTS: number}
    if REQUESTS not in capacity:
        raise ConfigurationError(
            f"a capacity by metric says that for requests, too: "
            f'capacity={{"{REQUESTS}": 2_000, "memory": 8e9}}, not {shown(capacity)}'
        )
    if len(capacity) > 1 + LEVELS_PER_REPORT:
        raise ConfigurationError(
            f"capacity has {len(capacity)} metrics; the limit is {1 + LEVELS_PER_REPORT}, requests "
            "included"
        )
    return {_checked_metric(each): _in_units(each, value) for each, value in capacity.items()}


def _checked_metric(metric: object) -> str:
    if isinstance(metric, str) and METRIC.fullmatch(metric):
        return metric
    raise ConfigurationError(
        f"a metric cannot be called {shown(metric)}: its name has 1 to {METRIC_CHARACTERS} "
        "lower-case letters, digits, _ or -, a letter first"
    )


def _in_units(metric: str, value: object) -> float:
    number = _as_float(value)
    if number is None or not 0 < number <= HIGHEST_RATE:
        raise ConfigurationError(
            f"the capacity for {metric} is a number above 0, up to {HIGHEST_RATE:g}, not "
            f"{shown(value)}"
        )
    return number


def with_capacities(labels: dict[str, str], capacities: Mapping[str, float]) -> dict[str, str]:
    """The labels of an owner, with its capacities for other metrics than requests."""
    told = {f"{CAPACITY_LABEL}{it}": repr(of) for it, of in capacities.items() if it != REQUESTS}
    return checked_labels({**labels, **told})


def checked_labels(labels: Mapping[str, str] | None) -> dict[str, str]:
    """Return the labels that describe an owner."""
    if labels is not None and not isinstance(labels, Mapping):
        raise ConfigurationError(
            f"labels are a dict from str to str, not {shown(labels)}; write them like "
            'labels={"zone": "b"}'
        )
    checked = dict(labels or {})
    if len(checked) > LABELS_PER_OWNER:
        raise ConfigurationError(f"{len(checked)} labels; at most {LABELS_PER_OWNER} are allowed")
    for label, value in checked.items():
        if not isinstance(label, str) or not isinstance(value, str):
            raise ConfigurationError(f"labels map str to str, not {shown(label)}: {value!r}")
        if max(len(label), len(value)) > LABEL_CHARACTERS:
            raise ConfigurationError(
                f"label {label[:40]!r} or its value is longer than {LABEL_CHARACTERS} characters"
            )
        if why := wrong_with_text(label) or wrong_with_text(value):
            raise ConfigurationError(f"a label cannot be {shown(label)}: {shown(value)}: {why}")
    return checked


def drawn_name(address: str, random: Random) -> str:
    """Draw a name for this one process, so that a restarted process joins at once under a new name
    (rule P8).
    """
    place = re.sub(r"^\w+://", "", address)
    readable = re.sub(r"[^\w.:-]+", "-", place).strip("-")[: NAME_CHARACTERS - RANDOM_DIGITS - 1]
    end = f"{random.getrandbits(4 * RANDOM_DIGITS):0{RANDOM_DIGITS}x}"
    return f"{readable}-{end}" if readable else end


def checked_flag(what: str, value: object) -> bool:
    """Return `value` if it is a bool. Any text, such as one from the environment, would count as
    true.
    """
    if not isinstance(value, bool):
        raise ConfigurationError(f"{what} is True or False, not {shown(value)}")
    return value


def checked_count(what: str, value: object) -> int:
    """A limit."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigurationError(f"{what} is a number from 1 on, not {shown(value)}")
    return value
