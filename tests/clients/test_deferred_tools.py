"""The tools of real agents and tool servers, deferred: how much smaller a prompt becomes, and whether a search finds the right one.

The lists are those that the programs send and answer with when the test runs: none is kept here. Each task is a search as a model writes
it, put to all tools together, and what of them does it.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.planning.token_counting import estimate_request
from bardo.planning.tool_search import with_tool_search
from bardo.simulators import Script, Turn
from bardo.values.wire import Arrival
from clients.agents import AGENTS, bardo_run
from clients.installed import tool_server
from planning.test_tool_search import BM25, ROWS
from support.any_model import Simulator
from support.gateway import model_of
from surfaces.cli.support import simulated

SERVERS: Mapping[str, tuple[str, ...]] = {
    "mcp-server-filesystem": ("/tmp",),
    "mcp-server-github": (),
    "mcp-server-gitlab": (),
    "mcp-server-slack": (),
    "playwright-mcp": ("--headless",),
    "chrome-devtools-mcp": ("--headless",),
    "notion-mcp-server": (),
}
_KEYS = (
    "GITLAB_PERSONAL_ACCESS_TOKEN",
    "SLACK_BOT_TOKEN",
    "SLACK_TEAM_ID",
    "NOTION_TOKEN",
    "GITHUB_PERSONAL_ACCESS_TOKEN",
)
TASKS: Mapping[str, tuple[str, ...]] = {
    "run a shell command": ("Bash", "exec_command", "run_shell_command", "bash"),
    "fetch the content of a web page": ("WebFetch", "web_fetch", "webfetch"),
    "edit a file by replacing text": ("Edit", "replace", "edit", "edit_file"),
    "list the entries of a directory": ("list_directory", "list_directory_with_sizes", "directory_tree"),
    "size and modification time of a file": ("get_file_info", "list_directory_with_sizes"),
    "rename a file": ("move_file",),
    "read several files at once": ("read_multiple_files", "read_many_files"),
    "open a pull request": ("create_pull_request",),
    "merge a pull request": ("merge_pull_request",),
    "comment on an issue": ("add_issue_comment",),
    "find code in repositories": ("search_code",),
    "new merge request in a project": ("create_merge_request",),
    "make a branch": ("create_branch",),
    "history of commits": ("list_commits",),
    "status checks of a pull request": ("get_pull_request_status",),
    "post a message to a Slack channel": ("slack_post_message",),
    "answer in a thread": ("slack_reply_to_thread",),
    "react to a message with an emoji": ("slack_add_reaction",),
    "messages of a channel": ("slack_get_channel_history",),
    "take a screenshot of the page": ("browser_take_screenshot", "take_screenshot"),
    "click on a button in the browser": ("browser_click", "click"),
    "go to a URL": ("browser_navigate", "navigate_page", "new_page"),
    "fill in several fields of a form": ("browser_fill_form", "fill_form"),
    "errors in the console of the browser": (
        "browser_console_messages",
        "list_console_messages",
        "get_console_message",
    ),
    "upload a file to the page": ("browser_file_upload", "upload_file"),
    "accept the alert dialog": ("browser_handle_dialog", "handle_dialog"),
    "record a performance trace": ("performance_start_trace",),
    "audit accessibility with lighthouse": ("lighthouse_audit",),
    "take a heap snapshot of memory": ("take_heapsnapshot",),
    "choose an option of a dropdown": ("browser_select_option",),
    "create a Notion page": ("API-post-page",),
    "delete a block": ("API-delete-a-block",),
    "query a data source": ("API-query-data-source",),
    "comment on a Notion page": ("API-create-a-comment", "API-retrieve-a-comment"),
    "move a page to another parent": ("API-move-page",),
}


@pytest.mark.nightly
@pytest.mark.timeout(290)
def test_tools_of_ten_programs_are_found_and_cost_a_tenth(tmp_path: Path, record_property: Any) -> None:
    lists = {name: [*tools_of_server(name, args)] for name, args in SERVERS.items()}
    lists |= {name: tools_of_agent(name, tmp_path / name) for name in AGENTS}
    assert len(lists) >= 10
    assert all(lists.values())
    every = {tool["name"]: tool for tools in lists.values() for tool in tools}
    _, plan = with_tool_search(asked([*every.values()], deferred=True), ROWS["deepseek"], "m")
    assert plan is not None
    missed, first, shares = [], 0, []
    for query, wanted in TASKS.items():
        found = [tool.name for tool in plan.found({"query": query})[0]]
        shares.append(share_saved([*every.values()], [every[name] for name in found]))
        first += bool(found) and found[0] in wanted
        if not {*wanted} & {*found}:
            missed.append((query, found))
    told = {
        "tools": {name: len(tools) for name, tools in lists.items()},
        "saved by list, with the five largest loaded": {
            name: share_saved(tools, sorted(tools, key=lambda tool: -len(json.dumps(tool)))[:5])
            for name, tools in (*lists.items(), ("all together", [*every.values()]))
        },
        "saved by task, all together": {"mean": round(fmean(shares), 3), "least": min(shares)},
        "right tool within five": round(1 - len(missed) / len(TASKS), 3),
        "right tool first": round(first / len(TASKS), 3),
    }
    record_property("deferred_tools", json.dumps(told))
    print(json.dumps(told, indent=1), missed)
    assert fmean(shares) > 0.9
    assert len(missed) <= len(TASKS) // 10, missed


def asked(tools: Sequence[dict[str, Any]], *, deferred: bool) -> Any:
    """Return a request of Claude's dialect with these tools, and a search for them where they are deferred."""
    given = [BM25, *({**tool, "defer_loading": True} for tool in tools)] if deferred else [*tools]
    body = {"model": "m", "max_tokens": 9, "tools": given, "messages": [{"role": "user", "content": "Hi"}]}
    return dialect("anthropic_messages").decode_request(json.dumps(body).encode(), Arrival())


