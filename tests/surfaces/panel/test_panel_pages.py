"""What holds for every page and file of the panel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import bardo.surfaces.panel
from bardo.surfaces.panel.views import VIEWS
from support.keyed_gateway import KeyedGateway, keyed_gateway
from support.panel_pages import PanelReader, SeenPage

pytestmark = pytest.mark.each_python

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
PATHS = [view.path.rstrip("/") for view in VIEWS if "GET" in view.methods and "{" not in view.path]
NEEDED = {"/catalog/model": {"model": "claude-sonnet-4-5", "provider": "anthropic"}}
"""What the address of a view has to name."""
PROBLEMS = {
    "/nothing": 404,
    "/requests/req_none": 404,
    "/live/req_none": 404,
    "/static/0/none.js": 404,
    "/sign-out": 405,
}


def headers_are_safe(found: httpx.Response) -> None:
    policy = dict(part.strip().split(" ", 1) for part in found.headers["content-security-policy"].split(";"))
    assert policy == POLICY
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["x-frame-options"] == "DENY"
    assert found.headers["referrer-policy"] == "same-origin"
    assert "access-control-allow-origin" not in found.headers


@pytest.mark.parametrize("path", PATHS)
def test_each_page_is_made_and_guarded_and_has_no_script_of_its_own(operator: PanelReader, path: str) -> None:
    found = operator.get(path, **NEEDED.get(path, {}))
    assert found.status_code == 200, found.text
    headers_are_safe(found)
    assert found.headers["cache-control"] == "no-store"
    if found.headers["content-type"].startswith("text/html"):
        assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|javascript:", found.text, re.IGNORECASE)
        page = SeenPage(found)
        assert page.unlabelled() == []
        assert page.tags.count("h1") == 1
        assert {"main", "header", "nav"} <= set(page.tags)


@pytest.mark.parametrize(("path", "status"), PROBLEMS.items())
def test_a_problem_is_a_page_too(operator: PanelReader, path: str, status: int) -> None:
    found = operator.get(path)
    assert (found.status_code, found.headers["content-type"]) == (status, "text/html; charset=utf-8")
    headers_are_safe(found)
    assert 'id="main"' in found.text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused_with_a_page(operator: PanelReader, method: str) -> None:
    found = operator.client.request(method, "/panel/requests")
    assert found.status_code == 405
    headers_are_safe(found)


def test_a_head_has_the_headers_of_the_page(operator: PanelReader) -> None:
    found = operator.client.head("/panel/requests")
    assert (found.status_code, found.content) == (200, b"")
    headers_are_safe(found)


def files_of(reader: PanelReader) -> set[str]:
    return set(re.findall(r'(?:src|href)="(/panel/static/[^"]+)"', reader.get("").text))


def test_files_are_kept_for_good_by_their_content(anybody: PanelReader) -> None:
    files = files_of(anybody)
    assert {Path(file).name for file in files} >= {"panel.css", "panel.js", "icon.svg"}
    for file in files:
        found = anybody.client.get(file)
        assert found.status_code == 200
        headers_are_safe(found)
        assert found.headers["cache-control"] == "public, max-age=31536000, immutable"
        again = anybody.client.get(file, headers={"if-none-match": found.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_a_file_at_an_older_address_is_not_kept(anybody: PanelReader) -> None:
    found = anybody.client.get("/panel/static/0000/panel.css")
    assert (found.status_code, found.headers["cache-control"]) == (200, "no-cache")


@pytest.mark.parametrize("path", ["/panel/static/../pages.py", "/panel/static/x/..%2Fpages.py", "/panel/static/"])
def test_no_other_file_is_given(anybody: PanelReader, path: str) -> None:
    assert anybody.client.get(path).status_code in (303, 404)


def test_all_files_together_are_small() -> None:
    folder = Path(bardo.surfaces.panel.__file__).parent
    files = [*(folder / "static").iterdir(), *(folder / "templates").iterdir()]
    assert sum(file.stat().st_size for file in files) <= 300 * 1024


def test_the_panel_is_loaded_when_it_is_asked_for() -> None:
    probe = """
import sys
import bardo.surfaces.gateway.main, bardo.surfaces.cli
print(*[name for name in ("jinja2", "markdown_it", "pygments", "bardo.surfaces.panel") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


def test_a_gateway_may_have_no_panel(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [], toml="[gateway]\npanel = false\n", first_key=False) as running:
        found = httpx.get(f"{running.address}/panel")
        assert found.status_code == 404
        assert "panel = true" in found.json()["error"]["message"]


def test_a_gateway_without_a_log_says_so(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [], toml="[log]\nenabled = false\n", first_key=False) as running:
        assert httpx.get(f"{running.address}/panel").status_code == 200
        found = httpx.get(f"{running.address}/panel/requests")
        assert found.status_code == 400
        assert "keeps no log" in found.text


def test_the_page_of_live_requests_says_where_no_thinking_is_kept(tmp_path: Path, keyless: KeyedGateway) -> None:
    says = "this gateway does not log content"
    with keyed_gateway(tmp_path, [], first_key=False) as running:
        assert says in httpx.get(f"{running.address}/panel").text
    assert says not in httpx.get(f"{keyless.address}/panel").text
