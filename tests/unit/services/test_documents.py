"""Documents over HTTP: sections, versions, conditions, time to live, and what bad input gets."""

import pytest

from tenure.errors import ServiceRefusal
from tenure.services.documents.client import DocumentsClient
from tests.unit.services.stage import on_service_stage

pytestmark = pytest.mark.asyncio


async def test_a_document_is_written_and_read_whole_and_by_section() -> None:
    async with on_service_stage("documents") as stage:
        made = await stage.ask("PUT", "/documents/ann", {"sections": {"a": 1, "b": [2]}})
        assert made.status == 201
        read = await stage.ask("GET", "/documents/ann")
        assert (read.status, read.body["sections"]) == (200, {"a": 1, "b": [2]})
        assert read.tag == made.tag == f'"{made.body["version"]}"'
        put = await stage.ask("PUT", "/documents/ann/sections/c", b'"x"')
        assert (put.status, put.tag != made.tag) == (200, True)
        section = await stage.ask("GET", "/documents/ann/sections/c")
        assert (section.body, section.tag) == ("x", put.tag)
        gone = await stage.ask("DELETE", "/documents/ann/sections/a")
        assert gone.status == 200
        whole = await stage.ask("GET", "/documents/ann")
        assert whole.body["sections"] == {"b": [2], "c": "x"}


async def test_an_update_depends_on_the_version_and_is_told_which_is_there() -> None:
    async with on_service_stage("documents") as stage:
        body = {"sections": {"a": 1}}
        assert (await stage.ask("PUT", "/documents/d", body, If_Match='"1.1.1"')).status == 412
        first = await stage.ask("PUT", "/documents/d", body, If_None_Match="*")
        assert first.status == 201
        again = await stage.ask("PUT", "/documents/d", body, If_None_Match="*")
        assert (again.status, again.tag) == (412, first.tag)
        assert again.body["version"] == first.body["version"]
        second = await stage.ask("PUT", "/documents/d", body, If_Match=f'"0.0.0", {first.tag}')
        assert second.status == 200
        late = await stage.ask("DELETE", "/documents/d", If_Match=first.tag)
        assert (late.status, late.tag) == (412, second.tag)
        assert (await stage.ask("GET", "/documents/d", If_None_Match=second.tag)).status == 304
        assert (await stage.ask("GET", "/documents/d", If_None_Match=first.tag)).status == 200
        assert (await stage.ask("DELETE", "/documents/d", If_Match="*")).status == 204


async def test_a_version_never_comes_again_for_a_document_that_was_deleted() -> None:
    async with on_service_stage("documents") as stage:
        seen = set()
        for _ in range(3):
            made = await stage.ask("PUT", "/documents/d", {"sections": {}})
            seen.add(made.tag)
            assert (await stage.ask("DELETE", "/documents/d")).status == 204
        assert len(seen) == 3


async def test_a_repeated_update_gets_the_first_answer() -> None:
    async with on_service_stage("documents") as stage:
        body = {"sections": {"a": 1}}
        first = await stage.ask("PUT", "/documents/d", body, Idempotency_Key="one")
        again = await stage.ask("PUT", "/documents/d", body, Idempotency_Key="one")
        assert (again.status, again.tag) == (201, first.tag)
        other = await stage.ask("PUT", "/documents/d", body, Idempotency_Key="two")
        assert other.tag != first.tag


async def test_an_id_is_one_request_s_and_no_other_s_of_its_document() -> None:
    async with on_service_stage("documents") as stage:
        for method, path, status in [
            ("PUT", "/documents/d/sections/a", 201),
            ("PUT", "/documents/d/sections/b", 200),
            ("DELETE", "/documents/d/sections/a", 200),
        ]:
            done = await stage.ask(method, path, 1, Idempotency_Key="one")
            assert done.status == status, path
        assert (await stage.ask("GET", "/documents/d")).body["sections"] == {"b": 1}
        assert (await stage.ask("DELETE", "/documents/d", Idempotency_Key="one")).status == 204
        assert (await stage.ask("GET", "/documents/d")).status == 410


