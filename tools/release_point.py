"""What changed since the last release point: the newest tag `v*`, or the last commit that changed the version where there is no tag."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def revision(root: Path) -> str:
    """Return the commit that is checked out at `root`, empty where there is no repository."""
    return _git(root, "rev-parse", "HEAD", check=False)


def release_point(root: Path) -> str:
    """Return the revision of the last release point of the repository at `root`."""
    tag = _git(root, "describe", "--tags", "--abbrev=0", "--match", "v*", check=False)
    return tag or _git(root, "log", "-1", "--format=%H", "--", "src/bardo/_version.py", check=False)


def changed_files(root: Path, revision: str) -> set[str]:
    """Return the files that changed since `revision`, committed or not, by their paths in the repository at `root`."""
    new = _git(root, "ls-files", "--others", "--exclude-standard").splitlines()
    return {*_git(root, "diff", "--name-only", "--no-renames", revision, "--").splitlines(), *new}


def changed_lines(root: Path, revision: str, folder: str) -> Mapping[str, frozenset[int]]:
    """Return the lines of each Python file below `folder` that were added or changed since `revision`, committed or not."""
    found: dict[str, set[int]] = {}
    path = ""
    for line in _git(root, "diff", "--unified=0", "--no-color", "--no-renames", revision, "--", folder).splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif hunk := _HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.setdefault(path, set()).update(range(first, first + count))
    for path in _git(root, "ls-files", "--others", "--exclude-standard", "--", folder).splitlines():
        found[path] = set(range(1, len((root / path).read_bytes().splitlines()) + 1))
    return {path: frozenset(lines) for path, lines in found.items() if path.endswith(".py") and lines}


def _git(root: Path, *words: str, check: bool = True) -> str:
    if shutil.which("git") is None:
        return ""
    ended = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=check)
    return ended.stdout.strip() if ended.returncode == 0 else ""
