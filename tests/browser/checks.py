"""What holds for every page of the panel, as functions that return what is wrong with the one a tab shows."""

from __future__ import annotations

from urllib.parse import urlsplit

from support.chromium import Tab

# Elements that Tab reaches, in their order, as `window.__order`. What Chromium lets scroll is reached too, and is not listed here.
_ORDER = """() => {
  const wanted = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]';
  const groups = new Set();
  window.__order = [...document.querySelectorAll(wanted)].filter((one) => {
    if (one.tabIndex < 0 || one.disabled || !one.checkVisibility({visibilityProperty: true})) return false;
    if (one.type !== 'radio') return true;
    if (groups.has(one.name)) return false;
    groups.add(one.name);
    return true;
  });
  return window.__order.length;
}"""
_FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  let place = window.__order.indexOf(one);
  if (place < 0 && one.type === 'radio') place = window.__order.findIndex((other) => other.name === one.name);
  const scrolls = one.scrollHeight > one.clientHeight || one.scrollWidth > one.clientWidth;
  const ring = (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2) || style.boxShadow !== 'none';
  const seen = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return {place, scrolls, ring, seen, words: (one.outerHTML || '').slice(0, 120), body: one === document.body};
}"""
# An element leaves its place where it stands outside of the nearest element around it that scrolls or cuts, or of the text itself.
_OUTSIDE = """(selector) => [...document.querySelectorAll(selector)].flatMap((text) => {
  const frame = text.getBoundingClientRect();
  const cut = (one) => {
    for (let at = one.parentElement; at && at !== text.parentElement; at = at.parentElement)
      if (getComputedStyle(at).overflowX !== 'visible') return true;
    return false;
  };
  return [...text.querySelectorAll('*')].filter((one) => {
    const box = one.getBoundingClientRect(), style = getComputedStyle(one);
    if (['fixed', 'sticky', 'absolute'].includes(style.position)) return true;
    if (cut(one) || !box.width || !box.height) return false;
    return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
  }).map((one) => one.outerHTML.slice(0, 160));
})"""
_WIDE = """() => [...document.querySelectorAll('body *')]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .slice(0, 5).map((one) => one.outerHTML.slice(0, 160))"""


def faults(tab: Tab, address: str) -> list[str]:
    """Return what a page did that none may do: errors, refusals of its policy, dialogs, requests to others, a script of a text."""
    host = urlsplit(address).netloc
    others = [url for url in tab.seen.requests + tab.seen.visited if urlsplit(url).netloc != host]
    return [
        *tab.seen.errors,
        *tab.violations(),
        *(f"dialog: {said}" for said in tab.seen.dialogs),
        *(f"request to {url}" for url in others if not url.startswith("data:")),
        *(f"window: {url}" for url in tab.seen.windows),
        *(["a script of a text ran"] if tab.run("window.__hit") is not None else []),
    ]


def keyboard_faults(tab: Tab, *, most: int = 25) -> list[str]:
    """Press Tab through the page, and return where the order is not that of the page, or the focus cannot be seen."""
    tab.run("document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute('tabindex')")
    count = tab.run(_ORDER)
    wrong: list[str] = []
    expected = 0
    for _ in range(most):
        if expected == count:
            break
        tab.press("Tab")
        focused = tab.run(_FOCUSED)
        # What scrolls is reached too, and a date is reached in three parts.
        if (focused["place"] < 0 and focused["scrolls"] and not focused["body"]) or focused[
            "place"
        ] == expected - 1 >= 0:
            continue
        if focused["place"] != expected:
            wrong.append(f"element {expected} of {count} comes next, and the focus is on {focused['words']}")
            break
        if not focused["seen"]:
            wrong.append(f"the focus is not in sight: {focused['words']}")
        if not focused["ring"]:
            wrong.append(f"the focus has no ring: {focused['words']}")
        expected += 1
    return wrong


def wide_elements(tab: Tab) -> list[str]:
    """Return what makes the page scroll sideways; nothing where it does not."""
    if tab.run("document.documentElement.scrollWidth <= innerWidth"):
        return []
    return list(tab.run(_WIDE)) or ["the page scrolls sideways"]


def outside(tab: Tab, selector: str) -> list[str]:
    """Return the elements inside of texts that stand outside of their text."""
    return list(tab.run(_OUTSIDE, selector))


def bad_links(tab: Tab, selector: str) -> list[str]:
    """Return the links inside of texts that lead to other than the web or mail, or take the page along."""
    return list(
        tab.run(
            """(selector) => [...document.querySelectorAll(selector)].flatMap((text) => [...text.querySelectorAll('a')])
              .filter((one) => !['http:', 'https:', 'mailto:'].includes(one.protocol)
                || !['noopener', 'noreferrer', 'nofollow'].every((word) => one.relList.contains(word)))
              .map((one) => one.outerHTML.slice(0, 160))""",
            selector,
        )
    )
