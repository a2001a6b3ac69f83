"""Giving a leader an operator's order, and the commands that do just that, made from the verbs."""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeAlias
from urllib.parse import quote

from cyclopts import Parameter

from tenure.base.names import shown, wrong_with_name
from tenure.cli.asking import AskingOptions, HttpReply, OwnerName, PoolName, ask, path
from tenure.cli.keys import TEXT, KeyForm, KeyText
from tenure.errors import ConfigurationError
from tenure.manager.operator_verbs import PATHS, Verb
from tenure.protocol.topology.limits import TOKEN_BYTES

DRY_RUN = "dry run, nothing was changed. Without --dry-run: "

ClusterName: TypeAlias = Annotated[str, Parameter(help="The cluster's name.")]
NodeName: TypeAlias = Annotated[
    str, Parameter(help="The node's name or id, as `tenure columns ring` lists it.")
]
TokenText: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="Where on the ring it stands: a key of an ordered table, or hexadecimal behind 0x. By "
        "default the token that halves the heaviest range."
    ),
]
AUTO_BYTES = 100_000_000_000
"""A day, of a whole cluster: a twentieth of a disk of two terabytes."""
MOST_DIGITS = 18
"""What a journal can keep: an exabyte is more than there is to move."""


@Parameter(name="*")
@dataclass(frozen=True)
class SteeringOptions(AskingOptions):
    """The options of every command that steers."""

    dry_run: Annotated[
        bool, Parameter(negative="", help="Change nothing; show what would be done.")
    ] = False


STEERING = SteeringOptions()
Said: TypeAlias = Mapping[str, Any]
"""The fields of a command, as they are written on the command line; `form` says how the key is."""
Tell: TypeAlias = Callable[[Verb, SteeringOptions, Said], object]
"""Gives an order, and says what came of it."""


def budget_of(said: str) -> int:
    """The number of bytes that may be moved in a day. Raises ConfigurationError."""
    if said in ("auto", "off"):
        return AUTO_BYTES if said == "auto" else 0
    if said.isascii() and said.isdecimal() and len(said) <= MOST_DIGITS:
        return int(said)
    raise ConfigurationError(
        f"balance is auto, off or a number of bytes a day, of {MOST_DIGITS} digits at most, not "
        f"{shown(said)}"
    )


def _hex(token: str | None) -> str | None:
    if token is None:
        return None
    try:
        raw = bytes.fromhex(token[2:]) if token.startswith("0x") else os.fsencode(token)
    except ValueError:
        raise ConfigurationError(f"the token {shown(token)} is not in hexadecimal") from None
    if not 1 <= len(raw) <= TOKEN_BYTES:
        raise ConfigurationError(f"a token has 1 to {TOKEN_BYTES} bytes, and not {len(raw)}")
    return raw.hex()


class Argument(NamedTuple):
    """How a command's field is written on the command line."""

    kind: Any
    read: Callable[[Any], object] = lambda said: said
    is_option: bool = False


ARGUMENTS: Mapping[str, Argument] = {
    "pool": Argument(PoolName),
    "owner": Argument(OwnerName),
    "key": Argument(KeyText),
    "policy": Argument(
        Annotated[
            str,
            Parameter(
                help="weighted, ring for a hashed pool, deal for an ordered one, or the name of a "
                "policy of yours with which the manager was started."
            ),
        ]
    ),
    "cluster": Argument(ClusterName),
    "node": Argument(NodeName),
    "by": Argument(Annotated[str, Parameter(help="The name of a waiting node.")]),
    "bytes_a_day": Argument(
        Annotated[str, Parameter(help="auto, which is 100 GB; a number; or off.")], budget_of
    ),
    "token": Argument(TokenText, _hex, is_option=True),
}


def command_of(verb: Verb, tell: Tell) -> Callable[..., None]:
    """The command that takes what the verb needs, and tells what came of the order."""
    names = (verb.place, *verb.given)
    positional = [name for name in names if not ARGUMENTS[name].is_option]

    def command(*values: object, how: SteeringOptions = STEERING, **options: object) -> None:
        tell(verb, how, {**dict(zip(positional, values, strict=True)), **options})

    parameters = _parameters(verb, names)
    command.__doc__ = verb.help
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _parameters(verb: Verb, names: tuple[str, ...]) -> list[inspect.Parameter]:
    alone, option = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
    said = [(name, ARGUMENTS[name]) for name in names]
    given = [inspect.Parameter(n, alone, annotation=it.kind) for n, it in said if not it.is_option]
    options: dict[str, tuple[Any, object]] = {
        name: (it.kind, None) for name, it in said if it.is_option
    }
    if "key" in verb.given:
        options["form"] = (KeyForm, TEXT)
    options["how"] = (SteeringOptions, STEERING)
    for name, (kind, default) in options.items():
        given.append(inspect.Parameter(name, option, annotation=kind, default=default))
    return given


def order(verb: Verb, how: SteeringOptions, said: Said) -> HttpReply:
    """Give the order; the leader's answer. What is no field of the command is for words only."""
    read = {name: each.read(said[name]) for name, each in ARGUMENTS.items() if name in said}
    fields = {**said, **read}
    body = {name: fields[name] for name in verb.given if fields.get(name) is not None}
    if "key" in body:
        ((way, written),) = said.get("form", TEXT).parameters(body.pop("key")).items()
        body[way] = int(written) if way == "int" else written
    (where,) = [where for where, each in PATHS.items() if each is verb]
    reach = path if verb.place == "pool" else ring_path
    target = reach(said[verb.place], where.rpartition("/")[2])
    return ask(how.manager, target, {**body, "dry_run": how.dry_run})


def ring_path(cluster: str, what: str) -> str:
    """The path of a part of a cluster. Raises ConfigurationError for what cannot be its name."""
    check_cluster_name(cluster)
    return f"/v1/clusters/{quote(cluster, safe='')}/{what}"


def check_cluster_name(cluster: str) -> None:
    """Raise ConfigurationError for what cannot be a cluster's name."""
    why = wrong_with_name(cluster)
    if why is not None:
        raise ConfigurationError(f"{shown(cluster)} cannot be a cluster's name: {why}")