async def test_what_went_is_410_with_when_and_what_never_was_is_404() -> None:
    async with on_service_stage("documents") as stage:
        unknown = await stage.ask("GET", "/documents/d")
        assert (unknown.status, unknown.body["error"]) == (404, "unknown")
        await stage.ask("PUT", "/documents/d", {"sections": {"a": 1}})
        await stage.ask("DELETE", "/documents/d")
        gone = await stage.ask("GET", "/documents/d")
        assert (gone.status, gone.body["gone_at"] > 1e9) == (410, True)
        for method, path in [
            ("DELETE", "/documents/d"),
            ("POST", "/documents/d/refresh"),
            ("DELETE", "/documents/d/sections/a"),
            ("GET", "/documents/d/sections/a"),
        ]:
            assert (await stage.ask(method, path)).status == 410
        await stage.ask("PUT", "/documents/d", {"sections": {"a": 1}})
        missing = await stage.ask("GET", "/documents/d/sections/b")
        assert (missing.status, missing.body["error"]) == (404, "no_section")


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "error"),
    [
        ("PUT", "/documents/d", b"{", {}, 400, "json"),
        ("PUT", "/documents/d", b"\xff", {}, 400, "json"),
        ("PUT", "/documents/d", b"[" * 100_000, {}, 422, "shape"),
        ("PUT", "/documents/d", b'{"sections":{"a":' + b"[" * 100_000, {}, 400, "json"),
        ("PUT", "/documents/d", {"sections": 1}, {}, 422, "shape"),
        ("PUT", "/documents/d", {"sections": {"": 1}}, {}, 422, "shape"),
        ("PUT", "/documents/d", {"sections": {}, "more": 1}, {}, 422, "shape"),
        ("PUT", "/documents/d", {"sections": {}, "ttl": -1}, {}, 422, "shape"),
        ("PUT", "/documents/d", {"sections": {}, "ttl": 1e300}, {}, 413, "limit"),
        ("PUT", "/documents/d", {"sections": {}}, {"If_Match": "17"}, 400, "condition"),
        ("PUT", "/documents/d", {"sections": {}}, {"If_Match": ""}, 400, "condition"),
        ("PUT", "/documents/d", {"sections": {}}, {"If_None_Match": '"1"'}, 400, "condition"),
        ("GET", "/documents/d", None, {"If_None_Match": "x"}, 404, "unknown"),
        ("PUT", "/documents/" + "k" * 513, {"sections": {}}, {}, 413, "limit"),
        ("PUT", "/documents/%ff", {"sections": {}}, {}, 400, "key"),
        ("PUT", "/documents/d", {"sections": {"a": "x" * 262_144}}, {}, 413, "limit"),
        (
            "PUT",
            "/documents/d",
            {"sections": dict.fromkeys(map(str, range(257)))},
            {},
            429,
            "limit",
        ),
        ("PUT", "/documents/d", b'"' + b"x" * 800_000 + b'"', {}, 413, "limit"),
        ("PUT", "/documents/d/sections/" + "n" * 201, b"1", {}, 413, "limit"),
        ("PUT", "/documents/d", {"sections": {}}, {"Idempotency_Key": "i" * 201}, 413, "limit"),
        ("GET", "/nothing", None, {}, 404, "route"),
        ("POST", "/documents/d", None, {}, 405, "route"),
        ("GET", "/documents/d?more=1", None, {}, 422, "query"),
        ("POST", "/documents/d/refresh", {"ttl": 1e300}, {}, 413, "limit"),
    ],
)
async def test_bad_input_gets_a_clear_answer(
    method: str, path: str, body: object, headers: dict[str, str], status: int, error: str
) -> None:
    async with on_service_stage("documents") as stage:
        found = await stage.ask(method, path, body, **headers)
        assert (found.status, found.body.get("error")) == (status, error), found
        assert found.body["detail"]
        if error == "limit":
            assert found.body["limit"] in found.body["detail"]
        assert (await stage.ask("PUT", "/documents/e", {"sections": {}})).status == 201


async def test_every_limit_is_listed_with_its_reason() -> None:
    async with on_service_stage("documents") as stage:
        listed = (await stage.ask("GET", "/limits")).body
        assert {"key_bytes", "sections", "document_bytes"} <= {each["name"] for each in listed}
        assert all(each["why"] and each["most"] for each in listed)


async def test_two_processes_answer_for_each_other_and_refusals_arrive_whole() -> None:
    async with (
        on_service_stage("documents") as one,
        on_service_stage("documents", manager=one.manager) as two,
    ):
        for number in range(10):
            path = f"/documents/{number}"
            made = await one.ask("PUT", path, {"sections": {"n": number}}, If_None_Match="*")
            again = await two.ask("PUT", path, {"sections": {}}, If_None_Match="*")
            assert (again.status, again.tag) == (412, made.tag)
            assert (await two.ask("GET", path)).body["sections"] == {"n": number}


async def test_a_client_reads_and_writes() -> None:
    async with on_service_stage("documents") as stage, DocumentsClient(stage.url) as documents:
        made = await documents.write("a/b", {"x": [1]}, if_version="")
        assert made.is_new
        await documents.write_section("a/b", "y/z", None)
        found = await documents.read("a/b")
        assert found.sections == {"x": [1], "y/z": None}
        assert await documents.read_section("a/b", "y/z") is None
        with pytest.raises(ServiceRefusal) as refused:
            await documents.write("a/b", {}, if_version=made.version)
        assert (refused.value.status, refused.value.version) == (412, found.version)
        await documents.delete_section("a/b", "y/z")
        await documents.refresh("a/b", ttl=100)
        await documents.delete("a/b")
        with pytest.raises(ServiceRefusal) as refused:
            await documents.read("a/b")
        assert refused.value.gone_at
