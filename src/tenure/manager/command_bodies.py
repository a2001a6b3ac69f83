"""The bodies that are commands, and their types, which are made from the commands'.

A body has the fields of its command, with their bounds, but for the name that is in the path; and
what JSON cannot say has another form: keys come in one of three, tokens in hexadecimal.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec.structs import FieldInfo, fields

from tenure.base.keys import Key, PoolKind, UserKey, key_function
from tenure.errors import MALFORMED, ConfigurationError, KeyTypeError, said_of
from tenure.manager.http_errors import HttpRefusal, cut
from tenure.manager.operator_verbs import BY_OPERATOR, Verb
from tenure.manager.pool_spec import WrittenKey, from_hex
from tenure.protocol.lease.steering_events import SteeringCommand
from tenure.protocol.topology.limits import TOKEN_BYTES
from tenure.protocol.topology.questions import RingCommand

KEY_FORMS = ("key", "hex", "int")
KEY_WAYS = "give one of key=TEXT, hex=BYTES in hexadecimal, or int=NUMBER in a hashed pool"
HexToken = Annotated[str, msgspec.Meta(max_length=4 * TOKEN_BYTES)]
"""A token in hexadecimal. `token_of` says more of one that is a little too long."""


class GivenKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key as a body has it, in one of three ways."""

    key: WrittenKey | None = None
    hex: WrittenKey | None = None
    number: int | None = msgspec.field(default=None, name="int")


@cache
def body_type(verb: Verb) -> type[msgspec.Struct]:
    """The type of the body with which that command is given."""
    wanted = verb.command
    not_said = verb.place, BY_OPERATOR
    given = {field.name: field for field in fields(wanted) if field.name not in not_said}
    bases = (GivenKey,) if given.pop("key", None) else None
    return msgspec.defstruct(
        f"{wanted.__name__}Body",
        [_field(each) for each in given.values()],
        bases=bases,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _field(of: FieldInfo) -> tuple[str, Any, Any]:
    kind = HexToken | None if of.name == "token" else of.type
    return of.name, kind, msgspec.field(default=of.default)


def read_command(
    verb: Verb, place: str, body: bytes, kind_of: Callable[[str], PoolKind]
) -> SteeringCommand | RingCommand:
    """The command for a pool or a cluster that a body means. Raises HttpRefusal where it is not
    such a body.
    """
    kind = body_type(verb)
    try:
        given = msgspec.json.decode(body, type=kind)
    except MALFORMED as error:
        names = ", ".join(f'"{name}"' for name in kind.__struct_encode_fields__)
        way_out = f"the body is an object of {names}"
        raise HttpRefusal(400, said_of(error, body), way_out) from error
    said: dict[str, Any] = {
        name: getattr(given, name, None)
        for name in verb.command.__struct_fields__
        if name != BY_OPERATOR
    }
    if isinstance(given, GivenKey):
        forms = dict(zip(KEY_FORMS, (given.key, given.hex, given.number), strict=True))
        written = {form: str(value) for form, value in forms.items() if value is not None}
        said["key"] = key_in(written, kind_of(place))
    if said.get("token") is not None:
        said["token"] = token_of(said["token"])
    return verb.command(**{**said, verb.place: place})


def key_in(given: Mapping[str, str], kind: PoolKind) -> Key:
    """The key that is given in one way. Raises HttpRefusal where it is missing, or no key."""
    try:
        return key_function(kind)(user_key(given))
    except (KeyTypeError, ConfigurationError, UnicodeEncodeError) as error:
        raise HttpRefusal(400, str(error), KEY_WAYS) from error


def user_key(given: Mapping[str, str]) -> UserKey:
    """The key as its user has it: text in `key`, bytes in `hex`, a 64-bit key in `int`. Raises
    HttpRefusal for what is none.
    """
    ways = [name for name in KEY_FORMS if name in given]
    check_once(len(ways))
    written = given[ways[0]]
    match ways[0]:
        case "key":
            return written
        case "hex":
            return from_hex(written)
    try:
        return int(written)
    except ValueError:
        raise HttpRefusal(
            400, f"int={cut(written)} is not a number", "give one from 0 to 2**64 - 1"
        ) from None


def check_once(times: int) -> None:
    """Raise HttpRefusal unless a key is given exactly once."""
    if times != 1:
        raise HttpRefusal(400, f"give a key once; here it is given {times} times", KEY_WAYS)


def token_of(written: str) -> bytes:
    """A token in hexadecimal. Raises HttpRefusal for any other text."""
    way_out = f"give 1 to {TOKEN_BYTES} bytes in hexadecimal, two digits a byte"
    try:
        token = bytes.fromhex(written)
    except ValueError:
        why = f"the token {written[:40]!r} is not in hexadecimal"
        raise HttpRefusal(400, why, way_out) from None
    if not 1 <= len(token) <= TOKEN_BYTES:
        why = f"a token has 1 to {TOKEN_BYTES} bytes, and not {len(token)}"
        raise HttpRefusal(400, why, way_out)
    return token
