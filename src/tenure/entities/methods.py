"""The methods of an entity that can be called, with the types of what they take and return.

Arguments and answers are encoded even if the entity is in this very process, so that a call means
the same wherever its key lives: it passes copies, of the declared types.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar, Union, get_type_hints

import msgspec

from tenure.base.names import shown
from tenure.errors import ConfigurationError, KeyTypeError, UsageError, ValueTypeError
from tenure.protocol.entity.key_line import ARGUMENT_BYTES

F = TypeVar("F", bound=Callable[..., Any])
Taken: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Arguments, by position and by name."""
_encode = msgspec.msgpack.Encoder().encode

PLAIN = (str, int, float, bool, type(None))
"""Types whose values nobody can change, and which arrive as they were sent."""
MOST_PLAIN = 8
PLAIN_CHARACTERS = ARGUMENT_BYTES // (2 * MOST_PLAIN)
"""The arguments of one call that are not even encoded if its entity is here, and the characters of
each: together they stay below the limit.
"""
PLAIN_INT = 1 << 63


def reading(method: F) -> F:
    """A method that only reads: it runs beside others, on the state that was last committed, of
    which it has a copy. What it changes there is dropped.
    """
    if not inspect.isfunction(method):
        raise ConfigurationError(f"@reading is for a method of an entity, not {shown(method)}")
    method.__tenure_reading__ = True  # type: ignore[attr-defined]
    return method


