"""`tenure manager`: run a manager in this process, until a signal ends it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from tenure.cli.long_run import (
    LogFormat,
    LogLevel,
    log_to_standard_error,
    run_long,
    told_to_end,
    until_one_ends,
)
from tenure.cli.report import JsonReport, ManagerReport, report_for_people, watch
from tenure.cli.waiting import entered
from tenure.dashboard.pages import add_pages
from tenure.manager.config_file import settings_from
from tenure.manager.service import ManagerService


@Parameter(name="*")
@dataclass(frozen=True)
class ManagerOptions:
    """The options of `tenure manager`."""

    host: str | None = None
    "The address to listen on; 127.0.0.1 by default."
    port: int | None = None
    "The port to listen on; 7400 by default, 0 takes a free one."
    journal: str | None = None
    "memory, sqlite:PATH or etcd:URL,URL,...; by default journal.sqlite in the state directory."
    state_dir: Path | None = None
    "The directory of the journal; by default $TENURE_STATE, or ~/.local/state/tenure."
    preset: Literal["paper", "default", "test"] | None = None
    "How long leases last: paper (60 s), test (1.2 s), or default (12 s), which is the default."
    advertise: str | None = None
    "The URL by which others find this manager; without a port, the port that it listens on."
    create_pools: Annotated[bool | None, Parameter(negative="--no-create-pools")] = None
    "Whether a pool's first owner creates the pool; by default only on a loopback address."
    insecure: Annotated[bool | None, Parameter(negative="")] = None
    "Listen on an address that other machines reach, and trust everybody there."
    known_as: Annotated[tuple[str, ...] | None, Parameter(negative="")] = None
    "Another host name that clients use; needed where no tokens are asked for. Can be repeated."
    others: Annotated[tuple[str, ...] | None, Parameter(negative="")] = None
    "The URL of another manager of the journal: the leader asks it whether it leads. Repeatable."
    realm: str | None = None
    "The name of these managers, kept in the journal: clients that know it follow no others."
    tls_cert: Path | None = None
    "A file with the certificate to show, in PEM; replaced while it runs, it is read again."
    tls_key: Path | None = None
    "The file with the key of the certificate."
    tls_client_ca: Path | None = None
    "A file with authorities: whoever connects must have a certificate of one of them."
    tokens: Path | None = None
    "The file of tokens, made with `tenure token new`: whoever connects must show one."
    viewers_see_contents: Annotated[bool | None, Parameter(negative="")] = None
    "Show tokens of the role viewer what is kept of entities, and not only their keys."
    audit_log: Path | None = None
    "A file to which every change is written: who, what, from where."
    hide_hot_keys: Annotated[bool | None, Parameter(negative="")] = None
    "Tell tokens of the role viewer who has the hottest keys, and not which keys these are."
    first_start: Annotated[bool, Parameter(negative="")] = False
    "There was no earlier manager of these owners: with a new journal, grant after 2 s at most."


def manager(
    *,
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    options: ManagerOptions | None = None,
    log_level: LogLevel = "info",
    log_format: LogFormat = "text",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run a manager: the service that decides who owns what.

    Parameters
    ----------
    config
        A TOML file with settings and pools; options on the command line override it.
    log_level
        How much is logged, to standard error; info by default.
    log_format
        text, or json: one object per line, with the event, its place and its cause as fields.
    json
        Report what happens as JSON, one object per line; the first has the URL.
    """
    said = vars(options) if options else {}
    settings = settings_from(config, **said)
    log_to_standard_error(log_level, log_format)
    report = JsonReport() if json else report_for_people()
    run_long(lambda: _run(ManagerService(settings, add_pages=add_pages), report))


async def _run(service: ManagerService, report: ManagerReport) -> None:
    told = told_to_end()
    async with entered(service, f"opening {service.journal_url}", "ending"):
        report.listening(service)
        try:
            await until_one_ends(told.wait(), service.wait(), watch(service, report))
        finally:
            report.close()
        report.stopping(service)
    report.stopped()
