"""Why a key is where it is, and what the policy would do now."""

from collections.abc import Iterator

from tenure.cli.asking import ASKING, AskingOptions, PoolName, ask, path
from tenure.cli.keys import TEXT, KeyForm, KeyText
from tenure.cli.output import put, say, show
from tenure.cli.reading import shown
from tenure.protocol.lease.answers import KeyExplained, PastMove, PlanRead, SteeringSummary

NOBODY = "-"


def why(
    pool: PoolName,
    key: KeyText,
    /,
    *,
    form: KeyForm = TEXT,
    how: AskingOptions = ASKING,
) -> None:
    """Say which owner has a key, since when, where it was before, and why it moved."""
    reply = ask(how.manager, path(pool, "why", **form.parameters(key)))
    if how.json:
        put(reply.text)
        return
    answer = reply.read(KeyExplained)
    for line in _about(answer):
        say(line)
    if answer.moves:
        columns = ("ago", "what", "from", "to", "number", "since", "why")
        show(columns, map(_row, answer.moves), empty="")
    else:
        say("it has not moved in that time")


def _about(answer: KeyExplained) -> Iterator[str]:
    owner = f"{answer.owner.name} at {answer.owner.address}" if answer.owner else "nobody"
    place = f"{shown(answer.start, '(first)')} to {shown(answer.end, '(last)')}"
    yield f"{owner}: key {shown(answer.key, '(first)')}, in the range from {place}"
    if answer.owner:
        number = f"lease number {answer.number}, unbroken since {answer.since}"
        came = "it moved there"
    else:
        number, came = f"free under number {answer.number}", "it became so"
    if answer.moves:
        yield f"{number}; {came} {_ago(answer.moves[0].seconds_ago)} ago"
    else:
        yield f"{number}; not moved since {_ago(answer.remembered_seconds)} ago"
    if answer.owner and answer.joined_seconds_ago is not None:
        yield f"{answer.owner.name} joined {_ago(answer.joined_seconds_ago)} ago"
    if answer.pinned_to:
        yield f"pinned to {answer.pinned_to}"
    if answer.planned != (answer.owner.name if answer.owner else None):
        yield f"planned for {answer.planned or 'nobody'}"
    for name in answer.stuck:
        yield f"{name} had it and is stuck: its application does not let go of it"
    if answer.trouble:
        yield f"the pool is not balanced: {answer.trouble}"
    yield f"the leader remembers moves of the last {_ago(answer.remembered_seconds)}"


def _row(move: PastMove) -> tuple[object, ...]:
    return (
        _ago(move.seconds_ago),
        move.how,
        move.giver or NOBODY,
        move.taker or NOBODY,
        move.number,
        move.since,
        move.reason,
    )


def _ago(seconds: float) -> str:
    if seconds < 120:  # noqa: PLR2004 - two minutes
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"  # noqa: PLR2004 - two hours


def plan(pool: PoolName, /, *, how: AskingOptions = ASKING) -> None:
    """Show the moves that the policy would make now, and what holds back the others."""
    reply = ask(how.manager, path(pool, "plan"))
    if how.json:
        put(reply.text)
        return
    answer = reply.read(PlanRead)
    say(f"{answer.pool} is planned by {answer.policy}")
    for line in _steering(answer.steering):
        say(line)
    rows = [
        (
            flow.giver or NOBODY,
            flow.taker or NOBODY,
            flow.ranges,
            f"{flow.share:.1%}",
            "yes" if flow.with_state else "no",
            flow.reason,
        )
        for flow in answer.flows
    ]
    if rows:
        show(("from", "to", "ranges", "share", "with state", "why"), rows, empty="")
    else:
        why = "" if answer.held_back else ": every range is where it should be"
        say(f"no range is to move{why}")
    for each in answer.held_back:
        say(f"held back: {each.what}: {each.why}")


def _steering(steering: SteeringSummary) -> Iterator[str]:
    for what in ("cordoned", "drained", "evicted"):
        if names := getattr(steering, what):
            yield f"{what}: {', '.join(map(str, names))}"
    for pin in steering.pins:
        yield f"pinned: {shown(pin.key, '(first)')} to {pin.owner}"
    if steering.frozen:
        yield "frozen: only ranges without an owner are granted"
