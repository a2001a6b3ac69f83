"""Refusals: what was not begun is told apart from what may have been done."""

import pytest

from tenure import (
    Busy,
    EntityError,
    Fenced,
    Full,
    LeaseLost,
    NoOwner,
    NotOwner,
    OutcomeUnknown,
    Overloaded,
    TurnTooLong,
    UsageError,
    refusal,
)


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (NotOwner("no"), 421, {"Tenure-Outcome": "not-begun"}),
        (LeaseLost("no"), 503, {"Tenure-Outcome": "unknown"}),
        (OutcomeUnknown("no"), 503, {"Tenure-Outcome": "unknown"}),
        (Busy("no"), 503, {"Tenure-Outcome": "not-begun", "Retry-After": "1"}),
        (Busy("no", retry_after=0.0), 503, {"Tenure-Outcome": "not-begun", "Retry-After": "1"}),
        (Busy("no", retry_after=2.1), 503, {"Tenure-Outcome": "not-begun", "Retry-After": "3"}),
        (NoOwner("no"), 503, {"Tenure-Outcome": "not-begun", "Retry-After": "1"}),
        (Overloaded("no"), 503, {"Tenure-Outcome": "not-begun", "Retry-After": "1"}),
        (Fenced("no"), 412, {"Tenure-Outcome": "not-begun"}),
        (Full("no"), 507, {}),
        (TurnTooLong("no"), 503, {"Tenure-Outcome": "unknown"}),
        (EntityError("no"), 500, {}),
    ],
)
def test_every_outcome_has_its_answer(
    error: Exception, status: int, headers: dict[str, str]
) -> None:
    answer = refusal(error)
    assert answer is not None
    assert (answer.status, answer.headers) == (status, headers)
    assert answer.text


def test_only_what_was_not_begun_is_421() -> None:
    errors = (LeaseLost, OutcomeUnknown, Busy, NoOwner, Overloaded, Fenced, Full)
    answers = [refusal(each("no")) for each in errors]
    assert all(answer is not None and answer.status != 421 for answer in answers)


def test_it_names_the_owner_where_that_is_known_and_fits_a_header() -> None:
    known = refusal(NotOwner("no", address="http://10.0.0.7:8000"))
    assert known is not None
    assert known.headers["Tenure-Owner"] == "http://10.0.0.7:8000"
    for address in ("http://ö", "http://a\r\nSet-Cookie: b"):
        unfit = refusal(NotOwner("no", address=address))
        assert unfit is not None
        assert "Tenure-Owner" not in unfit.headers


@pytest.mark.parametrize("error", [ValueError("x"), UsageError("x"), KeyboardInterrupt()])
def test_other_errors_are_the_applications_to_answer(error: BaseException) -> None:
    assert refusal(error) is None
