"""Two machines in network namespaces over one PostgreSQL: one that is cut off answers its calls, and no row is lost or counted twice."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import make_url

from bardo.adapters.stores.log import LogReader
from support.patience import PATIENCE, read_line

IP = shutil.which("ip")
CALLS = f"""
import json, sys, urllib.request
for _ in range(int(sys.argv[1])):
    body = json.dumps({{"model": "lab/m1", "messages": [{{"role": "user", "content": "Hello"}}]}}).encode()
    asked = urllib.request.Request("http://127.0.0.1:8484/v1/chat/completions", body, {{"content-type": "application/json"}})
    with urllib.request.urlopen(asked, timeout={PATIENCE}) as answer:
        print(answer.headers["x-bardo-request-id"])
"""


def ip(*arguments: str) -> None:
    subprocess.run([str(IP), *arguments], check=True, capture_output=True, timeout=PATIENCE)


class Machine:
    """A namespace of the network with a link to this one. Its gateway and its provider listen on ports of its own."""

    def __init__(self, number: int, folder: Path) -> None:
        self.name = f"bardo{os.getpid()}-{number}"
        self.link = f"b{os.getpid() % 100_000}v{number}"
        base = os.getpid() % 16_000 * 4
        # Of 198.18.0.0/15, which is for tests of networks (RFC 2544): 198.18.X.Y/30 is this end, the next address the machine's.
        self.near, self.far = (f"198.{18 + number}.{base // 256}.{base % 256 + end}" for end in (1, 2))
        self.folder = folder

    def __enter__(self) -> Machine:
        ip("netns", "add", self.name)
        try:
            ip("link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
            ip("addr", "add", f"{self.near}/30", "dev", self.link)
            ip("link", "set", self.link, "up")
            ip("-n", self.name, "addr", "add", f"{self.far}/30", "dev", "eth0")
            for device in ("lo", "eth0"):
                ip("-n", self.name, "link", "set", device, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        ip("netns", "del", self.name)

    def command(self, *arguments: str) -> list[str]:
        return [str(IP), "netns", "exec", self.name, sys.executable, *arguments]

    @contextmanager
    def running(self, *arguments: str, wanted: str) -> Iterator[None]:
        """Run a command of bardo in the machine, from when it says it is ready."""
        process = subprocess.Popen(
            self.command("-m", "bardo", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "XDG_DATA_HOME": str(self.folder)},
        )
        with process:
            try:
                while wanted not in (line := read_line(process.stdout)):
                    assert line, "it ended"
                yield
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)
                process.kill()

    def ask(self, count: int) -> list[str]:
        """Make calls in the machine, and return their ids."""
        done = subprocess.run(
            self.command("-c", CALLS, str(count)), capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return done.stdout.split()


@contextmanager
def forwarded(socket_path: str, machines: list[Machine]) -> Iterator[int]:
    """Forward a port at this end of each link to the database, which listens at a socket in the file system; return the port."""
    loop = asyncio.new_event_loop()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_unix_connection(socket_path)
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    async def serve() -> list[asyncio.Server]:
        first = await asyncio.start_server(accept, machines[0].near, 0)
        port = first.sockets[0].getsockname()[1]
        return [first, *[await asyncio.start_server(accept, one.near, port) for one in machines[1:]]]

    servers = loop.run_until_complete(serve())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def end() -> None:
        for server in servers:
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        yield servers[0].sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    """Return two machines; the test is skipped where this process may make no namespaces."""
    if IP is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("network namespaces need Linux, iproute2 and root")
    with ExitStack() as stack:
        found = []
        for number in range(2):
            (tmp_path / str(number)).mkdir()
            try:
                found.append(stack.enter_context(Machine(number, tmp_path / str(number))))
            except subprocess.CalledProcessError as problem:
                pytest.skip(f"no network namespace can be made: {problem.stderr.decode()}")
        yield found


def rows_of(address: str) -> list[str]:
    with LogReader(address) as reader:
        return [row.request_id for row in reader.recent(1000)]


def test_a_machine_that_is_cut_off_goes_on_and_its_calls_are_counted_once(
    machines: list[Machine], postgres_url: str
) -> None:
    place = make_url(postgres_url)
    folder = str(place.query["host"])
    with ExitStack() as stack:
        port = stack.enter_context(forwarded(next(map(str, Path(folder).glob(".s.PGSQL.*[0-9]"))), machines))
        for machine in machines:
            config = machine.folder / "bardo.toml"
            address = place.set(host=machine.near, port=port, query={}).render_as_string(hide_password=False)
            config.write_text(
                f"[log]\nurl = {json.dumps(address)}\n"
                '[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "http://127.0.0.1:9001/v1"\nmodels = ["m1"]\n'
            )
            stack.enter_context(machine.running("simulate", "vllm", "--any-model", "--port", "9001", wanted="9001"))
            stack.enter_context(machine.running("serve", "--config", str(config), wanted="point an OpenAI SDK"))
        ids = machines[0].ask(3) + machines[1].ask(3)
        ip("link", "set", machines[1].link, "down")
        ids += machines[1].ask(5) + machines[0].ask(3)
        ip("link", "set", machines[1].link, "up")
        ids += machines[1].ask(2)
        end = time.monotonic() + PATIENCE
        while sorted(rows_of(postgres_url)) != sorted(ids):
            assert time.monotonic() < end, (len(rows_of(postgres_url)), len(ids))
            time.sleep(0.2)
        with LogReader(postgres_url) as reader:
            assert sum(group.sums.calls for group in reader.costs()) == len(ids) == len(set(ids))
