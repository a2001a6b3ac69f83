"""`tenure resolve`: the operator's decision between two journals that both have a living leader.

The leader of the journal that is over is told first, and falls silent. Only then does the other one
take the decision: it checks that by asking, and waits until whatever was promised has run out.
"""

import time
from typing import Annotated

from cyclopts import Parameter

from tenure.cli.asking import AskingOptions, post, urls
from tenure.cli.ordering import STEERING, SteeringOptions
from tenure.cli.output import put, say
from tenure.cli.status import AskedManager, ask_all
from tenure.cli.waiting import waiting_for
from tenure.errors import NoManager, PoolError, UsageError
from tenure.manager.answers import StatusAnswer
from tenure.manager.api import RESOLVE_PATH
from tenure.protocol.lease.answers import JournalDecided

PATIENCE_SECONDS = 10.0
"""How long the leader that goes on may take to notice that the other one is silent: it asks every
three seconds."""
PAUSE_SECONDS = 0.25


def resolve(
    *,
    keep: Annotated[str, Parameter(help="The URL of a manager of the journal that goes on.")],
    confirmed_stopped: Annotated[bool, Parameter(negative="")] = False,
    how: SteeringOptions = STEERING,
) -> None:
    """Decide which of two journals with living leaders goes on; the others are over.

    Parameters
    ----------
    confirmed_stopped
        Confirm that every manager of the other journals that does not answer has stopped. If one is
        still running, keys will have two owners.
    """
    managers = [*urls(how.manager), keep]
    with waiting_for(managers):
        kept, losers = _sides(ask_all(managers), keep)
    over = dict.fromkeys(each.journal_id for each in losers)
    over |= dict.fromkeys(each.journal for each in kept.rivals)
    if not over:
        say(f"no change: {kept.url} knows of no other journal's leader, and none answers here")
        return
    for each in losers:
        _tell(each.url, each.journal_id, how, confirmed_stopped=False)
    for journal in over:
        answer = _tell(kept.url, journal, how, confirmed_stopped=confirmed_stopped)
        if not how.json:
            say(_in_words(kept, answer))


def _sides(asked: list[AskedManager], keep: str) -> tuple[StatusAnswer, list[StatusAnswer]]:
    """The leader of the journal that goes on, and those of all others."""
    leaders = [each.status for each in asked if each.status and each.status.journal_id]
    named = {each.url.rstrip("/"): each.status for each in asked if each.status}
    chosen = named.get(keep.rstrip("/"))
    if chosen is None:
        why = next(each.error for each in asked if each.url.rstrip("/") == keep.rstrip("/"))
        raise NoManager(f"{keep} does not answer: {why}. Name a manager that runs with --keep")
    kept = next((each for each in leaders if each.url in (chosen.url, chosen.leader)), None)
    if kept is None:
        raise PoolError(f"{keep} does not lead, and knows of no leader; ask again in a second")
    if kept.is_over:
        raise UsageError(
            f"the journal {kept.journal_id} of {keep} was declared over; name a manager of the "
            "other one with --keep, or restore this one with `tenure restore`"
        )
    realm, ours = kept.realm, kept.journal_id
    others = [each for each in leaders if each.journal_id != ours and each.realm == realm]
    return kept, [each for each in others if not each.is_over]


def _tell(url: str, over: str, how: AskingOptions, *, confirmed_stopped: bool) -> JournalDecided:
    dry_run = isinstance(how, SteeringOptions) and how.dry_run
    body = {"over": over, "confirmed_stopped": confirmed_stopped, "dry_run": dry_run}
    deadline = time.monotonic() + (0.0 if dry_run else PATIENCE_SECONDS)
    while True:
        try:
            reply = post(url, RESOLVE_PATH, body)
        except PoolError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(PAUSE_SECONDS)
            continue
        if how.json:
            put(reply.text)
        return reply.read(JournalDecided)


def _in_words(kept: StatusAnswer, answer: JournalDecided) -> str:
    if not answer.changed:
        return f"no change: the journal {answer.over} is already over"
    is_dry = "dry run, nothing was changed. Without --dry-run: " if answer.dry_run else ""
    wait = f", after {answer.waits_seconds:.0f} s" if answer.waits_seconds else ""
    return f"{is_dry}the journal {answer.over} is over; {kept.url} grants ranges again{wait}"
