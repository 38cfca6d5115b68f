"""What an app sees of its clients, and how servers start and stop."""

from __future__ import annotations

import asyncio
import gc
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bardo.adapters.loop_watchdog import STANDSTILL
from bardo.server import shutdown as graceful_shutdown
from bardo.server.reply import Application, Message, Receive, Scope, Send
from bardo.server.serving import BackgroundServer, Lifespan, StartUpFailed, load_factory, serve
from bardo.server.shutdown import GracefulShutdown
from bardo.values.errors import ConfigError
from support.patience import PATIENCE, read_line

pytestmark = pytest.mark.each_python

Answer = Callable[[Receive, Send, "queue.Queue[object]"], Awaitable[None]]


def app_of(answer: Answer, seen: queue.Queue[object]) -> Application:
    """An app that reads its request whole, then does what `answer` says; its life is told to `seen`."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                seen.put(message["type"])
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        while (await receive()).get("more_body"):
            pass
        await answer(receive, send, seen)

    return app


@contextmanager
def serving(answer: Answer, grace: float = PATIENCE) -> Iterator[tuple[BackgroundServer, queue.Queue[object]]]:
    seen: queue.Queue[object] = queue.Queue()
    with BackgroundServer(app_of(answer, seen), grace=grace) as server:
        assert seen.get(timeout=PATIENCE) == "lifespan.startup"
        yield server, seen


def asking(address: str) -> socket.socket:
    """Open a connection to `address` and send one request."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    client = socket.create_connection((host, int(port)), timeout=PATIENCE)
    client.sendall(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
    return client


def rest(client: socket.socket) -> bytes:
    """Read what comes to the end of the connection."""
    pieces = []
    while piece := client.recv(1 << 20):
        pieces.append(piece)
    client.close()
    return b"".join(pieces)


def start() -> Message:
    return {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}


def body(data: bytes, *, last: bool = False) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": not last}


async def hello(receive: Receive, send: Send, seen: queue.Queue[object]) -> None:
    await send(start())
    await send(body(b"hello", last=True))


def test_an_app_is_served_while_the_block_runs_and_its_lifespan_with_it() -> None:
    with serving(hello) as (server, seen):
        assert b"hello" in rest(asking(server.address))
    assert seen.get_nowait() == "lifespan.shutdown"
    with pytest.raises(OSError, match="refused"):
        asking(server.address)


def test_a_client_that_leaves_before_the_reply_is_a_disconnect() -> None:
    async def answer(receive: Receive, send: Send, seen: queue.Queue[object]) -> None:
        seen.put("asked")
        seen.put((await receive())["type"])

    with serving(answer) as (server, seen):
        client = asking(server.address)
        assert seen.get(timeout=PATIENCE) == "asked"
        client.close()
        assert seen.get(timeout=PATIENCE) == "http.disconnect"


def test_a_client_that_leaves_in_mid_stream_is_a_disconnect_and_sending_goes_nowhere() -> None:
    async def answer(receive: Receive, send: Send, seen: queue.Queue[object]) -> None:
        gone = asyncio.ensure_future(receive())
        await send(start())
        await send(body(b"one"))
        seen.put((await gone)["type"])
        for _ in range(3):
            await send(body(b"two"))
        seen.put("nothing raised")

    with serving(answer) as (server, seen):
        client = asking(server.address)
        assert b"200" in client.recv(1000)
        client.close()
        assert seen.get(timeout=PATIENCE) == "http.disconnect"
        assert seen.get(timeout=PATIENCE) == "nothing raised"


def test_a_slow_reader_slows_the_app_down() -> None:
    pieces, piece = 1024, b"x" * 65536
    sent: list[int] = []

    async def answer(receive: Receive, send: Send, seen: queue.Queue[object]) -> None:
        loop = asyncio.get_running_loop()
        await send(start())
        for number in range(pieces):
            pause = loop.call_later(0.3, seen.put, "paused")
            await send(body(piece))
            pause.cancel()
            sent.append(number)
        await send(body(b"", last=True))

    with serving(answer) as (server, seen):
        client = asking(server.address)
        assert seen.get(timeout=PATIENCE) == "paused"
        assert len(sent) < pieces / 2
        assert len(rest(client)) > pieces * len(piece)
        assert len(sent) == pieces


def test_a_stream_may_end_within_its_grace_while_the_server_stops() -> None:
    leaving = threading.Event()

    async def answer(receive: Receive, send: Send, seen: queue.Queue[object]) -> None:
        await send(start())
        await send(body(b"begin "))
        await asyncio.to_thread(leaving.wait, PATIENCE)
        await send(body(b"end", last=True))

    with serving(answer) as (server, seen):
        client = asking(server.address)
        first = client.recv(1000)
        # The block is left before the stream ends: stopping starts first, then the app goes on.
        threading.Timer(0.1, leaving.set).start()
    assert b"end" in first + rest(client)
    assert seen.get_nowait() == "lifespan.shutdown"


def test_a_request_that_outlives_the_grace_is_cancelled_and_its_connection_closed() -> None:
    async def answer(receive: Receive, send: Send, seen: queue.Queue[object]) -> None:
        await send(start())
        await send(body(b"begin "))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await send(body(b"goodbye"))
            raise

    with serving(answer, grace=0.05) as (server, seen):
        client = asking(server.address)
        first = client.recv(1000)
    whole = first + rest(client)
    assert b"goodbye" in whole
    assert not whole.endswith(b"0\r\n\r\n"), "a reply cut short must not look complete"
    assert seen.get_nowait() == "lifespan.shutdown"


SERVED_OFTEN = """
import os, urllib.request
from bardo.server.serving import BackgroundServer

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": kind + ".complete"})
            if kind == "lifespan.shutdown":
                return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})

def open_files_after(rounds):
    for _ in range(rounds):
        with BackgroundServer(app) as server, urllib.request.urlopen(server.address) as answer:
            assert answer.read() == b"hello"
    return len(os.listdir("/proc/self/fd"))

few = open_files_after(2)
print(open_files_after(20) - few)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts files the way Linux shows them")
def test_a_server_leaves_no_file_open() -> None:
    # In a process of its own: other tests, and what they have left, open and close files as well.
    done = subprocess.run([sys.executable, "-c", SERVED_OFTEN], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10, "twenty servers leave no file each"


def test_a_start_up_that_fails_is_raised_where_the_server_was_asked_for() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        raise ConfigError("no providers")

    with pytest.raises(ConfigError, match="no providers"), BackgroundServer(app):
        raise AssertionError("the block must not run")


def test_an_app_that_knows_no_lifespan_is_served_all_the_same() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await send(start())
        await send(body(b"hello", last=True))

    with BackgroundServer(app) as server:
        assert b"hello" in rest(asking(server.address))


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def test_a_port_in_use_is_told_before_anything_starts(taken_port: int) -> None:
    with pytest.raises(ConfigError, match=f"port {taken_port} on 127.0.0.1 is already in use") as caught:
        serve("bardo.server.serving:serve", port=taken_port)
    assert caught.value.hint == "stop what listens there, or choose another port"


def test_a_background_server_tells_a_port_in_use_too(taken_port: int) -> None:
    server = BackgroundServer(app_of(hello, queue.Queue()), port=taken_port)
    with pytest.raises(ConfigError, match="already in use"):
        server.__enter__()


@pytest.mark.parametrize("host", ["nobody.invalid", "192.0.2.1"])
def test_an_address_that_is_not_here_is_a_matter_of_configuration(host: str) -> None:
    with pytest.raises(ConfigError, match=host):
        serve("bardo.server.serving:serve", host=host, port=0)


@pytest.mark.parametrize("path", ["no.such.module:app", "bardo.server.serving:missing", "nonsense", ""])
def test_a_path_that_names_no_app_is_a_matter_of_configuration(path: str) -> None:
    with pytest.raises(ConfigError, match="does not name an app"):
        load_factory(path)


SERVED = """
import asyncio, gc, os, sys, time
from bardo.adapters import loop_watchdog
from bardo.adapters.loop_watchdog import name_task
loop_watchdog.LoopWatchdog.__init__.__kwdefaults__.update(
    notice_seconds=float(os.environ.get("NOTICE", "2")), end_seconds=float(os.environ.get("END", "20")))

def say(word):
    os.write(1, word.encode() + b"\\n")  # In one piece: workers share this pipe.

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            if os.environ.get("FAIL"):
                raise RuntimeError("no providers")
            say(kind)
            if kind == "lifespan.shutdown" and os.environ.get("TELL_COLLECTION"):
                say(f"{gc.get_threshold()[0]} {gc.get_freeze_count() > 0} {sys.getswitchinterval()}")
            if kind == os.environ.get("STAYS_AT"):
                if os.environ["STAYS"] == "in a thread":
                    asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)
                else:
                    await asyncio.sleep(3600)
            await send({"type": kind + ".complete"})
            if kind == "lifespan.shutdown":
                return
    while (await receive()).get("more_body"):
        pass
    if os.environ.get("STANDS"):
        name_task("req_that_stands")
        exec(os.environ["STANDS"])
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"pid %d " % os.getpid(), "more_body": True})
    try:
        await asyncio.sleep(float(os.environ.get("LASTS", "0")))
    except asyncio.CancelledError:
        say("cancelled")
        raise
    await send({"type": "http.response.body", "body": b"end"})