def share_saved(tools: Sequence[dict[str, Any]], loaded: Sequence[dict[str, Any]]) -> float:
    """Return by which share a prompt with some of the tools loaded is shorter than with all of them."""
    whole = estimate_request(asked(tools, deferred=False))
    sent, _ = with_tool_search(asked(tools, deferred=True), ROWS["deepseek"], "m")
    return round(1 - (estimate_request(sent) + estimate_request(asked(loaded, deferred=False))) / whole, 3)


def tools_of_agent(name: str, folder: Path) -> list[dict[str, Any]]:
    """Return the tools that an agent offers a model, the most it offers in one request."""
    folder.mkdir()
    with simulated(Simulator("anthropic", script=Script((Turn(text="Hello."),))), folder=folder) as [server]:
        bardo_run(AGENTS[name], model_of("anthropic"), "Say hello.", folder, {"SIMULATED_KEY": "sk-simulated"})
        bodies = [one.body for one in server.requests if one.method == "POST" and isinstance(one.body, dict)]
    listed = max((body.get("tools") or [] for body in bodies), key=len)
    return [
        {key: tool[key] for key in ("name", "description", "input_schema")} for tool in listed if "input_schema" in tool
    ]


def tools_of_server(name: str, arguments: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the tools that a server of the Model Context Protocol lists, as Claude's dialect has them."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **dict.fromkeys(_KEYS, "none")}
    started = [tool_server(name), *arguments]
    with subprocess.Popen(
        started, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def say(method: str, number: int | None = None, **params: Any) -> Any:
            message = {"jsonrpc": "2.0", "method": method, "params": params, **({"id": number} if number else {})}
            print(json.dumps(message), file=server.stdin, flush=True)
            while number is not None:
                heard = json.loads(server.stdout.readline())  # type: ignore[union-attr]
                if heard.get("id") == number:
                    return heard["result"]
            return None

        say(
            "initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "bardo", "version": "1"}
        )
        say("notifications/initialized")
        listed = say("tools/list", 2)["tools"]
        server.kill()
    for tool in listed:
        yield {"name": tool["name"], "description": tool.get("description", ""), "input_schema": tool["inputSchema"]}
