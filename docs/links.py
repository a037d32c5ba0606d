"""Checks a built site as files: nothing is fetched from elsewhere, nothing that a page needs or links to is missing.

``python -m docs.links FOLDER`` prints what is wrong. Links that a reader may follow to other sites are not looked at.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Tag -> the attribute that makes a browser fetch something.
_FETCHED = {
    "img": ("src", "srcset"),
    "script": ("src",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "link": ("href",),
    "input": ("src",),
}
_KEPT_LINKS = {
    "search",
    "next",
    "prev",
    "index",
    "genindex",
    "author",
    "copyright",
    "canonical",
    "up",
    "top",
    "contents",
}
"""Values of ``rel`` that fetch nothing."""
_CSS = re.compile(r"url\(\s*['\"]?([^'\")]+)['\"]?\s*\)|@import\s+['\"]([^'\"]+)['\"]")


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.needs: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self._style = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        self.anchors |= {named[name] for name in ("id", "name") if named.get(name)}
        self._style = tag == "style"
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        if tag == "link" and set(named.get("rel", "").split()) & _KEPT_LINKS:
            self.links.append(named["href"])
        else:
            for name in _FETCHED.get(tag, ()):
                if named.get(name):
                    self.needs += (
                        [part.split()[0] for part in named[name].split(",")] if name == "srcset" else [named[name]]
                    )
        self.needs += _urls(named.get("style", ""))

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag: str) -> None:
        self._style = False

    def handle_data(self, data: str) -> None:
        if self._style:
            self.needs += _urls(data)


def _urls(css: str) -> list[str]:
    return [first or second for first, second in _CSS.findall(css)]


def check(folder: Path) -> list[str]:
    """Look at every page and style sheet below ``folder``.

    Parameters
    ----------
    folder : Path
        Of the built site; folders whose names begin with ``_`` hold what pages need, and no pages.

    Returns
    -------
    list of str
        ``page: what is wrong``, sorted: something fetched from another host, a missing file, a link to a page or to a
        place in a page that is not there.
    """
    found = (path for path in folder.rglob("*.html") if not path.relative_to(folder).parts[0].startswith("_"))
    pages = {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in found}
    faults = {f"{folder}: holds no page"} if not pages else set()
    for path, page in pages.items():
        name = path.relative_to(folder.resolve()).as_posix()
        for url in page.needs:
            faults |= {f"{name}: {text}" for text in _fault(path, url, pages, fetched=True)}
        for url in page.links:
            faults |= {f"{name}: {text}" for text in _fault(path, url, pages, fetched=False)}
    for path in folder.rglob("*.css"):
        name = path.relative_to(folder).as_posix()
        for url in _urls(re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)):
            faults |= {f"{name}: {text}" for text in _fault(path.resolve(), url, pages, fetched=True)}
    return sorted(faults)


def _fault(page: Path, url: str, pages: dict[Path, _Page], fetched: bool) -> Iterator[str]:
    parts = urlsplit(url)
    if parts.scheme == "data" or (not fetched and parts.scheme):
        return
    if parts.scheme or parts.netloc:
        yield f"fetches {url} from elsewhere"
        return
    if parts.path.startswith("/"):
        yield f"{url} leads from the host's root, not from the page"
        return
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        yield f"{url} is not there"
    elif parts.fragment and not fetched and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        yield f"{url}: the page has no such place"


def main(arguments: list[str]) -> int:
    """Print the faults of one built site; 1 where there are any."""
    faults = check(Path(arguments[0]))
    print("\n".join(faults) or "nothing is fetched from elsewhere, nothing is missing")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
