"""Looks at the built site with headless Chromium: what it requests, what it shows, how it fits a phone, what search finds.

``python -m docs.browser FOLDER [--screenshots DIR PAGE ...]`` prints what is wrong; where no Chromium is installed it says so
and ends with 0. The browser is driven through its own debugging pipe, so no driver is needed.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import fcntl
import functools
import http.server
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60
"""For one page to load, or one question about it to be answered."""
DESKTOP, PHONE = (1280, 900), (390, 844)
WORD = "propensity"

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
  if (page.scrollWidth <= PHONE) return [];
  const wide = Array.from(document.querySelectorAll("article *")).find(
    (e) => e.getBoundingClientRect().right > PHONE + 1 &&
      !e.closest(".scroll, .cell_output, .math, pre, details:not([open])"));
  return [`${page.scrollWidth} px wide on a phone: ${wide ? wide.tagName + "." + wide.className : "?"}`];
})()
""".replace("PHONE", str(PHONE[0]))
_FOUND = """
(async () => {
  for (let i = 0; i < 100; i++) {
    const n = document.querySelectorAll("#search-results li a").length;
    if (n) return n;
    await new Promise((done) => setTimeout(done, 100));
  }
  return 0;
})()
"""


def find() -> str | None:
    """The browser's program, or None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """Headless Chromium with one page, driven by its DevTools protocol: ``with Browser(program) as browser: ...``."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._number = 0
        self._rest = b""
        self.events: list[dict] = []

    def __enter__(self) -> Browser:
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours, theirs = [], []
        for reads in (True, False):  # Chromium reads its commands from 3 and writes its answers to 4
            read, write = os.pipe()
            mine, other = (write, read) if reads else (read, write)
            ours.append(mine)
            theirs.append(fcntl.fcntl(other, fcntl.F_DUPFD, 10))
            os.close(other)
        self._write, self._read = ours

        def place() -> None:
            for number, handle in zip((3, 4), theirs, strict=True):
                os.dup2(handle, number)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]
        flags += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            [self._program, *flags, f"--user-data-dir={self._home.name}", "about:blank"],
            preexec_fn=place,
            pass_fds=(3, 4, *theirs),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for handle in theirs:
            os.close(handle)
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = None
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_) -> None:
        self._session = None
        with contextlib.suppress(OSError, TimeoutError):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        os.close(self._write)
        os.close(self._read)
        self._home.cleanup()

    _session: str | None = None

    def call(self, method: str, **parameters) -> dict:
        """Send one command and wait for its result; events that come meanwhile are kept in ``events``."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while True:
            answer = self._next(end)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, end: float) -> dict:
        while b"\0" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError(f"no answer within {SECONDS} s")
            if not (part := os.read(self._read, 1 << 20)):
                raise TimeoutError("the browser has ended")
            self._rest += part
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def size(self, width: int, height: int) -> None:
        """The window from here on; a narrow one is a phone's."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def open(self, url: str) -> None:
        """Go to ``url`` and wait until it has loaded."""
        self.events.clear()
        if failed := self.call("Page.navigate", url=url).get("errorText"):
            raise RuntimeError(f"{url}: {failed}")
        end = time.monotonic() + SECONDS
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next(end))

    def value(self, script: str):
        """What ``script`` comes to on the page, a promise when it is kept."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"].get("exception", {}).get("description")))
        return found["result"].get("value")

    def requests(self, home: str) -> list[str]:
        """What the last page asked for elsewhere than under ``home``, what did not come, what its scripts broke on."""
        faults, urls = [], {}
        for event in self.events:
            method, given = event.get("method"), event.get("params", {})
            if method == "Network.requestWillBeSent":
                url = urls[given["requestId"]] = given["request"]["url"]
                if not url.startswith((home, "data:", "blob:")):
                    faults.append(f"request to elsewhere: {url}")
            elif method == "Network.loadingFailed" and not given.get("canceled"):
                faults.append(f"request failed: {urls.get(given['requestId'])} ({given['errorText']})")
            elif method == "Network.responseReceived" and given["response"]["status"] >= 400:
                faults.append(f"request failed: {given['response']['url']} ({given['response']['status']})")
            elif method == "Runtime.exceptionThrown":
                details = given["exceptionDetails"]
                faults.append(f"script error: {details.get('exception', {}).get('description', details['text'])}")
        return faults

    def screenshot(self, path: Path) -> None:
        """What the window shows, as PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


def check(folder: Path, browser: Browser, pages: list[str] | None = None) -> list[str]:
    """Look at every page.

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
    home = folder.resolve().as_uri() + "/"
    every = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    names = [name for name in every if not name.startswith("_")] if pages is None else pages
    faults = []
    for name in names:
        browser.size(*DESKTOP)
        try:
            browser.open(home + name)
            found = browser.value(_LOOK)
        except TimeoutError as error:
            faults.append(f"{name}: {error}")
            continue
        except RuntimeError as error:  # of the page's own scripts, such as a part of MathJax that is not there
            found = [f"script error: {str(error).splitlines()[0]}"]
        found += browser.requests(home)
        browser.size(*PHONE)
        found += browser.value(_WIDE)
        faults += [f"{name}: {text}" for text in dict.fromkeys(found)]
    with served(folder) as http_home:
        for start in (home, http_home):
            browser.open(f"{start}search.html?q={WORD}")
            if not browser.value(_FOUND):
                faults.append(f"search.html: {WORD!r} is not found from {start}")
            faults += [f"search.html: {text}" for text in browser.requests(start)]
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
    parser.add_argument(
        "--screenshots", type=Path, metavar="DIR", help="only this: pictures of PAGES, desktop and phone"
    )
    parser.add_argument("pages", nargs="*", help="names below the folder; default: all")
    arguments = parser.parse_intermixed_args(argv)
    program = find()
    if program is None:
        print(f"no Chromium here ({', '.join(NAMES)}): the pages were not looked at in a browser")
        return 0
    with Browser(program) as browser:
        if arguments.screenshots:
            for name in arguments.pages:
                for label, size in (("desktop", DESKTOP), ("phone", PHONE)):
                    browser.size(*size)
                    browser.open((arguments.folder.resolve() / name).as_uri())
                    browser.value(_LOOK)
                    browser.screenshot(
                        arguments.screenshots / f"{name.replace('/', '-').removesuffix('.html')}-{label}.png"
                    )
            return 0
        faults = check(arguments.folder, browser, arguments.pages or None)
    print(
        "\n".join(faults)
        or "every page looked at in a browser: nothing requested elsewhere, nothing missing, nothing too wide"
    )
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
