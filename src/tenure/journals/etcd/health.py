"""The health of an etcd cluster's members, for people and for `tenure status`."""

import asyncio
from typing import Final

import msgspec

from tenure.errors import ConfigurationError, JournalError
from tenure.journals.etcd.gateway import Gateway
from tenure.journals.etcd.wire import (
    ALARM,
    STATUS,
    AlarmAnswer,
    AlarmRequest,
    MemberStatus,
    StatusRequest,
)
from tenure.protocol.log.journal_health import MemberHealth

_statuses: Final = msgspec.json.Decoder(MemberStatus, strict=False)
_alarms: Final = msgspec.json.Decoder(AlarmAnswer, strict=False)


class EtcdHealth(msgspec.Struct, frozen=True):
    """The members in the order of the URL, and the alarms of the cluster, such as NOSPACE."""

    members: tuple[MemberHealth, ...]
    alarms: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether every member answers, and no alarm is raised."""
        return not self.alarms and not any(member.error for member in self.members)


async def health(gateway: Gateway) -> EtcdHealth:
    """Ask every member. A member that does not answer is part of the result; nothing is raised."""
    members = await asyncio.gather(*(_member(gateway, each) for each in gateway.endpoints))
    return EtcdHealth(tuple(members), await _raised(gateway))


async def _member(gateway: Gateway, endpoint: str) -> MemberHealth:
    try:
        found = await gateway.ask(endpoint, STATUS, StatusRequest(), _statuses)
    except JournalError as error:
        return MemberHealth(endpoint=endpoint, error=str(error))
    return MemberHealth(
        endpoint=endpoint,
        version=found.version,
        is_leader=bool(found.leader) and found.leader == found.header.member_id,
        db_bytes=found.db_size,
        error="; ".join(found.errors) or ("" if found.leader else "it knows of no etcd leader"),
    )


async def _raised(gateway: Gateway) -> tuple[str, ...]:
    try:
        found = await gateway.call(ALARM, AlarmRequest("GET"), _alarms)
    except (JournalError, ConfigurationError):
        return ()  # no majority, or not our etcd: the members' own errors say so
    return tuple(sorted({each.alarm for each in found.alarms}))
