"""Copies of the tree, each with an environment of its own, in which faults are planted and tests run; the tree stays as it is."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mutants.faults import Fault

_NOT_INHERITED = ("PYTEST_", "PYTHONDONTWRITEBYTECODE")
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", ".site", ".mutants", ".*_cache", ".hypothesis", "__pycache__", "build", "dist", "node_modules"
)


class Copy:
    """One copy of a tree. At most one run of the tests goes on in it."""

    def __init__(self, tree: Path, folder: Path, *, start: str = "") -> None:
        """Copy `tree` to `folder`, which must be new. `start` is a line that each Python of the copy executes first."""
        self.folder = folder
        self.python = folder / ".venv" / "bin" / "python"
        self.output = folder.with_suffix(".txt")
        self._planted = 0
        self._lock = threading.Lock()
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        # Real replies, which some tests read, lie beside the tree and so not beside its copies.
        self._recordings = os.environ.get("BARDO_RECORDINGS") or str(tree.parent / "shared" / "recordings")
        shutil.copytree(tree, folder, ignore=_LEFT_OUT, symlinks=True)
        repository = tree / ".git"
        if repository.is_dir():
            (folder / ".git").write_text(f"gitdir: {repository}\n", encoding="utf-8")
        elif repository.is_file():
            shutil.copy(repository, folder)
        self._make_environment(start)

    def run(self, words: Sequence[str], environment: Mapping[str, str], seconds: float) -> int | None:
        """Run pytest with `words` and return its exit code, or None where it took longer than `seconds`. No process is left."""
        temporary = self.folder.with_suffix(".tmp")
        command = [str(self.python), "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={temporary}", *words]
        outer = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
        own = {"BARDO_RECORDINGS": self._recordings, "MUTANTS_COPY": str(self.folder)}
        with self.output.open("wb") as output:
            with self._lock:
                if self._closed:
                    raise SystemExit("the run was interrupted")
                process = self._process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env={**outer, **own, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                self.end()

    def close(self) -> None:
        """End the run that goes on, and start none any more."""
        with self._lock:
            self._closed = True
        self.end()

    def end(self) -> None:
        """Kill every process that a run has started, also those in a session of their own."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for _ in range(10):
            left = list(_processes_with(str(self.folder)))
            for number in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(number, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.05)

    @contextlib.contextmanager
    def planted(self, fault: Fault | None) -> Iterator[None]:
        """Have a fault in the source of the copy for a while."""
        if fault is None:
            yield
            return
        file = self.folder / "src" / fault.path
        source, status = file.read_bytes(), file.stat()
        self._planted += 1
        try:
            file.write_bytes(fault.planted(source))
            # Python knows a compiled file by its source's length and time in seconds, and one fault may be as long as another.
            os.utime(file, (status.st_atime, int(status.st_mtime) - 2 * self._planted))
            yield
        finally:
            file.write_bytes(source)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _make_environment(self, start: str) -> None:
        """Make an environment with this environment's packages in which the project is the one of the copy."""
        folder = self.folder / ".venv"
        venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
        packages = sysconfig.get_path("purelib", "venv", vars={"base": str(folder), "platbase": str(folder)})
        here = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
        tools = Path(__file__).resolve().parents[1]
        lines = [str(self.folder / "src"), str(tools), *here, start]
        Path(packages, "mutants.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for program in Path(sysconfig.get_path("scripts")).iterdir():
            place = folder / "bin" / program.name
            if place.exists() or not program.is_file():
                continue
            with program.open("rb") as file:
                first = file.readline(500)
            if first.rstrip() == f"#!{sys.executable}".encode():
                rest = program.read_bytes()[len(first) :]
                place.write_bytes(f"#!{self.python}\n".encode() + rest)
                place.chmod(0o755)
            else:
                place.symlink_to(program)


def _processes_with(text: str) -> Iterator[int]:
    """Yield the processes whose command or environment names `text`, where the system shows them as files."""
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if text.encode() in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes():
                yield int(folder.name)
