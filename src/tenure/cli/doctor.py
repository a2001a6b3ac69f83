"""`tenure doctor`: checks of what goes wrong in practice, each with its way out.

A check is a function of the managers' answers; it yields what it found. To add one, write it and
add it to CHECKS.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from tenure.cli.asking import ASKING, AskingOptions, urls
from tenure.cli.output import counted, put, show
from tenure.cli.status import AskedManager, ask_all
from tenure.cli.waiting import waiting_for
from tenure.manager.answers import StatusAnswer


class Finding(msgspec.Struct, frozen=True):
    """The outcome of one check."""

    check: str
    result: Literal["ok", "wrong"]
    what: str
    way_out: str = ""


Check: TypeAlias = Callable[[Sequence[AskedManager]], Iterator[Finding]]


def doctor(*, how: AskingOptions = ASKING) -> int:
    """Check the managers: whether all answer, lead one journal, are of one realm, and which nodes
    they do not believe.

    Exits with 1 if anything is wrong.
    """
    managers = urls(how.manager)
    with waiting_for(managers):
        findings = examine(ask_all(managers))
    if how.json:
        put(msgspec.json.encode(findings).decode())
    else:
        rows = ((each.check, each.result, _words(each)) for each in findings)
        show(("check", "result", "what"), rows, empty="")
    return int(any(each.result == "wrong" for each in findings))


def examine(asked: Sequence[AskedManager]) -> list[Finding]:
    """What all checks find."""
    return [finding for check in CHECKS for finding in check(asked)]


def _words(finding: Finding) -> str:
    return f"{finding.what}. To fix it: {finding.way_out}" if finding.way_out else finding.what


def _answers(asked: Sequence[AskedManager]) -> Iterator[Finding]:
    silent = [each for each in asked if each.status is None]
    for each in silent:
        way_out = "start it, or take it out of the list of managers"
        yield Finding("managers answer", "wrong", f"{each.url}: {each.error}", way_out)
    if not silent:
        yield Finding("managers answer", "ok", f"{counted(len(asked), 'manager')}")


def _leaders(asked: Iterable[AskedManager]) -> list[StatusAnswer]:
    said = (each.status for each in asked)
    return [each for each in said if each and each.proven and not each.is_over]


def _leader(asked: Sequence[AskedManager]) -> Iterator[Finding]:
    leaders = _leaders(asked)
    if not leaders:
        way_out = "ask again in some seconds, and see that the managers reach their journal"
        yield Finding("one leads", "wrong", "no manager leads", way_out)
    elif len(leaders) == 1:
        yield Finding("one leads", "ok", leaders[0].url)


def _journals(asked: Sequence[AskedManager]) -> Iterator[Finding]:
    leaders = _leaders(asked)
    journals = {each.journal_id: each for each in leaders if each.journal_id}
    way_out = "decide which one goes on: tenure resolve --keep URL"
    if len(journals) > 1:
        who = "; ".join(f"{each.url} leads {journal}" for journal, each in journals.items())
        what = f"{len(journals)} journals have living leaders: {who}"
        yield Finding("one journal", "wrong", what, way_out)
    for each in leaders:
        for rival in each.rivals:
            where = f"the pool {rival.pool!r}" if rival.pool else "all pools"
            what = (
                f"{each.url} has stopped granting in {where}: {rival.manager} leads another "
                f"journal, {rival.journal}"
            )
            yield Finding("one journal", "wrong", what, way_out)
    if len(journals) == 1 and not any(each.rivals for each in leaders):
        yield Finding("one journal", "ok", next(iter(journals)))


def _realms(asked: Sequence[AskedManager]) -> Iterator[Finding]:
    realms = {each.realm for each in _leaders(asked) if each.realm}
    if len(realms) > 1:
        what = f"the managers are of several realms: {', '.join(sorted(realms))}"
        way_out = "name the managers of one realm only"
        yield Finding("one realm", "wrong", what, way_out)


def _stores(asked: Sequence[AskedManager]) -> Iterator[Finding]:
    for each in _leaders(asked):
        for cluster, troubles in each.store_troubles.items():
            for trouble in troubles:
                yield Finding("nodes of the store", "wrong", f"{cluster}: {trouble}")


CHECKS: tuple[Check, ...] = (_answers, _leader, _journals, _realms, _stores)
