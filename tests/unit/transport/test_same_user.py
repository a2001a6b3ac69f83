"""Whose a loopback connection is, as the kernel says."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tenure.transport.same_user import is_of_same_user

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not say")


@contextmanager
def connected(host: str, at: str = "") -> Iterator[tuple[Any, Any]]:
    """The two addresses of a connection, its end here first."""
    family = socket.AF_INET6 if ":" in (at or host) else socket.AF_INET
    with (
        socket.create_server(
            (at or host, 0), family=family, dualstack_ipv6=at == "::"
        ) as listening,
        socket.create_connection((host, listening.getsockname()[1])),
        listening.accept()[0] as near,
    ):
        yield near.getsockname(), near.getpeername()


@pytest.mark.parametrize(("host", "at"), [("127.0.0.1", ""), ("::1", ""), ("127.0.0.1", "::")])
def test_the_kernel_says_that_our_own_connections_are_ours(host: str, at: str) -> None:
    with connected(host, at) as (near, far):
        assert is_of_same_user(near, far)
    assert not is_of_same_user(near, far), "it has ended"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_of_another_user_is_none_of_ours(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(host) as (near, far):
        monkeypatch.setattr(os, "geteuid", lambda: 4_294_967)
        assert not is_of_same_user(near, far)


def test_a_port_at_which_we_listen_is_no_connection_of_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours, connected("127.0.0.1") as (near, _):
        assert not is_of_same_user(near, ours.getsockname())


def test_where_the_kernel_says_nothing_nobody_is_the_same_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Silent(socket.socket):
        def recv(self, *_: object) -> bytes:
            return b"odd"

    class Forbidden(socket.socket):
        def __init__(self, *_: object) -> None:
            raise PermissionError

    with connected("127.0.0.1") as (near, far):
        for kernel in (Silent, Forbidden):
            monkeypatch.setattr(socket, "socket", kernel)
            assert not is_of_same_user(near, far)


@pytest.mark.parametrize("ends", [(("10.0.0.7", 1), ("10.0.0.7", 2)), ("", ""), (None, None)])
def test_only_loopback_is_looked_at(ends: tuple[Any, Any]) -> None:
    assert not is_of_same_user(*ends)
