"""Sign-ins of pages: what a cookie is worth, for how long, and what browsers are told of it."""

from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from tenure.base.instants import Instant
from tenure.manager.access.roles import AccessRole, Permit
from tenure.manager.access.sign_ins import (
    COOKIE,
    KEY_HEADER,
    MOST_SIGN_INS,
    SIGN_IN_NS,
    SIGN_INS_OF_A_TOKEN,
    TLS_COOKIE,
    SignIn,
    SignIns,
)
from tenure.manager.access.tokens import NewToken, TokenFile, new_token
from tenure.transport.credentials import Credentials
from tests.certificates import Authority
from tests.unit.manager.serving import Serving, serving

ANN = Permit("ann", AccessRole.VIEWER)
ADMIN = Permit("root", AccessRole.ADMIN)


class TurnedClock:
    def __init__(self) -> None:
        self.now = Instant(5)

    def __call__(self) -> Instant:
        return self.now


def test_a_sign_in_ends_after_a_working_day() -> None:
    clock = TurnedClock()
    sign_ins = SignIns(clock)
    cookie = sign_ins.begin(ANN)
    clock.now = Instant(5 + SIGN_IN_NS - 1)
    assert sign_ins.permit(cookie) == ANN
    clock.now = Instant(5 + SIGN_IN_NS)
    assert sign_ins.permit(cookie) is None
    clock.now = Instant(5)
    assert sign_ins.permit(cookie) is None, "it is forgotten, whatever a clock says then"


def test_of_too_many_sign_ins_of_a_token_its_own_oldest_ends() -> None:
    sign_ins = SignIns(TurnedClock())
    admin = sign_ins.begin(ADMIN)
    first, *others = [sign_ins.begin(ANN) for _ in range(SIGN_INS_OF_A_TOKEN + 1)]
    assert sign_ins.permit(first) is None
    assert {sign_ins.permit(each) for each in others} == {ANN}
    for _ in range(2 * MOST_SIGN_INS):
        sign_ins.begin(ANN)
    assert sign_ins.permit(admin) == ADMIN


def test_of_too_many_sign_ins_in_all_the_oldest_of_the_role_ends() -> None:
    sign_ins = SignIns(TurnedClock())
    admin = sign_ins.begin(ADMIN)
    viewers = [Permit(str(number), AccessRole.VIEWER) for number in range(MOST_SIGN_INS + 1)]
    first, second, third, *_ = [sign_ins.begin(each) for each in viewers]
    assert [sign_ins.permit(each) for each in (admin, first, second, third)] == [
        ADMIN,
        None,
        None,
        viewers[2],
    ]
    assert sign_ins.permit(sign_ins.begin(ADMIN)) == ADMIN
    owner = Permit("bob", AccessRole.OWNER, "rooms")
    assert sign_ins.permit(sign_ins.begin(owner)) == owner


def test_a_sign_in_that_is_ended_counts_no_more_and_the_others_go_on() -> None:
    sign_ins = SignIns(TurnedClock())
    ended, other = sign_ins.begin(ANN), sign_ins.begin(ANN)
    sign_ins.end(ended.cookie)
    sign_ins.end("never begun")
    assert (sign_ins.permit(ended), sign_ins.permit(other)) == (None, ANN)


@pytest.mark.parametrize("key", ["", "x", "\udcff"])
def test_a_cookie_without_its_own_key_is_worth_nothing(key: str) -> None:
    sign_ins = SignIns(TurnedClock())
    ours, other = sign_ins.begin(ANN), sign_ins.begin(ANN)
    for wrong in (key, other.key, ours.cookie):
        assert sign_ins.permit(SignIn(ours.cookie, wrong)) is None
    assert sign_ins.permit(SignIn("", "")) is None
    assert sign_ins.permit(ours) == ANN


# --- at a manager ---


async def signed_in(manager: Serving, token: NewToken, url: str = "") -> dict[str, str]:
    """Sign in, and return what a browser sends from then on."""
    asked = f"{url or manager.service.url}/v1/sign-in"
    async with manager.session.post(asked, json={"token": token.text}) as answer:
        assert answer.status == 200
        value, key = answer.cookies[COOKIE].value, (await answer.json())["key"]
    manager.session.cookie_jar.clear()
    return {"Cookie": f"{COOKIE}={value}", KEY_HEADER: key}


async def status_of(manager: Serving, cookie: dict[str, str]) -> int:
    return (await manager.get("/v1/status", **cookie))[0]


