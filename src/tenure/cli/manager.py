"""`tenure manager`: run a manager in this process, until a signal ends it."""

import ast
from collections.abc import Iterator
from dataclasses import make_dataclass
from inspect import getsource
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, TypeAlias, get_type_hints

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
from tenure.manager.config import ManagerSettings
from tenure.manager.config_file import settings_from
from tenure.manager.service import ManagerService


def _help() -> dict[str, str]:
    """What is said below each setting, in the source: it is kept nowhere else."""
    (settings,) = ast.parse(getsource(ManagerSettings)).body
    assert isinstance(settings, ast.ClassDef)
    return {
        ast.unparse(field.target): ast.literal_eval(text.value)
        for field, text in pairwise(settings.body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def _fields() -> Iterator[tuple[str, object, object]]:
    """Each setting but the pools and the limits, as a field that is None if it is not said."""
    said = _help()
    for name, kind in get_type_hints(ManagerSettings).items():
        if name in ("limits", "pools"):
            continue
        # Only create_pools has a second word, since without a word it may be either.
        negative = "--no-create-pools" if name == "create_pools" else ""
        option = Parameter(help=said[name], negative=negative)
        yield name, Annotated[Optional[kind], option], None  # noqa: UP045  # a type, not a name


if TYPE_CHECKING:
    ManagerOptions: TypeAlias = Any
else:
    namespace = {"__module__": __name__}  # otherwise its module is that of the standard library
    made = make_dataclass("ManagerOptions", _fields(), namespace=namespace)
    ManagerOptions = Parameter(name="*")(made)
    """The options of `tenure manager`."""


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
