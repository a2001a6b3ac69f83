"""What is known of a subclass of Entity before an instance exists: its mistakes are found here,
when `Entities` is made, and not by the first call.
"""

import inspect
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from tenure.base.names import shown, wrong_with_text
from tenure.client.hand_off.state_fields import fields_of
from tenure.entities.entity import Entity, Socket
from tenure.entities.methods import EntityMethod, methods_of
from tenure.entities.state_codec import StateCodec
from tenure.entities.state_versions import Upgrade, checked_version
from tenure.errors import ConfigurationError, UsageError

HANDLERS = ("on_activate", "on_connect", "on_message", "on_disconnect", "on_alarm")
_SOCKETS = ("on_connect", "on_message", "on_disconnect")


class EntityKind:
    """One subclass of Entity."""

    def __init__(self, kind: type[Entity[Any]]) -> None:
        if not (isinstance(kind, type) and issubclass(kind, Entity)) or kind is Entity:
            raise ConfigurationError(
                f"Entities is made of a subclass of Entity, not {shown(kind)}: write "
                "`class Room(Entity[Lines])`, and pass Room"
            )
        self.type = kind
        self.name = _checked_name(kind)
        for each in ("__init__", "__new__"):
            if getattr(kind, each) is not getattr(Entity, each):
                raise ConfigurationError(
                    f"{self.name} has an {each}, which is never called: set up its attributes in "
                    "on_activate"
                )
        _check_slots(kind)
        self.methods: dict[str, EntityMethod] = methods_of(kind, Entity)
        self.handles: dict[str, bool] = {
            each: getattr(kind, each) is not getattr(Entity, each) for each in HANDLERS
        }
        for each, is_there in self.handles.items():
            if is_there:
                _check_handler(kind, each)
        self.version = checked_version(self.name, kind.__tenure_version__)
        """The version of its state."""
        self.codec = StateCodec(
            self.name, _state_type(kind), _attachment_type(kind), self.version, _upgrades_of(kind)
        )

    def method(self, name: str) -> EntityMethod:
        """The method of this name. Raises UsageError if the class has no such method."""
        found = self.methods.get(name)
        if found is None:
            raise self.no_method(name)
        return found

    def no_method(self, name: str) -> UsageError:
        """The error of a call to a method that the class does not have."""
        known = ", ".join(self.methods) or "none"
        return UsageError(f"{self.name} has no method {name!r} to be called; it has {known}")


def _checked_name(kind: type[Entity[Any]]) -> str:
    name = kind.__tenure_name__
    if not isinstance(name, str) or not name or wrong_with_text(name):
        raise ConfigurationError(
            f"the name of {kind.__name__} is a text, as in `class {kind.__name__}(..., "
            f'name="Room")`, not {shown(name)}'
        )
    return name


def _upgrades_of(kind: type[Entity[Any]]) -> dict[str, Upgrade]:
    found = {name: inspect.getattr_static(kind, name) for name in dir(kind)}
    return {name: each for name, each in found.items() if isinstance(each, Upgrade)}


def _check_slots(kind: type[Entity[Any]]) -> None:
    """Raise if it has attributes outside of `__dict__`, which alone lasts from call to call."""
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__")
        if slots and each not in Entity.__mro__:
            raise ConfigurationError(
                f"{kind.__name__} has __slots__, {shown(slots)}, whose values would be gone after "
                "each call: leave out __slots__"
            )


def _check_handler(kind: type[Entity[Any]], name: str) -> None:
    """Raise if a handler cannot be awaited, or called with what handlers get."""
    ours, found = inspect.signature(getattr(Entity, name)), getattr(kind, name)
    if not inspect.iscoroutinefunction(inspect.unwrap(found)):
        raise ConfigurationError(
            f"{kind.__name__}.{name} is awaited, in threads too: write `async def {name}{ours}`"
        )
    try:
        inspect.signature(found).bind(*ours.parameters)
    except TypeError as error:
        raise ConfigurationError(
            f"{kind.__name__}.{name} cannot be called: {error}. Write `async def {name}{ours}`"
        ) from None


def _state_type(kind: type[Entity[Any]]) -> Any:  # noqa: ANN401  # a class
    found = _given_to_entity(kind, ())
    if found is None or isinstance(found, TypeVar):
        raise ConfigurationError(
            f"{kind.__name__} does not say what its state is: write "
            f"`class {kind.__name__}(Entity[SomeStruct])`"
        )
    if isinstance(found, type) and (issubclass(found, msgspec.Struct) or fields_of(found)):
        return found
    raise ConfigurationError(
        f"the state of {kind.__name__} is {found!r}, and not a msgspec Struct, a dataclass, an "
        f"attrs class or a Pydantic model: write `class {kind.__name__}(Entity[SomeStruct])`"
    )


def _given_to_entity(kind: type, given: tuple[Any, ...]) -> Any:  # noqa: ANN401  # a class
    """What stands for the state in `Entity[...]`, where `given` are the parameters of `kind`."""
    known = dict(zip(getattr(kind, "__parameters__", ()), given, strict=False))
    for base in kind.__dict__.get("__orig_bases__", kind.__bases__):
        origin = get_origin(base) or base
        arguments = tuple(known.get(each, each) for each in get_args(base))
        if origin is Entity and arguments:
            return arguments[0]
        if isinstance(origin, type) and issubclass(origin, Entity) and origin is not Entity:
            return _given_to_entity(origin, arguments)
    return None


def _attachment_type(kind: type[Entity[Any]]) -> Any:  # noqa: ANN401  # of any form
    for name in _SOCKETS:
        if getattr(kind, name) is not getattr(Entity, name):
            for each in get_type_hints(getattr(kind, name)).values():
                if get_origin(each) is Socket and not hasattr(get_args(each)[0], "__constraints__"):
                    return get_args(each)[0]
    return Any
