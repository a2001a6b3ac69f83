"""The events about managers that every client's machine gets, and its actions toward them."""

from typing import Generic, TypeVar

import msgspec

from tenure.protocol.lease.messages import ToLookup, ToManager, ToOwner

M = TypeVar("M", ToOwner, ToLookup)


class ManagerSaid(msgspec.Struct, Generic[M], frozen=True):
    """A manager's message came."""

    manager: str
    message: M


class ManagerLost(msgspec.Struct, frozen=True):
    """The connection to a manager is gone."""

    manager: str


class ManagersNamed(msgspec.Struct, frozen=True):
    """The managers to use from here on."""

    managers: tuple[str, ...]


class TellManager(msgspec.Struct, frozen=True):
    """Send a message to a manager."""

    manager: str
    message: ToManager
