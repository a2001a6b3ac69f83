"""How messages and records are made."""

import msgspec
import pytest

from tenure.protocol.lease import messages, records
from tenure.protocol.lease.owner import transfer

STRUCTS = [
    each
    for module in (messages, records, transfer)
    for each in vars(module).values()
    if isinstance(each, type)
    and issubclass(each, msgspec.Struct)
    and each.__module__ == module.__name__
    and each.__struct_config__.array_like
]


@pytest.mark.parametrize("struct", STRUCTS)
def test_what_is_sent_or_kept_is_made_with_keywords_only(struct: type[msgspec.Struct]) -> None:
    """Its fields are numbers and keys side by side: by position two are easily exchanged."""
    assert struct.__match_args__ == ()
