"""TLS made of files, and credentials: what fits, what is read again, what is never shown."""

import asyncio
import socket as sockets
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenure.errors import ConfigurationError
from tenure.transport import tls
from tenure.transport.credentials import Credentials, UnsafeAddressError
from tenure.transport.tls import ClientTls, ServerTls
from tests.certificates import Authority, Identity


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def looked_at_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "LOOK_SECONDS", 0.0)


@asynccontextmanager
async def echoing(context: ssl.SSLContext) -> AsyncIterator[int]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def serial_shown(port: int, context: ssl.SSLContext) -> str:
    """The number of the certificate that is shown there; the connection must work."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(b"hello\n")
        if await reader.readline() != b"hello\n":  # in TLS 1.3 a client hears late that it may not
            raise ConnectionResetError
        return str(writer.get_extra_info("peercert")["serialNumber"])
    finally:
        writer.close()


@pytest.mark.asyncio
@pytest.mark.usefixtures("looked_at_always")
async def test_a_new_certificate_is_shown_without_a_restart(authority: Authority) -> None:
    server = ServerTls(*authority.sign("server"))
    client = ClientTls(authority.file, None, None).context()
    async with echoing(server.context()) as port:
        first = await serial_shown(port, client)
        assert await serial_shown(port, client) == first
        authority.sign("server")
        assert await serial_shown(port, client) != first


@pytest.mark.asyncio
@pytest.mark.usefixtures("looked_at_always")
async def test_half_a_change_changes_nothing(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    identity = authority.sign("server")
    server = ServerTls(*identity)
    client = ClientTls(authority.file, None, None).context()
    async with echoing(server.context()) as port:
        first = await serial_shown(port, client)
        identity.cert.write_bytes(authority.sign("other").cert.read_bytes())  # not yet its key
        assert await serial_shown(port, client) == first
        assert "going on with the certificates that there were" in caplog.text


@pytest.mark.asyncio
async def test_a_server_of_another_authority_is_not_believed(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger")
    async with echoing(ServerTls(*stranger.sign("server")).context()) as port:
        with pytest.raises(ssl.SSLCertVerificationError):
            await serial_shown(port, ClientTls(authority.file, None, None).context())


@pytest.mark.asyncio
async def test_with_an_authority_for_clients_a_client_must_have_a_certificate_of_it(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger")
    server = ServerTls(*authority.sign("server"), authority.file)
    async with echoing(server.context()) as port:
        known = ClientTls(authority.file, *authority.sign("client"))
        assert await serial_shown(port, known.context())
        for cert, key in ((None, None), tuple(stranger.sign("client"))):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await serial_shown(port, ClientTls(authority.file, cert, key).context())


def resumed(port: int, context: ssl.SSLContext) -> bool:
    """Whether a second connection, with the session of the first, is let in as the first again."""
    session, is_resumed = None, False
    for _ in range(2):
        raw = sockets.create_connection(("127.0.0.1", port))
        with context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as it:
            it.sendall(b"hello\n")
            assert it.recv(100) == b"hello\n"
            is_resumed, session = bool(it.session_reused), it.session
    return is_resumed


@pytest.mark.asyncio
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2])
async def test_no_session_is_resumed_where_a_certificate_must_be_shown(
    authority: Authority, version: ssl.TLSVersion
) -> None:
    """It would be let in after its authority was withdrawn, or its certificate has expired."""
    server = ServerTls(*authority.sign("server"), authority.file)
    client = ClientTls(authority.file, *authority.sign("client")).context()
    client.maximum_version = version
    async with echoing(server.context()) as port:
        if version == ssl.TLSVersion.TLSv1_2:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.to_thread(resumed, port, client)
        else:
            assert not await asyncio.to_thread(resumed, port, client)


@pytest.mark.asyncio
@pytest.mark.usefixtures("looked_at_always")
async def test_a_client_shows_its_new_certificate_without_a_restart(
    authority: Authority, tmp_path: Path
) -> None:
    client = ClientTls(authority.file, *Authority(tmp_path, "stranger").sign("client"))
    server = ServerTls(*authority.sign("server"), authority.file)
    async with echoing(server.context()) as port:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await serial_shown(port, client.context())
        authority.sign("client")
        assert await serial_shown(port, client.context())


@pytest.mark.asyncio
@pytest.mark.usefixtures("looked_at_always")
async def test_another_authority_for_clients_counts_without_a_restart(
    authority: Authority, tmp_path: Path
) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    server = ServerTls(*authority.sign("server"), old.file)
    first = ClientTls(authority.file, *old.sign("first"))
    second = ClientTls(authority.file, *new.sign("second"))
    async with echoing(server.context()) as port:
        assert await serial_shown(port, first.context())
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await serial_shown(port, second.context())
        old.file.write_bytes(new.file.read_bytes())
        assert await serial_shown(port, second.context())
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await serial_shown(port, first.context())


@pytest.mark.parametrize("broken", [b"", b"nothing of the kind", None])
def test_files_of_no_use_are_named(authority: Authority, broken: bytes | None) -> None:
    identity = authority.sign("server")
    identity.key.unlink() if broken is None else identity.key.write_bytes(broken)
    with pytest.raises(ConfigurationError, match=r"server\.pem and the key in .*server\.key"):
        ServerTls(*identity)
    with pytest.raises(ConfigurationError, match="the authorities in"):
        ClientTls(identity.key, None, None).context()


def test_an_encrypted_key_asks_nobody(authority: Authority) -> None:
    identity = authority.sign("server")
    lines = identity.key.read_text().splitlines()
    headers = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF"]
    identity.key.write_text("\n".join([lines[0], *headers, "", *lines[1:]]) + "\n")
    with pytest.raises(ConfigurationError, match="encrypted"):
        ServerTls(*identity)


# --- credentials ---


def test_what_does_not_fit_together_is_refused(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.sign("mine")
    for said, why in (
        ({"token": "a", "token_file": "b"}, "both given"),
        ({"cert": cert}, "cert is given without key"),
        ({"key": key}, "key is given without cert"),
        ({"cert": cert, "key": key, "mutual": True}, "mutual TLS needs ca"),
        ({"token": "two words"}, "token is not a token"),
        ({"token": ""}, "token is not a token"),
        ({"token_file": tmp_path / "none"}, "cannot be read"),
        ({"token_file": 5}, r"token_file is the path of a file, not 5 \(int\)"),
        ({"ca": "ca\0.pem"}, r"ca is the path of a file, not 'ca\\x00.pem'"),
        ({"ca": "\ud800"}, r"ca is the path of a file, not '\\ud800'"),
        ({"ca": b"ca.pem"}, r"ca is the path of a file, not b'ca.pem' \(bytes\)"),
        ({"insecure": "false"}, "insecure is True or False, not 'false'"),
        ({"mutual": None}, "mutual is True or False, not None"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            Credentials(**said)


def test_the_environment_names_them_and_an_error_names_the_environment(
    authority: Authority, tmp_path: Path
) -> None:
    cert, key = authority.sign("mine")
    said = {"TENURE_CERT": str(cert), "TENURE_KEY": str(key), "TENURE_CA": str(authority.file)}
    found = Credentials.from_environment({**said, "TENURE_MUTUAL_TLS": "1", "TENURE_TOKEN": "t"})
    assert (found.mutual, found.token, found.listens_with_tls) == (True, "t", True)
    assert Credentials.from_environment({}) == Credentials()
    with pytest.raises(ConfigurationError, match="from the environment: TENURE_TOKEN_FILE"):
        Credentials.from_environment({"TENURE_TOKEN_FILE": str(tmp_path / "none")})
    with pytest.raises(ConfigurationError, match="TENURE_INSECURE is 1 or 0, not 'maybe'"):
        Credentials.from_environment({"TENURE_INSECURE": "maybe"})


def test_a_token_is_never_shown_to_a_network_in_the_clear() -> None:
    shown = {"Authorization": "Bearer secret"}
    credentials = Credentials(token="secret")  # noqa: S106
    assert credentials.headers("https://manager.example:7400") == shown
    assert credentials.headers("http://127.0.0.1:7400") == shown
    with pytest.raises(UnsafeAddressError, match=r"in the clear: .* TENURE_INSECURE=1"):
        credentials.headers("http://manager.example:7400")
    insecure = Credentials(token="secret", insecure=True)  # noqa: S106
    assert insecure.headers("http://manager.example:7400") == shown
    assert "secret" not in repr(credentials)


def test_a_token_in_a_file_may_be_replaced(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    credentials = Credentials(token_file=file)
    assert credentials.headers("https://a") == {"Authorization": "Bearer first"}
    file.write_text("second\n")
    assert credentials.headers("https://a") == {"Authorization": "Bearer second"}


def test_a_process_without_a_certificate_listens_without_tls(authority: Authority) -> None:
    assert Credentials().for_listening() is None
    assert Credentials().to("http://a") is None
    mine: Identity = authority.sign("mine")
    assert Credentials(cert=mine.cert, key=mine.key).scheme == "https"
