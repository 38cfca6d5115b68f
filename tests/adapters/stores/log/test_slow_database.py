"""A PostgreSQL server that a slow network holds up delays no call: rows wait in memory and in the journal, and come when it answers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, make_url, select

from bardo.adapters.stores.database.engines import address_of
from bardo.adapters.stores.log.database import inference_log
from bardo.adapters.stores.log.row import LogRow, PendingCall
from bardo.adapters.stores.log.writer import LogWriter
from support.patience import PATIENCE

pytestmark = pytest.mark.each_python


class SlowLink:
    """Listens as a server of PostgreSQL in a folder, and passes bytes on while `flows` is set."""

    def __init__(self, folder: Path, server: str) -> None:
        self.flows = threading.Event()
        self.flows.set()
        self.waiting = threading.Event()
        self._server = server
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen()
        self._sockets: list[socket.socket] = [self._listening]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self.flows.set()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in list(self._threads):
            thread.join(PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._sockets += [client, server]
            for source, target in ((client, server), (server, client)):
                thread = threading.Thread(target=self._pass_on, args=(source, target))
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if not self.flows.is_set():
                    self.waiting.set()
                self.flows.wait(PATIENCE)
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def link(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SlowLink, str]]:
    """Return a link that a test may hold up, and the address of a database over it."""
    address = make_url(postgres_url)
    if "host" not in address.query:
        pytest.skip("the server is not reached over a socket in a folder")
    folder = tmp_path_factory.mktemp("link")
    slow = SlowLink(folder, f"{address.query['host']}/.s.PGSQL.5432")
    try:
        yield slow, address.set(query={"host": str(folder)}).render_as_string(hide_password=False)
    finally:
        slow.close()


def test_a_database_that_does_not_answer_holds_no_call_up_and_loses_no_row(
    link: tuple[SlowLink, str], postgres_url: str, tmp_path: Path
) -> None:
    slow, over_link = link
    log = LogWriter(over_link, flush_seconds=0.01, journal=tmp_path / "journal")
    assert log.journal is not None
    slow.flows.clear()
    # Nothing passes through from here on: a call that waited for the database would wait until the test fails.
    for number in range(300):
        log.journal.begin(PendingCall(f"call-{number}", 1_795_435_200.0))
        log.write(LogRow(request_id=f"call-{number}", started_at=1_795_435_200.0, provider="p", model="m"))
    assert slow.waiting.wait(PATIENCE), "the log has asked the database meanwhile"
    assert log.waiting == 300
    slow.flows.set()
    log.close()
    engine = create_engine(address_of(postgres_url))
    with engine.connect() as connection:
        seen = connection.execute(select(func.count(), func.count(inference_log.c.request_id.distinct()))).one()
    engine.dispose()
    assert tuple(seen) == (300, 300)
