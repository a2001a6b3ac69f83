"""Calls to the simulated journal take effect, fail, or come late; its contents are those of
`MemoryJournal`.
"""

from tenure.protocol.log.journal import Append, Appended, Mandate, Resign, Unknown
from tenure.sim.journal import failure_of


def test_a_lost_answer_to_an_append_is_unknown() -> None:
    assert failure_of(Append(Mandate(77, 3), 7, ()), "lost") == Appended(3, 7, Unknown("lost"))
    assert failure_of(Resign(Mandate(77, 3)), "lost") is None
