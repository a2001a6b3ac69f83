"""What `tenure up` runs on a host, as tenure.toml, the environment and the command line say it.

    data = "/var/lib/tenure"
    nodes = 3

    [gateway]
    listen = "127.0.0.1:8080"

    [[serve]]
    service = "documents"

    [[command]]
    run = "uvicorn chat:app --workers 4"

Of these three the last one that says something counts. The tables have the options of the commands
that they run, so there is one schema of each.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from cyclopts import Parameter

from tenure.base.names import shown, shown_url
from tenure.cli.gateway_beside import beside_command
from tenure.cli.gateway_options import GatewayOptions
from tenure.cli.host_source import HostSource
from tenure.cli.serve import ServeOptions
from tenure.errors import ConfigurationError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
TAKEN = re.compile(r"manager|gateway|node-\d+")
SERVICES = ("documents", "feeds", "pubsub", "queues")
_SECRET_URL = re.compile(r"(?!sqlite:|rocksdb:)[A-Za-z][A-Za-z0-9+.-]*:\S*[@?]")
"""URLs in which a password may stand: no paths, and no names of hosts."""
VARIABLES = {"data": "TENURE_DATA", "port": "TENURE_PORT", "nodes": "TENURE_NODES"}
TABLES = ("gateway", "serve", "command")


class HostSettings(msgspec.Struct, frozen=True):
    """The settings that stand in no table."""

    data: str = "tenure-data"
    port: Annotated[int, msgspec.Meta(ge=1, le=65_000)] = 7499
    nodes: Annotated[int, msgspec.Meta(ge=0, le=16)] = 3
    preset: Literal["paper", "default", "test"] = "default"
    manager: str = ""
    """The manager's own configuration file, for what is set there."""


class HostCommand(msgspec.Struct, frozen=True):
    """A command of the user's."""

    run: str | list[str]
    name: str = ""
    directory: str = ""
    environment: dict[str, str] = {}

    @property
    def words(self) -> list[str]:
        """The command and its arguments."""
        return shlex.split(self.run) if isinstance(self.run, str) else list(self.run)


class HostService(NamedTuple):
    """A process of a service."""

    service: str
    options: ServeOptions


class ShownSetting(NamedTuple):
    """A setting that is in force, and what says so."""

    setting: str
    value: object
    source: str


@dataclass(frozen=True)
class HostPlan:
    """All that is to run on a host."""

    settings: HostSettings
    gateway: GatewayOptions | None
    services: Mapping[str, HostService]
    commands: Mapping[str, HostCommand]
    shown: Sequence[ShownSetting]


@Parameter(name="*")
@dataclass(frozen=True)
class HostOptions:
    """The options of `tenure up` and `tenure config`."""

    file: Path | None = None
    "What to run; by default tenure.toml, where there is one. SIGHUP has it read again."
    data: Path | None = None
    "The directory for all data and logs: TENURE_DATA, or tenure-data."
    port: int | None = None
    "The manager's port; the nodes have the ports after it: TENURE_PORT, or 7499."
    nodes: int | None = None
    "How many nodes the store has; 0 for no store: TENURE_NODES, or 3."
    serve: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    "A service to run besides: documents, feeds, pubsub or queues; several times for several."


