"""An owner tells the news in the answers that it takes."""

import msgspec

from tenure.base.noted import Level, Noted
from tests.unit.protocol.lease.driven_owner import TERM_NS, Driven, at, renewing, response

SHARES = "shares its address"


def renew(driven: Driven, same_address: str) -> list[Noted]:
    """It asks, and is answered; what it then tells of its address."""
    driven.advance(driven.wake_at)
    answer = msgspec.structs.replace(response(driven), same_address=same_address)
    driven.hear(answer)
    assert driven.now < at(TERM_NS)
    return [
        each for each in driven.actions if isinstance(each, Noted) and each.kind.phrase == SHARES
    ]


def test_who_shares_its_address_warns_once_naming_the_other_and_the_way_out() -> None:
    driven = renewing()
    driven.hear(response(driven))
    assert renew(driven, "") == []
    [warning] = renew(driven, "bob")
    assert warning.kind.level is Level.WARNING
    assert "the same address as bob" in warning.detail
    assert "tenure docs guides/web-servers" in warning.detail
    assert renew(driven, "bob") == []
    assert renew(driven, "carl") == []
