"""A manager, put together: address, journal, machine, server. Enter it, wait, leave it.

The order of starting follows what can go wrong: the address is bound first, since nothing has been
touched when that fails; then the journal is opened, which refuses without changing anything; then
clients are let in. Leaving goes the other way: resign, so that a standby need not wait, tell
clients to look elsewhere, let go of the journal.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Self

from aiohttp import web

from tenure.base.noted import Noted
from tenure.errors import ClosedError
from tenure.journals import Journal, open_journal
from tenure.manager.access.audit import Audit
from tenure.manager.access.gate import Gate
from tenure.manager.access.sign_ins import SignIns
from tenure.manager.access.tokens import TokenFile
from tenure.manager.api import Api
from tenure.manager.config import ManagerSettings
from tenure.manager.engine import ManagerEngine
from tenure.manager.listening import Listening, listen
from tenure.manager.noted import ServiceKind
from tenure.manager.outside_policies import OutsidePolicies, targets_of
from tenure.manager.peer_socket import SILENT_NS
from tenure.manager.rival_watch import RivalWatch
from tenure.manager.server import Server
from tenure.manager.strangers import StrangerNotes
from tenure.observe.events import Observer
from tenure.protocol.lease.answers import CommandFailed, Impossible, NotLeading
from tenure.protocol.lease.leader.events import CreatePool
from tenure.protocol.lease.leader.manager import ManagerConfig
from tenure.protocol.lease.records import AnyRecord, State
from tenure.protocol.log.noted import LogKind
from tenure.runtime.clock import boot_clock
from tenure.transport.http_listener import HttpListener
from tenure.transport.peers import Peers
from tenure.transport.tls import ServerTls
from tenure.wire.lease_records import LEASE_RECORDS

SHUTDOWN_SECONDS = 2.0
"""How long requests that are being answered have."""


class ManagerService:
    """One manager. `async with` starts and stops it; `wait` returns when it cannot go on."""

    def __init__(
        self,
        settings: ManagerSettings,
        observer: Observer | None = None,
        journal: Journal[AnyRecord, State] | None = None,
        add_pages: Callable[[web.Application], None] | None = None,
    ) -> None:
        self.settings = settings
        self.observer = observer or Observer("tenure.manager")
        self.journal_url = settings.journal_url()
        self.url = ""
        self._given_journal = journal
        self._add_pages = add_pages
        self._engine: ManagerEngine | None = None
        self._listener: HttpListener | None = None
        self._policies = OutsidePolicies({})
        self._notes = StrangerNotes(self.observer, boot_clock)
        self._audit = Audit(settings.audit_log, boot_clock)
        self._creating: asyncio.Task[None] | None = None
        self._given_up: set[CreatePool] = set()
        """Pools that broke the leader when they were made: it would never lead for long."""

    @property
    def engine(self) -> ManagerEngine:
        """The machine at work. Raises ClosedError before the start."""
        if self._engine is None:
            raise ClosedError("this manager was not started: enter it with `async with`")
        return self._engine

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen and begin. Raises ConfigurationError or JournalError, leaving nothing behind."""
        tls, gate = self._tls(), self._gate()
        self._policies = OutsidePolicies(targets_of(self.settings.policies))
        listening = listen(self.settings)
        try:
            self._audit.open()
            journal = self._given_journal
            if journal is None:
                journal = await asyncio.to_thread(open_journal, self.journal_url, LEASE_RECORDS)
        except BaseException:
            listening.socket.close()
            self._audit.close()
            raise
        self.url = listening.url
        config = self._config(listening)
        peers = Peers()
        self._engine = ManagerEngine(config, journal, self.observer, peers)
        self._engine.look = RivalWatch(self.settings.others, config.timing, self.observer).look
        self.observer.subscribe(self._on_noted)
        api = Api(
            self._engine,
            peers,
            self.journal_url,
            gate.tokens,
            shows_viewers=self.settings.viewers_see_contents,
        )
        server = Server(
            self._engine,
            peers,
            api,
            gate,
            self._audit,
            self.settings,
            is_loopback=listening.is_loopback,
        )
        if self._add_pages is not None:
            self._add_pages(server.app)
        listener = self._listener = HttpListener(
            server.app,
            refused=partial(self._on_refused, ServiceKind.PEER_REFUSED),
            silent=partial(self._on_refused, ServiceKind.SILENT_PEER),
            limits=self.settings.limits.of_connections,
            ends_seconds=SHUTDOWN_SECONDS,
            silent_ns=SILENT_NS,
            turns=server.turns,
        )
        server.listen_by(listener)
        await listener.prepare()
        if listening.insecure:
            self.observer.note(Noted(ServiceKind.INSECURE, detail=listening.insecure))
        self._engine.start()
        listener.open(listening.socket, tls)

    def _tls(self) -> ssl.SSLContext | None:
        settings = self.settings
        if settings.tls_cert is None or settings.tls_key is None:
            return None
        return ServerTls(settings.tls_cert, settings.tls_key, settings.tls_client_ca).context()

    def _gate(self) -> Gate:
        tokens = None
        if self.settings.tokens is not None:
            tokens = TokenFile(self.settings.tokens)
            tokens.load()
        return Gate(tokens, self._notes, SignIns(boot_clock))

    def _on_refused(self, kind: ServiceKind, peer: str, why: str) -> None:
        self._notes.note(Noted(kind, detail=f"{peer}: {why}"), peer)

    def _config(self, listening: Listening) -> ManagerConfig:
        settings = self.settings
        allowed = settings.create_pools
        return ManagerConfig(
            url=listening.url,
            timing=settings.timing,
            create_pools=listening.is_loopback if allowed is None else allowed,
            first_start=settings.first_start,
            others=bool(settings.others),
            realm=settings.realm,
            policies=self._policies.makers,
            keeps_clusters=self._given_journal is not None or self.journal_url != "memory",
        )

    async def wait(self) -> None:
        """Wait until this manager cannot go on. Raises why: a JournalError, or a bug's error."""
        await asyncio.shield(self.engine.failed)

    async def stop(self) -> None:
        """Resign and close everything. A second call does nothing."""
        if self._listener is None or self._engine is None:
            return
        listener, self._listener = self._listener, None
        if self._creating:
            self._creating.cancel()
        await self._engine.stop()
        self._policies.close()
        await listener.close()
        await self._engine.journal.close()
        self._audit.close()
        if self._engine.failed.done():
            self._engine.failed.exception()  # it was told by `wait`, or nobody wants to know

    # --- pools from the configuration ---

    def _on_noted(self, noted: Noted) -> None:
        if noted.kind is LogKind.LEADING and self.settings.pools:
            if self._creating:
                self._creating.cancel()
            self._creating = asyncio.create_task(self._create_pools())

    async def _create_pools(self) -> None:
        for wanted in self.settings.pools:
            if wanted not in self._given_up:
                await self._create_pool(wanted)

    async def _create_pool(self, wanted: CreatePool) -> None:
        while self.engine.view.leads:
            try:
                answer = await self.engine.ask(wanted)
            except TimeoutError:
                continue
            if isinstance(answer, CommandFailed):
                self._given_up.add(wanted)
            if isinstance(answer, Impossible | CommandFailed):
                self.observer.note(Noted(ServiceKind.POOL_REFUSED, wanted.pool, answer.why))
            if not isinstance(answer, NotLeading):
                return
            await asyncio.sleep(self.settings.timing.beat_ns / 1e9)  # the next beat may prove it