def create():
    return app
"""


class Process:
    """`serve` in a process of its own, as the command line runs it."""

    def __init__(self, folder: Path, arguments: str, environment: dict[str, str]) -> None:
        (folder / "served.py").write_text(SERVED)
        code = f"from bardo.server.serving import serve; serve('served:create', port=0, announce=print, {arguments})"
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", code],
            env={**os.environ, "PYTHONPATH": str(folder), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.said = ""
        # What the app says at its start comes first; where it cannot start, no address comes.
        self.address = ""
        while environment.get("STAYS_AT") != "lifespan.startup" and (line := read_line(self.process.stdout)):
            if line.startswith("http"):
                self.address = line.strip()
                break
            self.said += line

    def ask(self) -> socket.socket:
        """Send a request as soon as somebody listens."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return asking(self.address)
            except ConnectionRefusedError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.01)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> tuple[int, str, str]:
        """Return exit code, output and errors."""
        output, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, self.said + output, errors


@contextmanager
def process_serving(folder: Path, arguments: str = "", **environment: str) -> Iterator[Process]:
    process = Process(folder, arguments, environment)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.process.pid, signal.SIGKILL)
        process.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_ends_an_open_stream_before_it_stops(tmp_path: Path, number: signal.Signals) -> None:
    with process_serving(tmp_path, "grace=10", LASTS="0.5") as process:
        client = process.ask()
        first = client.recv(1000)
        code, output, errors = process.stop(number)
        assert b"end" in first + rest(client)
    assert (code, output.split(), errors) == (0, ["lifespan.startup", "lifespan.shutdown"], "")


