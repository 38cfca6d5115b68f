"""Build the documentation site into `.site/html`: the pages of `docs`, and a navigation derived from their folders.

Needs zensical in the environment that runs it; `make docs` sees to that. Diagrams are drawn by a copy of Mermaid that npm fetches. A page
that would load anything of another server fails the build.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / ".site"


class Script(NamedTuple):
    """A script of npm's registry: a package of a fixed version, the path in it, its name on the site, and what is missing without it."""

    package: str
    path: str
    name: str
    without: str


MERMAID = Script("mermaid@12.3.0", "dist/mermaid.min.js", "mermaid.min.js", "diagrams stay text")
SEARCH_SHIM = Script("iframe-worker@1.0.4", "shim/index.js", "iframe-worker.js", "the search needs a server")
_SHIM_ADDRESS = "https://unpkg.com/iframe-worker/shim"

GROUPS: dict[str, tuple[str, ...]] = {
    "Tutorials": ("tutorials",),
    "How-to": ("how-to",),
    "Cookbook": ("cookbook",),
    "Reference": ("reference", "glossary.md"),
    "Explanation": ("explanation", "architecture.md"),
    "Decisions": ("decisions",),
}
"""The groups of the navigation by Diátaxis, and what belongs to each; what is in none stands under More."""
_FRONT = "index.md"
_OTHERS = "More"


def title_of(page: Path) -> str:
    """Return the title of a page: its first heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), page.stem)


def navigation(docs: Path = DOCS) -> dict[str, list[tuple[str, str]]]:
    """Return the pages of each group, by title and path; every page of `docs` but the front page is in exactly one."""
    left = {str(page.relative_to(docs)): page for page in sorted(docs.rglob("*.md"))}
    left.pop(_FRONT, None)
    found: dict[str, list[tuple[str, str]]] = {}
    for group, places in GROUPS.items():
        names = [name for name in left if name in places or name.partition("/")[0] in places]
        found[group] = _listed({name: left.pop(name) for name in names})
    found[_OTHERS] = _listed(left)
    return {group: pages for group, pages in found.items() if pages}


def _listed(pages: dict[str, Path]) -> list[tuple[str, str]]:
    """Return pages by title; a folder's list of pages goes first, and what has a number stays in its order."""
    titles = [(title_of(page), name) for name, page in pages.items()]
    return sorted(titles, key=lambda row: (not row[1].endswith("README.md"), row[0].casefold()))


def configuration(nav: dict[str, list[tuple[str, str]]]) -> str:
    """Return the configuration of the site: the fixed part, with its navigation."""
    groups = [
        f"  {{ {_text(group)} = [{', '.join(f'{{ {_text(title)} = {_text(name)} }}' for title, name in pages)}] }},"
        for group, pages in nav.items()
    ]
    lines = ["nav = [", f'  {{ "bardo" = "{_FRONT}" }},', *groups, "]"]
    fixed = (ROOT / "tools" / "site" / "zensical.toml").read_text(encoding="utf-8")
    return fixed.replace("[project]\n", "[project]\n" + "\n".join(lines) + "\n", 1)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def fetch_script(script: Script, folder: Path) -> Path | None:
    """Return a script of npm's registry, fetched once; None where npm cannot."""
    kept = folder / f"{script.package.replace('@', '-')}.js"
    if kept.exists():
        return kept
    if shutil.which("npm") is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", "--silent", script.package]
    packed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if packed.returncode != 0:
        return None
    archive = folder / packed.stdout.split()[-1]
    with tarfile.open(archive) as held:
        member = held.extractfile(f"package/{script.path}")
        assert member is not None, f"{script.package} has no {script.path}"
        kept.write_bytes(member.read())
    archive.unlink()
    return kept


def build() -> int:
    """Build the site, with every warning an error. Return the exit code."""
    staged = SITE / "docs"
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(DOCS, staged)
    for page in staged.rglob("*.md"):
        page.write_text(without_source_links(page.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copytree(ROOT / "tools" / "site" / "assets", staged / "assets")
    for script in (MERMAID, SEARCH_SHIM):
        found = fetch_script(script, SITE / "npm")
        if found is None:
            print(f"npm is not here, or cannot fetch {script.package}: {script.without}", file=sys.stderr)
        # Without it there is an empty file, so that pages name nothing that is not there.
        (staged / "assets" / script.name).write_bytes(b"" if found is None else found.read_bytes())
    (SITE / "zensical.toml").write_text(configuration(navigation()), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", "zensical.toml"]
    code = subprocess.run(command, cwd=SITE, check=False).returncode
    pages = sorted((SITE / "html").rglob("*.html"))
    for page in pages:
        local = with_own_scripts(page.read_text(encoding="utf-8"), depth=len(page.relative_to(SITE / "html").parts) - 1)
        page.write_text(local, encoding="utf-8")
    foreign = sorted({one for page in pages for one in loaded_from_others(page.read_text(encoding="utf-8"))})
    for one in foreign:
        print(f"pages load {one}", file=sys.stderr)
    return code or (1 if foreign else 0)


def without_source_links(text: str) -> str:
    """Return a page whose links to files of the source are names alone: the site does not have those files."""
    return re.sub(r"\[([^]\n]+)\]\((?:\.\./)+src/[^)\s]+\)", r"\1", text)


def with_own_scripts(html: str, *, depth: int) -> str:
    """Return a page whose search in a folder, without a server, needs no script of another server. `depth`: folders above the page."""
    return html.replace(f'"{_SHIM_ADDRESS}"', f'"{"../" * depth}assets/{SEARCH_SHIM.name}"')


def loaded_from_others(html: str) -> list[str]:
    """Return the addresses of other servers that a page loads something from; links for people are none."""
    loading = re.findall(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)", html)
    return [address for address in loading if not address.startswith("//localhost")]


if __name__ == "__main__":
    sys.exit(build())
