"""Looks at the built site with headless Chromium: what it requests, what it shows, how it fits a phone, what search finds.

``python -m docs.browser FOLDER [PAGE ...]`` prints what is wrong; where Playwright or a Chromium is missing,
it says so and ends with 0. Playwright drives the Chromium that is installed, and downloads none.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import importlib.util
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60
"""For one page to load, or one question about it to be answered."""
DESKTOP, PHONE = (1280, 900), (390, 844)
QUERIES = {
    **dict.fromkeys(("propensity", "PSP@k"), ("notebooks/glossary", "docs/psp")),
    **dict.fromkeys(("calibration@k", "ECE"), ("notebooks/glossary", "docs/sigmoid_scores")),
    **{"macro-F1": ("docs/macro_f1",), "missing labels": ("docs/missing_labels",)},
    **{"ICD coding": ("docs/evaluate",), "Annif": ("docs/formats",)},
}
"""What readers search for -> pages of which one has to be among the first three."""

# Once formulas are set and pictures are there (lazy ones are asked for now), what is wrong on the page.
_LOOK = """
(async () => {
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  const faults = [];
  const pictures = Array.from(document.querySelectorAll("article img"));
  for (const img of pictures) img.loading = "eager";
  await Promise.all(pictures.map((img) => img.decode().catch(() => 0)));
  for (const img of pictures)
    if (!img.naturalWidth ||  // icons may be small or wait for a click
        (img.naturalWidth > 50 && !img.closest("details:not([open])") && img.getBoundingClientRect().width < 20))
      faults.push("picture not shown: " + img.getAttribute("src"));
  for (const formula of document.querySelectorAll("article .math"))
    if (!formula.querySelector("mjx-container")) faults.push("formula not set: " + formula.textContent.slice(0, 60));
  for (const error of document.querySelectorAll("mjx-merror, [data-mjx-error]"))
    faults.push("formula with an error: " + error.textContent.slice(0, 60));
  return faults;
})()
"""
# Not window.innerWidth: a phone widens its window to what is in it.
_WIDE = """
(() => {
  const page = document.documentElement;
  if (page.scrollWidth <= WINDOW) return [];
  const wide = Array.from(document.querySelectorAll("article *, main *")).find(
    (e) => e.getBoundingClientRect().right > WINDOW + 1 &&
      !e.closest(".scroll, .cell_output, .math, pre, details:not([open])"));
  return [`${page.scrollWidth} px wide in a window of WINDOW: ${wide ? wide.tagName + "." + wide.className : "?"}`];
})()
"""
_FOUND = """
(async () => {
  for (let i = 0; i < 100; i++) {
    const links = [...document.querySelectorAll("#search-results li a")];
    if (links.length) return links.slice(0, 3).map((link) => link.getAttribute("href"));
    await new Promise((done) => setTimeout(done, 100));
  }
  return [];
})()
"""


def find() -> str | None:
    """The browser's program, or None where there is none or nothing to drive it."""
    if importlib.util.find_spec("playwright") is None:
        return None
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """Headless Chromium with one page: ``with Browser(program) as browser: ...``."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._faults: list[str] = []
        self._home = ""

    def __enter__(self) -> Browser:
        from playwright.sync_api import sync_playwright

        flags = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        with contextlib.ExitStack() as stack:
            chromium = stack.enter_context(sync_playwright()).chromium
            browser = chromium.launch(executable_path=self._program, args=flags)
            stack.callback(browser.close)
            self._page = browser.new_page()
            self._stack = stack.pop_all()
        self._page.set_default_timeout(1000 * SECONDS)
        self._page.on("request", self._requested)
        self._page.on("requestfailed", self._failed)
        self._page.on("response", self._answered)
        self._page.on("pageerror", lambda error: self._faults.append(f"script error: {error.name}: {error.message}"))
        self._page.on("console", self._told)
        return self

    def __exit__(self, *_) -> None:
        self._stack.close()

    def _requested(self, request) -> None:
        if not request.url.startswith((self._home, "data:", "blob:")):
            self._faults.append(f"request to elsewhere: {request.url}")

    def _failed(self, request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page itself wants it no more
            self._faults.append(f"request failed: {request.url} ({request.failure})")

    def _answered(self, response) -> None:
        if response.status >= 400:
            self._faults.append(f"request failed: {response.url} ({response.status})")

    def _told(self, message) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:  # requests are looked at
            self._faults.append(f"error in the console: {message.text}")

    def size(self, width: int, height: int) -> None:
        """The window from here on; a narrow one is a phone's."""
        self._page.set_viewport_size({"width": width, "height": height})

    def open(self, url: str, home: str = "") -> None:
        """Go to ``url`` and wait until it has loaded; what is asked for elsewhere than under ``home`` is a fault."""
        self._faults, self._home = [], home
        self._page.goto(url)

    def value(self, script: str) -> Any:
        """What ``script`` comes to on the page, a promise when it is kept; Playwright's Error if it breaks or is late."""
        late = f"new Promise((_, no) => setTimeout(() => no(Error('no answer within {SECONDS} s')), {1000 * SECONDS}))"
        return self._page.evaluate(f"Promise.race([{script.strip().removesuffix(';')}, {late}])")

    def faults(self) -> list[str]:
        """What the last page asked for elsewhere, what did not come, what its scripts broke on."""
        return list(self._faults)

    def screenshot(self, path: Path) -> None:
        """What the window shows, as PNG."""
        self._page.screenshot(path=path)


