"""A service of carts in a WSGI application, with an owner for each worker of gunicorn, as the guide
of web servers has it: gunicorn's configuration, and its application.
"""

import os
from collections.abc import Callable
from typing import Any

from tenure import KeyedState, Owner

carts: KeyedState[list[str]] = KeyedState(value_type=list[str])
threads = 2
bind = f"127.0.0.1:{os.environ.get('PORT', '0')}"


def post_worker_init(worker: Any) -> None:  # noqa: ANN401  # of gunicorn
    worker.owner = Owner(pool="carts", address=f"http://{bind}", hand_off=carts)
    worker.owner.__enter__()
    worker.app.wsgi().owner = worker.owner


def worker_exit(server: Any, worker: Any) -> None:  # noqa: ANN401  # of gunicorn
    worker.owner.close()


class Shop:
    """The application."""

    owner: Owner

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        user = environ["PATH_INFO"].removeprefix("/carts/")
        if user.endswith("health"):
            start_response("200 OK", [])
            return [b"%d" % os.getpid()]
        if self.owner.check(user) is None:
            start_response("421 Misdirected Request", [])
            return [b""]
        if environ["REQUEST_METHOD"] == "POST":
            article = environ["QUERY_STRING"].removeprefix("article=")
            carts[user] = [*carts.get(user, []), article]
        start_response("200 OK", [])
        return [str(carts.get(user, [])).encode()]


app = Shop()
