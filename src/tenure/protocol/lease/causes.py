"""Causes: one id follows a story through every log line of every process.

A story begins when something happens that no machine decided: a connection breaks, a hold expires,
an owner joins, leaves or lets its leases lapse, an operator steers, a policy plans anew. The leader
makes its cause from its leadership and a counter, and everything that follows carries it: the
recall, the grant, the answer to an owner, the push to lookups, however much later they come.

Stories meet. A decision that follows from two of them has both causes, one after the other.
"""

from typing import Annotated, TypeAlias

import msgspec

TOGETHER = 8
"""The most causes that stand together: of more, the latest are kept. Otherwise a push after a mass
join would consist of causes.
"""
Cause: TypeAlias = Annotated[str, msgspec.Meta(max_length=400, pattern=r"^[ -~]*\Z")]
"""Causes, each of at most 39 digits and a point, separated by spaces; empty if nothing happened.
They are for logs only: nothing is decided by them."""


def joined(*causes: str) -> str:
    """All of `causes`, each once."""
    each_once = dict.fromkeys(cause for told in causes for cause in told.split())
    return " ".join(list(each_once)[-TOGETHER:])