class PlanMaker:
    """Makes a plan. Raises ConfigurationError, which says where the mistake is."""

    def __init__(self, options: HostOptions) -> None:
        self._options = options
        self._source = HostSource(options.file)
        self._shown: list[ShownSetting] = []
        self._services: dict[str, HostService] = {}
        self._commands: dict[str, HostCommand] = {}

    def plan(self) -> HostPlan:
        """Read the settings, and then the tables in the order in which their processes start."""
        settings = self._settings()
        gateway = self._gateway()
        for number, table in enumerate(self._source.several("serve")):
            self._add_service(number, table, settings)
        for each in self._options.serve:
            if each not in SERVICES:
                raise ConfigurationError(f"--serve {shown(each)}: it is one of {SERVICES}")
            self._services.setdefault(each, _stored(HostService(each, ServeOptions()), settings))
            self._shown.append(ShownSetting("serve.service", each, "--serve"))
        for number, table in enumerate(self._source.several("command")):
            self._add_command(number, table)
        return HostPlan(settings, gateway, self._services, self._commands, self._shown)

    def _settings(self) -> HostSettings:
        top, source = self._source.top, self._source
        known = HostSettings.__struct_fields__
        said = {key: value for key, value in top.items() if key not in TABLES}
        settings = source.read(said, HostSettings, (*known, *TABLES), "")
        where = {key: source.at(key=key) for key in said}
        for key, variable in VARIABLES.items():
            flag = getattr(self._options, key)
            if flag is None and key == "data":
                flag = os.environ.get(variable) or None
            elif flag is None and (text := os.environ.get(variable)):
                flag = int(text) if text.isdecimal() else text
            if flag is None:
                continue
            is_flag = getattr(self._options, key) is not None
            where[key] = f"--{key}" if is_flag else variable
            said[key] = str(flag) if key == "data" else flag
            try:
                settings = msgspec.convert(said, HostSettings)
            except msgspec.ValidationError as error:
                raise ConfigurationError(f"{where[key]} is {shown(flag)}: {error}") from None
        for key in known:
            self._shown.append(ShownSetting(key, getattr(settings, key), where.get(key, "default")))
        return settings

    def _gateway(self) -> GatewayOptions | None:
        table = self._source.one("gateway")
        if table is None:
            return None
        known = [each.name for each in fields(GatewayOptions)]
        options = self._source.read(table, GatewayOptions, known, "gateway")
        self._show("gateway", 0, table)
        return beside_command(options)

    def _add_service(self, number: int, table: dict[str, Any], settings: HostSettings) -> None:
        source = self._source
        known = ["service", *(each.name for each in fields(ServeOptions) if each.name != "manager")]
        options = source.read(table, ServeOptions, known, "serve", number)
        service = table.get("service")
        if service not in SERVICES:
            raise ConfigurationError(
                f"{source.at('serve', number, 'service')}: service is one of "
                f"{', '.join(SERVICES)}, not {shown(service)}"
            )
        name = self._free(options.pool or service, "serve", number)
        self._services[name] = _stored(HostService(service, options), settings)
        self._show("serve", number, table)

    def _add_command(self, number: int, table: dict[str, Any]) -> None:
        known = HostCommand.__struct_fields__
        command = self._source.read(table, HostCommand, known, "command", number)
        where = self._source.at("command", number, "run")
        try:
            words = command.words
        except ValueError as error:
            raise ConfigurationError(f"{where}: run: {error}") from None
        if not words:
            raise ConfigurationError(f"{where}: run is empty: name a command")
        name = self._free(command.name or Path(words[0]).name, "command", number)
        self._commands[name] = command
        self._show("command", number, table)

    def _free(self, name: str, table: str, number: int) -> str:
        where = self._source.at(table, number, "name")
        if not NAME.fullmatch(name) or TAKEN.fullmatch(name):
            raise ConfigurationError(
                f"{where}: {shown(name)} cannot be the name of a process, whose log is called "
                'after it: give it another one, with name="..." or pool="..."'
            )
        if name in self._services or name in self._commands:
            raise ConfigurationError(
                f"{where}: there are two processes called {shown(name)}: give one another name"
            )
        return name

    def _show(self, name: str, number: int, table: Mapping[str, object]) -> None:
        for key, value in table.items():
            where = self._source.at(name, number, key)
            self._shown.append(ShownSetting(f"{name}.{key}", _without_password(value), where))


def _without_password(value: object) -> object:
    """A setting as it is shown: people send each other what `tenure config` prints."""
    if isinstance(value, dict):
        return {key: _without_password(each) for key, each in value.items()}
    may_have_one = isinstance(value, str) and _SECRET_URL.match(value) is not None
    return shown_url(value)[1:-1] if may_have_one else value


def _stored(service: HostService, settings: HostSettings) -> HostService:
    """A service keeps its keys in the store of this host, unless it names another one."""
    if service.options.store is not None or not settings.nodes:
        return service
    return service._replace(options=replace(service.options, store="columns:"))
