"""A plugin of pytest: no process that a test starts outlives it, however the test or the run ends.

Processes that a fixture of more than one test starts live until the run ends. What a test has left is killed after it, or at its deadline
before the test is told of that: nothing that the test then closes waits for them. The end of the run names what it had to kill.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import uuid
from collections.abc import Generator
from typing import Any

import pytest

from support.processes import VARIABLE, Identity, Watcher, end, identity_of

_SHARED = "shared"
_REPORTED = "ended_processes"


class EndedProcesses:
    """The hooks, and what they have killed."""

    def __init__(self) -> None:
        self._run = uuid.uuid4().hex
        self._part = _SHARED
        self._has_started = False
        self._watcher = Watcher(self._run)
        self._ended: list[str] = []
        self._known: dict[Identity, str] = {}
        self._initialize = subprocess.Popen.__init__
        self._mark(_SHARED)

    def _mark(self, part: str) -> None:
        self._part = part
        os.environ[VARIABLE] = f"{self._run}/{part}"

    def mark_started(self) -> None:
        """Mark also the programs that are started with an environment of their own, and heed which tests start any."""
        initialize = self._initialize

        def marked(process: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
            self._has_started = True
            if options.get("env") is not None:
                # The environment of another run, in a test of this plugin, keeps its mark.
                options["env"] = {VARIABLE: os.environ.get(VARIABLE, ""), **options["env"]}
            initialize(process, *arguments, **options)
            started = identity_of(process.pid)
            self._known[started] = self._part
            self._watcher.tell(started)

        subprocess.Popen.__init__ = marked  # type: ignore[method-assign, assignment]

    def _end(self, *parts: str) -> None:
        self._ended += end(self._run, root=os.getpid(), known=self._known, parts=parts or None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """End what a test has left."""
        self._mark(item.nodeid)
        self._has_started = False
        result = yield
        if self._has_started:
            self._end(self._part, "")
        self._mark(_SHARED)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Tell the processes of fixtures that several tests use from those of one test."""
        if fixturedef.scope == "function":
            return (yield)
        part = self._part
        self._mark(_SHARED)
        try:
            return (yield)
        finally:
            self._mark(part)

    @pytest.hookimpl(wrapper=True, optionalhook=True)
    def pytest_timeout_set_timer(self, settings: Any) -> Generator[None, object, object]:
        """End the processes of a test at its deadline, and set another for what is then closed."""
        result = yield
        if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
            return result
        fail = signal.getsignal(signal.SIGALRM)

        def at_deadline(number: int, frame: Any) -> None:
            self._end(self._part, "")
            signal.setitimer(signal.ITIMER_REAL, settings.timeout)
            if callable(fail):
                fail(number, frame)

        signal.signal(signal.SIGALRM, at_deadline)
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End what is left, when the fixtures of the whole run are closed, and tell the process that reports."""
        if not hasattr(session.config, "workerinput"):
            return
        self._end()
        session.config.workeroutput[_REPORTED] = self._ended  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker has killed."""
        self._ended += getattr(node, "workeroutput", {}).get(_REPORTED, [])

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what had to be killed."""
        self._end()
        if self._ended:
            terminalreporter.section("processes that tests left, and that were killed")
            for one in self._ended:
                terminalreporter.write_line(one)

    def pytest_unconfigure(self) -> None:
        """End what is left of an interrupted run, and leave this process as it was."""
        self._end()
        subprocess.Popen.__init__ = self._initialize  # type: ignore[method-assign]
        os.environ.pop(VARIABLE, None)
        self._watcher.stop()


def pytest_configure(config: pytest.Config) -> None:
    """Begin before anything starts a process."""
    plugin = EndedProcesses()
    plugin.mark_started()
    config.pluginmanager.register(plugin, "ended_processes")
