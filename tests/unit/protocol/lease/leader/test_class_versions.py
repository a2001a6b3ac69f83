"""Owners whose class is of an older version than that of others get nothing new."""

import pytest

from tenure.protocol.balance.policy import Candidate
from tenure.protocol.lease.leader.class_versions import without_behind
from tenure.protocol.lease.limits import CLASS_VERSION_LABEL


def candidates(*versions: str | None, cordoned: tuple[int, ...] = ()) -> list[Candidate]:
    return [
        Candidate(
            place,
            f"owner-{place}",
            labels={} if version is None else {CLASS_VERSION_LABEL: version},
            cordoned=place in cordoned,
        )
        for place, version in enumerate(versions)
    ]


@pytest.mark.parametrize(
    ("versions", "cordoned", "behind"),
    [
        ((), (), []),
        ((None, None), (), []),
        (("1", None), (), []),
        (("1", "2", "2"), (), [0]),
        (("1", "2", "10"), (), [0, 1]),
        (("7", "x", "-8", "٣", "9" * 30), (), [1, 2, 3, 4]),
        (("1", "2"), (1,), [1]),
        (("1", "2", "3"), (2,), [0, 2]),
    ],
)
def test_who_is_behind_is_cordoned(
    versions: tuple[str | None, ...], cordoned: tuple[int, ...], behind: list[int]
) -> None:
    """The newest owner to whom nothing may be given does not count."""
    found = without_behind(candidates(*versions, cordoned=cordoned))
    assert [each.incarnation for each in found if each.cordoned] == behind
