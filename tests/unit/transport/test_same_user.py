"""Whose a loopback connection is, as the kernel says."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tenure.transport.same_user import is_of_same_user

USER = 7


@contextmanager
def connected(host: str) -> Iterator[tuple[Any, Any]]:
    """The two addresses of a connection, its end here first."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((host, 0), family=family) as listening,
        socket.create_connection(listening.getsockname()[:2]),
        listening.accept()[0] as near,
    ):
        yield near.getsockname(), near.getpeername()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_kernel_says_that_our_own_connections_are_ours(host: str) -> None:
    with connected(host) as (near, far):
        assert is_of_same_user(near, far)
    assert not is_of_same_user(near, far), "it has ended"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_of_another_user_is_none_of_ours(host: str, tmp_path: Path) -> None:
    with connected(host) as (near, far):
        for name in ("tcp", "tcp6"):
            rows = [each.split() for each in Path("/proc/net", name).read_text().splitlines()]
            others = [" ".join([*row[:USER], "4294967", *row[USER + 1 :]]) for row in rows]
            (tmp_path / name).write_text("\n".join(others))
        assert not is_of_same_user(near, far, tmp_path)


def test_where_the_kernel_says_nothing_nobody_is_the_same_user(tmp_path: Path) -> None:
    with connected("127.0.0.1") as (near, far):
        assert not is_of_same_user(near, far, tmp_path)
        (tmp_path / "tcp").write_text("sl\n0: odd\n")
        assert not is_of_same_user(near, far, tmp_path)


@pytest.mark.parametrize("ends", [(("10.0.0.7", 1), ("10.0.0.7", 2)), ("", ""), (None, None)])
def test_only_loopback_is_looked_at(ends: tuple[Any, Any]) -> None:
    assert not is_of_same_user(*ends)