def test_serve_cancels_what_outlives_the_grace(tmp_path: Path) -> None:
    with process_serving(tmp_path, "grace=0.1", LASTS="60") as process:
        client = process.ask()
        assert client.recv(1000)
        code, output, _ = process.stop()
        assert b"end" not in rest(client)
    assert (code, output.split()) == (0, ["lifespan.startup", "cancelled", "lifespan.shutdown"])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("first", "second"), [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)])
def test_a_second_signal_ends_open_requests_at_once(tmp_path: Path, workers: int, first: int, second: int) -> None:
    with process_serving(tmp_path, f"grace=3600, workers={workers}", LASTS="3600") as process:
        client = process.ask()
        assert client.recv(1000)
        process.process.send_signal(first)
        assert "a second Ctrl-C or SIGTERM" in read_line(process.process.stderr)
        process.process.send_signal(second)
        code, output, _ = process.ended()
        assert b"end" not in rest(client)
        wait_until_gone(process)
    assert (code, output.split().count("cancelled"), output.split().count("lifespan.shutdown")) == (0, 1, workers)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stays", ["in its shutdown", "in a thread"])
def test_a_second_signal_ends_what_does_not_end_by_itself(tmp_path: Path, workers: int, stays: str) -> None:
    environment = {"STAYS_AT": "lifespan.shutdown", "STAYS": stays}
    with process_serving(tmp_path, f"grace=3600, workers={workers}", **environment) as process:
        rest(process.ask())
        process.process.send_signal(signal.SIGTERM)
        while "lifespan.shutdown" not in read_line(process.process.stdout):
            pass
        send_again(process, signal.SIGINT)
        code, _, _ = process.ended()
        wait_until_gone(process)
    # A signal that comes while Python itself ends is the operating system's to act on.
    assert code in (128 + signal.SIGINT, -signal.SIGINT, 0)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_start_that_does_not_end_is_ended_by_a_second_signal(tmp_path: Path, workers: int) -> None:
    environment = {"STAYS_AT": "lifespan.startup", "STAYS": "in its start"}
    with process_serving(tmp_path, f"grace=3600, workers={workers}", **environment) as process:
        assert "lifespan.startup" in read_line(process.process.stdout)
        process.process.send_signal(signal.SIGTERM)
        send_again(process, signal.SIGTERM)
        process.ended()
        wait_until_gone(process)


