"""The programs of the page on Flask and Django, with the hooks of its server, answer requests."""

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure import StoreAway
from tests.repo.reading import ROOT
from tests.repo.test_prose import python_fences
from tests.unit.manager.serving import serving

pytestmark = pytest.mark.asyncio
PAGE = ROOT / "docs" / "guides" / "flask-and-django.md"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """The files of the page, where Python finds them; imports one of them."""
    (tmp_path / "rooms").mkdir()
    for _, program in python_fences(PAGE.read_text("utf-8")):
        name = program.split("\n", 1)[0].removeprefix("# ")
        (tmp_path / name.replace("gunicorn.conf", "gunicorn_conf")).write_text(program, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module
    for each in [name for name in sys.modules if name.split(".")[0] in ("rooms", "gunicorn_conf")]:
        del sys.modules[each]


async def in_a_worker(
    project: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, work: Callable[[], None]
) -> None:
    """Do it in a thread, as a worker of gunicorn does between its hooks."""
    hooks = project("gunicorn_conf")

    def serve() -> None:
        hooks.post_worker_init(None)
        try:
            work()
        finally:
            hooks.worker_exit(None, None)

    async with serving(preset="test") as manager:
        monkeypatch.setenv("TENURE_MANAGERS", manager.service.url)
        await asyncio.to_thread(serve)


async def test_flask(project: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flask")
    site, entities = project("rooms.site"), project("rooms.entities")

    def use() -> None:
        client = site.app.test_client()
        assert client.post("/rooms/attic", data="hello").json == {"lines": 1}
        assert client.post("/rooms/attic", data="again").json == {"lines": 2}
        assert client.get("/rooms/attic").json == ["hello", "again"]
        with monkeypatch.context() as patched:
            patched.setattr(entities.Entities, "called", refuse)
            answer = client.get("/rooms/attic")
        assert (answer.status_code, answer.headers["Tenure-Outcome"]) == (503, "not-begun")

    await in_a_worker(project, monkeypatch, use)


async def test_django(project: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    django = pytest.importorskip("django")
    settings, test = project("django.conf").settings, project("django.test")
    settings.configure(
        ROOT_URLCONF="rooms.urls",
        MIDDLEWARE=["rooms.middleware.Refused"],
        ALLOWED_HOSTS=["testserver"],
        SECRET_KEY="of a test",  # noqa: S106  # it protects nothing
    )
    django.setup()
    entities = project("rooms.entities")

    def use() -> None:
        client = test.Client()
        said = client.post("/rooms/attic", data="hello", content_type="text/plain")
        assert said.json() == {"lines": 1}
        assert client.get("/rooms/attic").json() == ["hello"]
        with monkeypatch.context() as patched:
            patched.setattr(entities.Entities, "called", refuse)
            answer = client.get("/rooms/attic")
        assert (answer.status_code, answer.headers["Tenure-Outcome"]) == (503, "not-begun")

    await in_a_worker(project, monkeypatch, use)


def refuse(*_: object) -> None:
    raise StoreAway("the store cannot be asked")