class CallHere:
    """The arguments of a call from this very process, which need no bytes if it is carried out
    here.
    """

    __slots__ = ("_encoded", "_given", "data", "is_first", "method", "taken", "value")

    def __init__(
        self, method: "EntityMethod", arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        self.method = method
        self._given = arguments, named
        self._encoded: bytes | None = None
        self.is_first = False
        """Whether nobody can have made the call before."""
        self.taken = method.plain(arguments, named)
        """The arguments for one attempt; the method may change them."""
        if self.taken is None:
            self._encoded, self.taken = method.taken(arguments, named)
        self.data: bytes | None = None
        """The answer of the last attempt, encoded and decoded."""
        self.value: Any = None

    def encoded(self) -> bytes:
        """The arguments, for another process."""
        if self._encoded is None:
            self._encoded = self.method.encode(*self._given)
        return self._encoded


class EntityMethod:
    """One method that can be called."""

    def __init__(self, owner: str, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.label = f"{owner}.{name}"
        self.function = function
        self.is_reading: bool = getattr(function, "__tenure_reading__", False)
        self.is_coroutine = inspect.iscoroutinefunction(function)
        parameters = list(inspect.signature(function).parameters.values())[1:]
        try:
            hints = get_type_hints(function)
        except NameError as error:
            raise ConfigurationError(
                f"{self.label} has an annotation that cannot be found: {error}. Annotate with what "
                "the module has"
            ) from None
        if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
            raise ConfigurationError(
                f"{self.label} must not take *args or **kwargs; declare each parameter"
            )
        self._names = tuple(each.name for each in parameters)
        self._few = sum(each.kind is not each.KEYWORD_ONLY for each in parameters)
        self._only = tuple(each.name for each in parameters if each.kind is each.POSITIONAL_ONLY)
        self._plain = [hints.get(each.name) for each in parameters]
        self._may_be_plain = (
            not self._only
            and self._few == len(parameters) <= MOST_PLAIN  # none of them by name only
            and all(each in PLAIN for each in self._plain)
        )
        self._answer: Any = hints.get("return", Any)
        fields: list[Any] = []
        for each in parameters:
            taken = hints.get(each.name, Any)
            if each.default is each.empty:
                fields.append((each.name, taken))
            else:
                fields.append((each.name, Union[taken, msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007
        try:
            taken = msgspec.defstruct(
                f"{name}_arguments", fields, forbid_unknown_fields=True, kw_only=True
            )
            self._decode = msgspec.msgpack.Decoder(taken).decode
            self._decode_answer = msgspec.msgpack.Decoder(self._answer).decode
        except TypeError as error:
            raise ConfigurationError(
                f"{self.label} takes or returns what cannot be sent to another process: {error}"
            ) from None

    def plain(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Taken | None:
        """These arguments by their names, as they arrive from another process, if they are all, in
        order, and of plain types; otherwise None.
        """
        if named or not self._may_be_plain or len(arguments) != len(self._plain):
            return None
        for value, kind in zip(arguments, self._plain):  # noqa: B905  # equally long
            if type(value) is not kind:
                return None
            if kind is str:
                if len(value) > PLAIN_CHARACTERS or not value.isascii():
                    return None
            elif kind is int and not -PLAIN_INT <= value < PLAIN_INT:
                return None
        return (), dict(zip(self._names, arguments))  # noqa: B905

    def encode(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> bytes:
        """Encode the arguments of a call. Raises UsageError if the method does not take them."""
        return self.taken(arguments, named)[0]

    def taken(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[bytes, Taken]:
        """Encode the arguments, and return also what they are when they arrive."""
        if len(arguments) > self._few:
            raise UsageError(
                f"{self.label} takes {self._few} arguments by position, not {len(arguments)}"
            )
        given = dict(zip(self._names, arguments, strict=False))
        if named:
            twice = given.keys() & named.keys() or named.keys() & set(self._only)
            if twice:
                raise UsageError(f"{self.label} was given {', '.join(sorted(twice))} wrongly")
            given.update(named)
        try:
            data = _encode(given)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self._not_taken(error) from None
        taken = self.decode(data)
        self._check_size(data, "arguments")
        return data, taken

    def _not_taken(self, error: Exception) -> ValueTypeError:
        return ValueTypeError(f"{self.label} cannot be called with that: {error}")

    def decode(self, data: bytes) -> Taken:
        """The arguments of a call. Raises ValueTypeError if the method does not take them: the
        caller may have another version of the class.
        """
        try:
            found = self._decode(data)
        except (ValueError, RecursionError) as error:
            raise self._not_taken(error) from None
        given = {}
        for name in self._names:
            value = getattr(found, name)
            if value is not msgspec.UNSET:
                given[name] = value
        if not self._only:
            return (), given
        return tuple(given.pop(name) for name in self._only if name in given), given

    def answered(self, value: Any) -> tuple[bytes, Any]:  # noqa: ANN401  # whatever it returns
        """An answer, as bytes and as it arrives. Raises ValueTypeError if it is not of the declared
        type.
        """
        try:
            data = NOTHING if value is None else _encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueTypeError(f"the answer of {self.label}: {error}") from None
        if len(data) > ARGUMENT_BYTES:
            self._check_size(data, "an answer")
        if type(value) is self._answer and self._answer in PLAIN:
            return data, value
        try:
            return data, self._decode_answer(data)
        except (ValueError, RecursionError) as error:
            raise ValueTypeError(
                f"{self.label} returned what it does not declare: {error}"
            ) from None

    def arrived(self, data: bytes) -> Any:  # noqa: ANN401  # whatever it returns
        """An answer that another process has sent. Raises ValueTypeError if it is of another
        version of the class.
        """
        try:
            return self._decode_answer(data)
        except (ValueError, RecursionError) as error:
            raise ValueTypeError(
                f"{self.label} was carried out by an owner with another version of "
                f"its class, which returned what this one does not declare: {error}"
            ) from None

    def _check_size(self, data: bytes, what: str) -> None:
        if len(data) > ARGUMENT_BYTES:
            raise ValueTypeError(
                f"{self.label} with {what} of {len(data)} bytes; at most {ARGUMENT_BYTES} "
                "are allowed: keep large values elsewhere, by reference"
            )


NOTHING = _encode(None)


def methods_of(kind: type, base: type) -> dict[str, EntityMethod]:
    """The methods of a class that can be called: the public ones, except those of `base` and
    `on_...`.
    """
    found = {}
    for name in dir(kind):
        function = inspect.getattr_static(kind, name)
        if name.startswith(("_", "on_")) or hasattr(base, name) or not inspect.isfunction(function):
            continue
        found[name] = EntityMethod(kind.__name__, name, function)
    return found


def checked_key(key: str | int) -> str | int:
    """The key, as a plain str or int: others cannot be sent to another process."""
    if type(key) is str or type(key) is int:
        return key
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return int.__int__(key)
    raise KeyTypeError(
        f"the key of an entity is a str or an int, not {shown(key)} ({type(key).__name__})"
    )