def test_signals_that_come_together_are_one_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5.0
    monkeypatch.setattr("bardo.server.shutdown.time.monotonic", lambda: now)
    wishes = graceful_shutdown.StopSignals()
    assert (wishes.note(), wishes.note()) == (1, 1)
    now += 1
    assert (wishes.note(), wishes.note()) == (2, 2)


def test_a_signal_to_the_whole_group_of_processes_gives_open_requests_their_time(tmp_path: Path) -> None:
    with process_serving(tmp_path, "grace=3600, workers=2", LASTS="1.5") as process:
        client = process.ask()
        first = client.recv(1000)
        os.killpg(process.process.pid, signal.SIGINT)
        assert b"end" in first + rest(client)
        assert process.ended()[0] == 0


def wait_until_gone(process: Process) -> None:
    """Wait until no process of its group is left."""
    until = time.monotonic() + PATIENCE
    with suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(process.process.pid, 0)
            time.sleep(0.02)
        raise AssertionError("a process is left")


def send_again(process: Process, number: int) -> None:
    """Send another signal, when it is no repetition of the first."""
    time.sleep(2 * graceful_shutdown._SAME_WISH_SECONDS)
    process.process.send_signal(number)


def test_serve_runs_as_many_workers_as_asked(tmp_path: Path) -> None:
    workers: set[bytes] = set()
    until = time.monotonic() + PATIENCE
    with process_serving(tmp_path, "workers=2") as process:
        while len(workers) < 2 and time.monotonic() < until:
            workers.add(rest(process.ask()).split(b"pid ")[1].split()[0])
        code, output, _ = process.stop()
    assert len(workers) == 2
    assert (code, output.split().count("lifespan.shutdown")) == (0, 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_process_that_only_serves_collects_less_garbage(tmp_path: Path, workers: int) -> None:
    with process_serving(tmp_path, f"workers={workers}", TELL_COLLECTION="1") as process:
        answered: set[bytes] = set()
        until = time.monotonic() + PATIENCE
        while len(answered) < workers:
            assert time.monotonic() < until, "not every worker answers"
            answered.add(rest(process.ask()).partition(b"pid ")[2].split()[0])
        _, output, _ = process.stop()
    told = [line for line in output.splitlines() if not line.startswith("lifespan")]
    assert told == ["10000 True 0.0005"] * workers


def test_a_server_in_the_background_leaves_the_collector_of_its_process_alone() -> None:
    thresholds, frozen, interval = gc.get_threshold(), gc.get_freeze_count(), sys.getswitchinterval()
    with BackgroundServer(app_of(hello, queue.Queue())):
        assert gc.get_threshold() == thresholds
        assert sys.getswitchinterval() == interval
        assert gc.get_freeze_count() <= frozen  # Frozen objects still die when nobody refers to them.


def test_serve_ends_with_an_error_where_the_app_cannot_start(tmp_path: Path) -> None:
    with process_serving(tmp_path, FAIL="1") as process:
        code, _, errors = process.ended()
    assert code == 1
    assert "start-up failed: no providers" in errors


def test_a_request_that_has_not_begun_is_cancelled_once_it_could_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graceful_shutdown, "CANCELLED_SECONDS", 0.05)
    ends: list[str] = []

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            ends.append(scope["path"])
            raise

    async def stop() -> None:
        app = GracefulShutdown(answer, grace=PATIENCE)

        def ask(path: str) -> asyncio.Task[None]:
            task = asyncio.get_running_loop().create_task(_run(app, path))
            app.limits.tasks.add(task)
            return task

        begun = ask("begun")
        await asyncio.sleep(0)
        fresh = ask("fresh")
        app.end()
        app.end_now()
        await asyncio.wait((begun,))
        assert ends == ["begun"]
        await asyncio.wait((fresh,))
        assert ends == ["begun", "fresh"]

    asyncio.run(stop())


async def _run(app: Application, path: str) -> None:
    async def nothing(*_: object) -> Message:
        return {}

    await app({"type": "http", "path": path}, nothing, nothing)  # type: ignore[arg-type]