@pytest.mark.asyncio
async def test_a_cookie_counts_until_its_page_signs_out(tmp_path: Path) -> None:
    viewer = new_token(AccessRole.VIEWER)
    tokens = TokenFile(tmp_path / "tokens")
    tokens.add(viewer.entry)
    async with serving(tokens=tokens.path) as manager:
        cookie, other = await signed_in(manager, viewer), await signed_in(manager, viewer)
        assert await status_of(manager, cookie) == 200
        url = f"{manager.service.url}/v1/sign-in"
        asked = {**cookie, "Origin": manager.service.url}
        async with manager.session.delete(url, headers=asked) as answer:
            assert answer.status == 200
            assert answer.cookies[COOKIE].value == ""
        assert await status_of(manager, cookie) == 401
        assert await status_of(manager, other) == 200


@pytest.mark.asyncio
async def test_a_cookie_counts_as_long_as_its_token_and_as_what_that_is(tmp_path: Path) -> None:
    removed, changed = new_token(AccessRole.ADMIN), new_token(AccessRole.ADMIN)
    tokens = TokenFile(tmp_path / "tokens")
    for each in (removed, changed):
        tokens.add(each.entry)
    async with serving(tokens=tokens.path) as manager:
        gone, less = await signed_in(manager, removed), await signed_in(manager, changed)
        assert [await status_of(manager, each) for each in (gone, less)] == [200, 200]
        tokens.remove(removed.entry.id)
        assert await status_of(manager, gone) == 401, "at once: nothing else made it look"
        tokens.add(replace(changed.entry, role=AccessRole.VIEWER))
        assert await status_of(manager, less) == 401, "it was an admin's, and is a viewer's now"


@pytest.mark.asyncio
@pytest.mark.parametrize("with_tls", [False, True])
async def test_no_script_and_no_other_site_has_the_cookie_nor_anybody_on_the_way(
    tmp_path: Path, *, with_tls: bool
) -> None:
    viewer = new_token(AccessRole.VIEWER)
    TokenFile(tmp_path / "tokens").add(viewer.entry)
    said: dict[str, object] = {"tokens": tmp_path / "tokens"}
    trust = None
    if with_tls:
        authority = Authority(tmp_path)
        server = authority.sign("server")
        said |= {"tls_cert": server.cert, "tls_key": server.key}
        trust = Credentials(ca=authority.file).to("https://any")
    async with serving(None, None, **said) as manager:
        url = f"{manager.service.url}/v1/sign-in"
        body = {"token": viewer.text}
        async with manager.session.post(url, json=body, ssl=trust or True) as answer:
            cookie = answer.cookies[TLS_COOKIE if with_tls else COOKIE]
            assert (answer.status, viewer.text in cast("str", cookie.value)) == (200, False)
            shown = {"Cookie": f"{cookie.key}={cookie.value}"}
            shown |= {KEY_HEADER: (await answer.json())["key"]}
        manager.session.cookie_jar.clear()
        async with manager.session.get(url, headers=shown, ssl=trust or True) as answer:
            assert answer.status == 200
            assert "key" not in await answer.json(), "it is told once"
    assert cookie["domain"] == "", "it is for this very host"
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert bool(cookie["secure"]) == with_tls


@pytest.mark.asyncio
async def test_who_listens_at_another_port_of_the_host_gets_in_nowhere_with_the_cookie(
    tmp_path: Path,
) -> None:
    """A browser sends it there, since it makes no difference between ports; and that one may send
    what it likes, so an origin proves nothing.
    """
    admin = new_token(AccessRole.ADMIN)
    TokenFile(tmp_path / "tokens").add(admin.entry)
    async with serving(tokens=tmp_path / "tokens") as manager:
        both = await signed_in(manager, admin)
        url = manager.service.url
        stolen = {"Cookie": both["Cookie"], "Origin": url}
        pool = {"name": "a", "kind": "hashed"}
        for path in ("/v1/status", "/v1/sign-in", "/v1/live", "/v1/pools"):
            assert (await manager.get(path, **stolen))[0] == 401, path
        assert (await manager.post("/v1/pools", pool, **stolen))[0] == 401
        async with manager.session.delete(f"{url}/v1/sign-in", headers=stolen) as answer:
            assert answer.status == 401
        assert (await manager.post("/v1/pools", pool, **both, Origin=url))[0] == 201
