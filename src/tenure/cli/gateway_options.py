"""The options of a gateway, of `tenure gateway` and of `tenure run --gateway`."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

Flag = Annotated[bool, Parameter(negative="")]
Repeated = Annotated[tuple[str, ...], Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class GatewayOptions:
    """The options of a gateway, wherever its managers come from."""

    listen: str = "127.0.0.1:8080"
    "HOST:PORT for clients. Port 0 picks a free one."
    route: Repeated = ()
    "PATH=POOL or PATH=URL, such as /rooms/{room}=rooms; the first that fits is taken."
    routes: Path | None = None
    "A file with further routes, one on each line; SIGHUP has it read again."
    rest: str | None = None
    "The URL of a plain server that gets what no route fits."
    member_routes: Flag = False
    "Ask the managers for the routes that members bring, too."
    admin: str | None = None
    "HOST:PORT for /healthz, /readyz and /metrics; without it there is no such port."
    deadline: float = 10.0
    "How many seconds to retry a request that no owner accepts."
    answer_seconds: float = 60.0
    "How many seconds an owner may take to begin its answer."
    drain: float = 10.0
    "How many seconds requests may continue after SIGTERM."
    take_over: Path | None = None
    "Take over from the gateway that waits at this Unix socket, and wait there for a successor."
    trust: Repeated = ()
    "The address or network of a load balancer whose X-Forwarded headers are believed."
    sockets: Repeated = ()
    "A pool of entities whose WebSockets end at the gateway, and outlive the processes behind it."
    sockets_listen: str = "127.0.0.1:0"
    "HOST:PORT where the owners of these entities reach the gateway."
    sockets_address: str | None = None
    "The URL that they use, if it differs."
    tls_cert: Path | None = None
    "A PEM file with the certificate to present to clients; it is read again when it changes."
    tls_key: Path | None = None
    "The file with the key of the certificate."
    insecure: Flag = False
    "Listen without TLS where other machines can reach it."
    access_log: Flag = False
    "Log a line for each request."

    def arguments(self) -> Iterator[str]:
        """The words of a command line that has these options."""
        return words_of(self)


def words_of(options: Any) -> Iterator[str]:  # noqa: ANN401  # a dataclass
    """The words of a command line that has these options, which are those of a command."""
    for each in fields(options):
        value = getattr(options, each.name)
        if value == each.default:
            continue
        name = f"--{each.name.replace('_', '-')}"
        if value is True:
            yield name
        else:
            for one in value if isinstance(value, tuple) else (value,):
                yield f"{name}={one}"
