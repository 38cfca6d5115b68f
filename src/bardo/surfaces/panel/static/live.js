"use strict";
// The page of live requests. One stream of events; changes are collected and drawn once for each frame.
(() => {
  const MOST_ROWS = 100, MOST_SHOWN = 20000, NEWS_SECONDS = 8;
  const find = (id) => document.getElementById(id);
  const list = find("calls"), template = find("call"), pause = find("pause");
  const rows = new Map();
  const totals = { running: 0, ended: 0, failed: 0, cost: 0 };
  let source = null, waiting = [], frame = 0, saidLast = "", hasNews = false;

  const dollars = (amount) => {
    if (amount === 0 || Math.abs(amount) >= 1) return "$" + amount.toFixed(2);
    return "$" + amount.toFixed(Math.max(2, 1 - Math.floor(Math.log10(Math.abs(amount)))));
  };
  const seconds = (time) => (time < 60 ? time.toFixed(time < 10 ? 2 : 1) + " s" : Math.floor(time / 60) + "m " + String(Math.floor(time % 60)).padStart(2, "0") + "s");
  // Characters that turn text around, and those that no font shows.
  const clean = (text) => String(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");
  const plural = (number, word) => number.toLocaleString("en") + " " + word + (number === 1 ? "" : "s");

  function makeRow(change) {
    const element = template.content.firstElementChild.cloneNode(true);
    const row = {
      id: change.id, at: change.at, element, started: null, finished: null, length: 0,
      state: element.querySelector(".state"), model: element.querySelector(".model"), how: element.querySelector(".how"),
      numbers: element.querySelector(".numbers"), more: element.querySelector(".more"), hidden: element.querySelector(".hidden-thinking"),
      details: element.querySelector("details"), summary: element.querySelector("summary"), body: element.querySelector(".stream"),
      text: document.createTextNode(""), rendered: false,
    };
    row.body.append(row.text);
    row.more.href = "/panel/requests/" + encodeURIComponent(change.id);
    row.more.setAttribute("aria-label", "Details of request " + change.id);
    row.model.textContent = change.id;
    row.summary.textContent = "Thinking…";
    row.details.addEventListener("toggle", () => { if (row.details.open) render(row); });
    rows.set(change.id, row);
    list.prepend(element);
    totals.running += 1;
    if (rows.size > MOST_ROWS) drop();
    return row;
  }

  function drop() {
    let oldest = null;
    for (const row of rows.values()) { if (row.finished) { oldest = row; break; } }
    oldest = oldest || rows.values().next().value;
    if (!oldest.finished) totals.running -= 1;
    oldest.element.remove();
    rows.delete(oldest.id);
  }

  function start(row, started) {
    row.started = started;
    row.model.textContent = clean((started.provider ? started.provider + "/" : "") + started.model);
    const words = [started.model_asked && ![started.model, started.provider + "/" + started.model].includes(started.model_asked) ? "asked for " + started.model_asked : "",
      started.client_dialect, started.streamed ? "streamed" : "whole", started.cause !== "first" ? started.cause : ""];
    row.how.textContent = clean(words.filter(Boolean).join(" · "));
  }

  function think(row, text) {
    row.details.hidden = false;
    row.length += text.length;
    const atEnd = row.body.scrollHeight - row.body.scrollTop - row.body.clientHeight < 40;
    row.text.appendData(clean(text));
    if (row.text.length > MOST_SHOWN) row.text.deleteData(0, row.text.length - MOST_SHOWN);
    row.summary.textContent = "Thinking… " + plural(row.length, "character");
    if (atEnd) row.body.scrollTop = row.body.scrollHeight;
  }

  function finish(row, finished) {
    const first = !row.finished;
    row.finished = finished;
    // The log has a call once it has ended.
    row.more.hidden = false;
    if (first) {
      totals.running -= 1; totals.ended += 1;
      if (finished.outcome !== "ok") totals.failed += 1;
      totals.cost += finished.cost_usd || 0;
    }
    row.state.textContent = finished.outcome;
    row.state.classList.add(finished.outcome === "ok" ? "ok" : finished.outcome === "cancelled" ? "warn" : "bad");
    // A call that no provider was asked for has the model that the client named.
    const model = finished.model || finished.model_asked;
    if (model) row.model.textContent = clean((finished.provider ? finished.provider + "/" : "") + model);
    if (!row.started) row.how.textContent = clean([finished.client_dialect, finished.provider ? "" : "no provider was called"].filter(Boolean).join(" · "));
    const count = (number) => (number === null ? "–" : number.toLocaleString("en"));
    const words = [seconds(finished.seconds), count(finished.input_tokens) + " in", count(finished.output_tokens) + " out",
      finished.cost_usd === null ? "cost unknown" : dollars(finished.cost_usd),
      finished.attempts > 1 ? finished.attempts + " attempts" : "", finished.error || "",
      finished.degraded.length ? plural(finished.degraded.length, "degradation") : ""];
    row.numbers.textContent = clean(words.filter(Boolean).join(" · "));
    const tokens = finished.reasoning_tokens;
    if (row.length) {
      row.summary.textContent = "Thinking" + (tokens ? " · " + plural(tokens, "token") : " · " + plural(row.length, "character"));
      if (row.details.open) render(row);
    } else if (tokens) {
      const hidden = finished.visibility === "opaque";
      row.hidden.textContent = (hidden ? "Reasoning performed (not visible)" : "Reasoning performed (text not logged)") + " · " + plural(tokens, "token");
      row.hidden.hidden = false;
    }
  }

  // Once a call has ended, its thinking is shown as the server writes it: as Markdown that was made safe there.
  async function render(row) {
    if (row.rendered || !row.finished || !row.length) return;
    row.rendered = true;
    try {
      const answer = await fetch("/panel/live/" + encodeURIComponent(row.id), { credentials: "same-origin" });
      if (!answer.ok) return;
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      row.body.replaceChildren(...made.body.childNodes);
      row.body.classList.remove("stream");
    } catch { row.rendered = false; }
  }

  function apply(change) {
    const row = rows.get(change.id) || makeRow(change);
    if (change.started) start(row, change.started);
    if (change.text) think(row, change.text);
    if (change.finished) finish(row, change.finished);
  }

  function draw() {
    frame = 0;
    const changes = waiting;
    waiting = [];
    changes.forEach(apply);
    for (const name of ["running", "ended", "failed"]) find(name).textContent = totals[name].toLocaleString("en");
    find("cost").textContent = dollars(totals.cost);
    find("empty").hidden = rows.size > 0;
    hasNews = true;
  }

  function queue(changes) {
    waiting.push(...changes);
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function tell(word, state) {
    const place = find("connection");
    place.lastElementChild.textContent = word;
    place.firstElementChild.className = "dot " + state;
  }

  function open() {
    source = new EventSource("/panel/events");
    source.addEventListener("open", () => tell("connected", "on"));
    source.addEventListener("error", () => tell(source.readyState === EventSource.CLOSED ? "disconnected; reload the page" : "connecting…", "off"));
    source.addEventListener("snapshot", (event) => {
      rows.clear(); list.replaceChildren(); waiting = [];
      Object.assign(totals, { running: 0, ended: 0, failed: 0, cost: 0 });
      queue(JSON.parse(event.data));
    });
    source.addEventListener("calls", (event) => queue(JSON.parse(event.data)));
  }

  function close() {
    source.close();
    source = null;
    tell("paused", "");
  }

  pause.addEventListener("click", () => {
    const paused = source !== null;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume" : "Pause";
    if (paused) close(); else open();
  });
  find("fold").addEventListener("click", () => { for (const row of rows.values()) row.details.open = false; });

  // Screen readers are told of changes now and then, and not of each.
  setInterval(() => {
    if (!hasNews) return;
    hasNews = false;
    const words = plural(totals.running, "request") + " running, " + totals.ended.toLocaleString("en") + " ended" + (totals.failed ? ", " + totals.failed.toLocaleString("en") + " failed" : "");
    if (words !== saidLast) find("news").textContent = saidLast = words;
  }, NEWS_SECONDS * 1000);
  setInterval(() => {
    const now = Date.now() / 1000;
    for (const row of rows.values()) if (!row.finished && row.at) row.numbers.textContent = Math.floor(Math.max(0, now - row.at)) + " s";
  }, 1000);
  addEventListener("pagehide", () => { if (source) source.close(); });
  open();
})();
