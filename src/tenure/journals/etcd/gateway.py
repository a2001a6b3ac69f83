"""Speaking with an etcd cluster: over HTTP, with any member that answers.

Members are equal: each passes requests on to the one that leads them, so that every answer here,
even to a read, is as current as if there were one member only. The member that answered last is
asked first. A member has a short time to answer; one that is stopped, or is cut off from the
others, must not cost the manager its leadership.

A request that changes nothing when it is carried out twice (`repeatable`) goes to the next member
whatever the first one did. Any other request does so only after a failure which proves that it was
not carried out.
"""

import asyncio
from collections.abc import Iterator
from typing import TypeVar

import aiohttp
import msgspec

from tenure.errors import MALFORMED, ClosedError, ConfigurationError, JournalError
from tenure.journals.etcd.errors import (
    AuthenticationOff,
    EtcdUnanswered,
    NotSent,
    SetupRefused,
    TokenRefused,
    refusal,
)
from tenure.journals.etcd.url import EtcdOptions
from tenure.journals.etcd.wire import AUTHENTICATE, GatewayRequest, Login, Token
from tenure.runtime.read_size import SmallBlocksResponse

T = TypeVar("T")

_OK = 200
_LARGE = 10
"""How many timeouts there are for what is long in the making: etcd reads some MiB from its disk."""
_WHOLE = 20
"""How many timeouts a whole answer may take. The timeout is for the silence within it."""

_encoder = msgspec.json.Encoder()
_tokens = msgspec.json.Decoder(Token)


class Gateway:
    """An etcd cluster, for one event loop."""

    def __init__(self, options: EtcdOptions) -> None:
        """Raises ConfigurationError for certificates that cannot be used. Reads their files."""
        self.endpoints = options.endpoints
        self._options = options
        self._ssl = options.ssl_context()
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._good = 0
        self._token: str | None = None
        self._logging_in = asyncio.Lock()
        self._has_worked = False

    async def call(
        self,
        path: str,
        request: GatewayRequest,
        answer: msgspec.json.Decoder[T],
        *,
        repeatable: bool = True,
        is_large: bool = False,
    ) -> T:
        """Ask any member that answers. Raises JournalError; ConfigurationError at the start.

        A request that `is_large` may take longer: it goes to a member that has just answered
        another.
        """
        seconds = self._options.timeout * (_LARGE if is_large else 1)
        body = _encoder.encode(request)
        failed: list[JournalError] = []
        for index in self._in_turn():
            try:
                payload = await self._ask(self.endpoints[index], path, body, seconds)
            except NotSent as error:
                failed.append(error)
            except EtcdUnanswered as error:
                if not repeatable:
                    self._good = (index + 1) % len(self.endpoints)
                    raise
                failed.append(error)
            except SetupRefused as error:
                if self._has_worked:
                    raise
                raise ConfigurationError(str(error)) from error
            else:
                self._good = index
                self._has_worked = True
                return _decoded(answer, payload, self.endpoints[index])
        raise _none_answered(failed)

    async def ask(
        self, endpoint: str, path: str, request: GatewayRequest, answer: msgspec.json.Decoder[T]
    ) -> T:
        """Ask this very member. Raises JournalError."""
        seconds = self._options.timeout
        payload = await self._ask(endpoint, path, _encoder.encode(request), seconds)
        return _decoded(answer, payload, endpoint)

    async def close(self) -> None:
        """Let go of every connection; a second call does nothing."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _in_turn(self) -> Iterator[int]:
        first, count = self._good, len(self.endpoints)
        return ((first + i) % count for i in range(count))

    def _connected(self) -> aiohttp.ClientSession:
        if self._closed:
            raise ClosedError("this journal is closed: open it again")
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=True if self._ssl is None else self._ssl)
            self._session = aiohttp.ClientSession(
                connector=connector, response_class=SmallBlocksResponse
            )
        return self._session

    # --- one member ---

    async def _ask(self, endpoint: str, path: str, body: bytes, seconds: float) -> bytes:
        headers = await self._headers(endpoint)
        try:
            return await self._post(endpoint, path, body, headers, seconds)
        except TokenRefused:
            self._forget(headers)
        try:
            return await self._post(endpoint, path, body, await self._headers(endpoint), seconds)
        except TokenRefused as error:
            if not self._options.user:
                raise SetupRefused(
                    f"{error}: it asks for a user; say ?user=NAME&password_file=PATH at the end of "
                    "the journal's URL"
                ) from error
            raise

    async def _post(
        self, endpoint: str, path: str, body: bytes, headers: dict[str, str], seconds: float
    ) -> bytes:
        patience = aiohttp.ClientTimeout(
            total=_WHOLE * seconds, sock_connect=self._options.timeout, sock_read=seconds
        )
        try:
            async with self._connected().post(
                endpoint + path,
                data=body,
                headers=headers,
                timeout=patience,
                allow_redirects=False,
            ) as response:
                payload = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise _transport_error(endpoint, error) from error
        if response.status != _OK:
            raise refusal(endpoint, response.status, payload)
        return payload

    # --- who asks ---

    async def _headers(self, endpoint: str) -> dict[str, str]:
        if not self._options.user:
            return {}
        async with self._logging_in:
            if self._token is None:
                self._token = await self._log_in(endpoint)
        return {"Authorization": self._token} if self._token else {}

    async def _log_in(self, endpoint: str) -> str:
        login = Login(self._options.user, self._options.password())
        try:
            body = _encoder.encode(login)
            seconds = self._options.timeout * _LARGE  # etcd hashes passwords slowly, on purpose
            payload = await self._post(endpoint, AUTHENTICATE, body, {}, seconds)
        except AuthenticationOff:
            return ""  # etcd is less strict than we were told
        return _decoded(_tokens, payload, endpoint).token

    def _forget(self, headers: dict[str, str]) -> None:
        if headers.get("Authorization", "") == self._token:  # nobody renewed the token meanwhile
            self._token = None


def _decoded(decoder: msgspec.json.Decoder[T], payload: bytes, endpoint: str) -> T:
    try:
        return decoder.decode(payload)
    except MALFORMED as error:
        raise EtcdUnanswered(f"{endpoint} answered what etcd does not: {error}") from error


def _transport_error(endpoint: str, error: Exception) -> NotSent | EtcdUnanswered:
    why = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return NotSent(f"{endpoint} cannot be reached: {why}")
    return EtcdUnanswered(f"{endpoint} did not answer: {why}")


def _none_answered(failed: list[JournalError]) -> NotSent | EtcdUnanswered:
    is_known = all(isinstance(error, NotSent) for error in failed)
    outcome = "nothing was sent" if is_known else "what was asked may have been done"
    reasons = "; ".join(map(str, failed))
    return (NotSent if is_known else EtcdUnanswered)(
        f"no member of etcd answered, {outcome}: {reasons}"
    )