IN_PYTHON = "while True: pass"
IN_A_CALL = "import time; time.sleep(3600)"
# It never comes back to the interpreter, and lets no other thread run.
IN_C = "import re; re.match('(?:a+)+c', 'a' * 100 + 'd')"


def quick(**more: str) -> dict[str, str]:
    """Return what lets a standstill be noticed at once."""
    return {"NOTICE": "0.1", **more}


@pytest.mark.parametrize("how", [IN_PYTHON, IN_A_CALL])
def test_a_loop_that_stands_says_where_and_for_which_request_and_ends(tmp_path: Path, how: str) -> None:
    with process_serving(tmp_path, **quick(END="1", STANDS=how)) as process, process.ask():
        code, _, errors = process.ended()
    assert code == STANDSTILL
    assert "the event loop stands for" in errors
    assert "in req_that_stands" in errors
    assert f"{tmp_path}/served.py" in errors
    assert "the process ends" in errors


def test_a_loop_that_stands_outside_of_the_interpreter_says_where_and_ends_too(tmp_path: Path) -> None:
    with process_serving(tmp_path, **quick(END="1", STANDS=IN_C)) as process, process.ask():
        code, _, errors = process.ended()
    assert code == -signal.SIGPROF
    assert f"{tmp_path}/served.py" in errors


def test_a_worker_that_stands_is_replaced(tmp_path: Path) -> None:
    once = (
        f"import pathlib; p = pathlib.Path({str(tmp_path / 'stood')!r}); p.exists() or (p.touch(), exec({IN_PYTHON!r}))"
    )
    with process_serving(tmp_path, "workers=1 + 1", **quick(END="1", STANDS=once)) as process:
        with process.ask():
            started = process.said.count("lifespan.startup")
            while started < 3:
                started += read_line(process.process.stdout).startswith("lifespan.startup")
        assert started == 3
        assert b"pid" in rest(process.ask())
        code, _, errors = process.stop()
    assert code == 0
    assert "the process ends" in errors


@pytest.mark.parametrize("how", [IN_PYTHON, IN_A_CALL])
def test_a_signal_ends_a_process_whose_loop_stands(tmp_path: Path, how: str) -> None:
    with (
        process_serving(
            tmp_path, "grace=1", **quick(END="3600", STANDS=f"print('stands', flush=True)\n{how}")
        ) as process,
        process.ask(),
    ):
        while read_line(process.process.stdout).strip() != "stands":
            pass
        code, _, _ = process.stop()
    assert code == STANDSTILL


def test_a_loop_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    with process_serving(tmp_path, "grace=10", **quick(LASTS="2", STANDS="import time; time.sleep(1.2)")) as process:
        client = process.ask()
        assert b"end" in rest(client)
        code, _, errors = process.stop()
    assert code == 0
    assert "goes on after it stood" in errors


def lifespan_of(*answers: str) -> Application:
    """An application that answers each message of its lifespan so, fails at `raises`, and ends at the last."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for answer in answers:
            message = await receive()
            if answer == "raises":
                raise ValueError("wrong")
            if answer:
                await send({"type": f"{message['type']}.{answer}", "message": "told why"})

    return app


@pytest.mark.parametrize(
    ("answers", "starts", "logged"),
    [
        (("complete", "complete"), True, []),
        (("complete",), True, []),
        (("failed",), False, ["told why"]),
        (("",), False, ["the application did not start"]),
        (("raises",), False, ["the application failed in its lifespan", "the application did not start"]),
        (("complete", "failed"), True, ["told why"]),
        (("complete", "raises"), True, ["the application failed in its lifespan", "the application did not end"]),
    ],
    ids=["in order", "ends early", "fails", "is silent", "raises", "fails to end", "raises at its end"],
)
def test_an_application_is_started_and_ended(
    answers: tuple[str, ...], starts: bool, logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def live() -> bool:
        lifespan = Lifespan(lifespan_of(*answers))
        try:
            await lifespan.start()
        except StartUpFailed:
            return False
        await asyncio.sleep(0)
        await lifespan.stop()
        return True

    with caplog.at_level("ERROR", "bardo.server"):
        assert asyncio.run(live()) == starts
    messages = [record.message for record in caplog.records]
    assert [told.startswith(wanted) for told, wanted in zip(messages, logged, strict=True)] == [True] * len(logged)