def check(folder: Path, browser: Browser, pages: list[str] | None = None) -> list[str]:
    """Look at every page; and what search finds, where the site has a page for it.

    Parameters
    ----------
    folder : Path
        Of the built site.
    browser : Browser
    pages : list of str, optional
        Names below ``folder``; all by default.

    Returns
    -------
    list of str
        ``page: what is wrong``.
    """
    from playwright.sync_api import Error

    home = folder.resolve().as_uri() + "/"
    every = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    names = [name for name in every if not name.startswith("_")] if pages is None else pages
    faults = []
    for name in names:
        browser.size(*DESKTOP)
        try:
            browser.open(home + name, home)
            found = browser.value(_LOOK)
        except Error as error:  # of the page's own scripts, such as a part of MathJax that is not there
            found = [f"script error: {str(error).splitlines()[0]}"]
        found += browser.faults()
        for size in (DESKTOP, PHONE):
            browser.size(*size)
            found += browser.value(_WIDE.replace("WINDOW", str(size[0])))
        faults += [f"{name}: {text}" for text in dict.fromkeys(found)]
    with served(folder) as http_home:
        for start in (home, http_home) if (folder / "search.html").is_file() else ():
            for query, wanted in (QUERIES if start == home else {"propensity": QUERIES["propensity"]}).items():
                browser.open(f"{start}search.html?q={quote(query)}", start)
                first = browser.value(_FOUND)
                if not any(page in link for page in wanted for link in first):
                    faults.append(f"search.html: {query!r} finds {first} first, from {start}, and not {wanted}")
            faults += [f"search.html: {text}" for text in browser.faults()]
    return faults


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """``folder`` on this machine over http: the address, with a slash."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def main(argv: list[str] | None = None) -> int:
    """0 where nothing is wrong or no browser is there, else 1."""
    parser = argparse.ArgumentParser(prog="python -m docs.browser", description="Look at the built site with Chromium.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("pages", nargs="*", help="names below the folder; default: all")
    arguments = parser.parse_args(argv)
    program = find()
    if program is None:
        print(f"no Playwright or no Chromium here ({', '.join(NAMES)}): the pages were not looked at in a browser")
        return 0
    with Browser(program) as browser:
        faults = check(arguments.folder, browser, arguments.pages or None)
    sound = "every page looked at in a browser: nothing requested elsewhere, nothing missing, nothing too wide"
    print("\n".join(faults) or sound)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
