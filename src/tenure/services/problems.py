"""A service's refusals: JSON that says what is refused, and because of which limit or version."""

import msgspec

from tenure import refusal
from tenure.errors import ServiceRefusal, TenureError, UsageError

PROBLEM_TYPE = "application/problem+json"


class ServiceProblem(msgspec.Struct, omit_defaults=True):
    """The body of a refusal, after RFC 9457. `error` is for programs, `detail` for people."""

    status: int
    error: str
    detail: str
    limit: str = ""
    """The limit that was exceeded."""
    most: int = 0
    version: str = ""
    """The present version."""
    gone_at: float | None = None
    """When it ceased to exist, in seconds since 1970."""

    @classmethod
    def of(cls, error: ServiceRefusal) -> "ServiceProblem":
        """Make the problem of a refusal, for an answer."""
        return cls(
            error.status,
            error.error,
            str(error),
            error.limit,
            error.most,
            error.version,
            error.gone_at or None,
        )

    def raised(self) -> ServiceRefusal:
        """Turn the problem back into a refusal, for the client."""
        return ServiceRefusal(
            self.status,
            self.error,
            self.detail,
            limit=self.limit,
            most=self.most,
            version=self.version,
            gone_at=self.gone_at or 0.0,
        )


def problem_of(error: Exception) -> tuple[ServiceProblem, dict[str, str]] | None:
    """The answer to an operation that raised, with its headers; None for a bug."""
    if isinstance(error, ServiceRefusal):
        headers = {"Retry-After": "1"} if error.status in (429, 503) else {}
        if error.status == 401:  # noqa: PLR2004  # as HTTP has it
            headers["WWW-Authenticate"] = "Bearer"
        if error.version:
            headers["ETag"] = f'"{error.version}"'
        return ServiceProblem.of(error), headers
    if isinstance(error, UsageError):
        return ServiceProblem(422, "value", str(error)), {}
    found = refusal(error) if isinstance(error, TenureError) else None
    if found is None:
        return None
    return ServiceProblem(found.status, type(error).__name__, found.text), dict(found.headers)
