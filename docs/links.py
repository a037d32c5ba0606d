"""Checks a built site as files: nothing is fetched from elsewhere, nothing that a page needs or links to is missing, and no
table is shown as its Markdown.

``python -m docs.links FOLDER`` prints what is wrong. Links that a reader may follow to other sites are not looked at.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Tag -> the attribute that makes a browser fetch something.
_FETCHED = {
    **dict.fromkeys(("script", "iframe", "audio", "embed", "input"), ("src",)),
    **dict.fromkeys(("img", "source"), ("src", "srcset")),
    **{"video": ("src", "poster"), "object": ("data",), "link": ("href",)},
}
_KEPT_LINKS = {
    "search", "next", "prev", "index", "genindex", "author", "copyright", "canonical", "up", "top", "contents",
}  # fmt: skip
"""Values of ``rel`` that fetch nothing."""
_RAW_TABLE = re.compile(r"\|\s*:?[-–—]+:?\s*\|")
"""The line under a table's head, once typography made dashes of its hyphens."""
_CODE = {"pre", "code", "script", "style"}
_CSS = re.compile(r"url\(\s*['\"]?([^'\")]+)['\"]?\s*\)|@import\s+['\"]([^'\"]+)['\"]")


class Page(HTMLParser):
    """What a page fetches, where it leads, which places it has, and the text that is no code."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.needs: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.text: list[str] = []
        self._code: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        self.anchors |= {named[name] for name in ("id", "name") if named.get(name)}
        self._code += [tag] if tag in _CODE else []
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        if tag == "link" and set(named.get("rel", "").split()) & _KEPT_LINKS:
            self.links.append(named["href"])
        else:
            for name in {*_FETCHED.get(tag, ())} & {*named}:
                parts = named[name].split(",") if name == "srcset" else [named[name]]
                self.needs += [part.split()[0] if name == "srcset" else part for part in parts if part]
        self.needs += _urls(named.get("style", ""))

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag: str) -> None:
        if self._code[-1:] == [tag]:
            self._code.pop()

    def handle_data(self, data: str) -> None:
        if self._code[-1:] == ["style"]:
            self.needs += _urls(data)
        elif not self._code:
            self.text.append(data)


def _urls(css: str) -> list[str]:
    return [first or second for first, second in _CSS.findall(css)]


def check(folder: Path, unwritten: Mapping[str, Collection[str]] | None = None) -> list[str]:
    """Look at every page and style sheet below ``folder``.

    Parameters
    ----------
    folder : Path
        Of the built site; folders whose names begin with ``_`` hold what pages need, and no pages.
    unwritten : mapping of str to collection of str, optional
        Pages of the site that are not there, without suffix, with the places that they have: links may lead to them.

    Returns
    -------
    list of str
        ``page: what is wrong``, sorted: something fetched from another host, a missing file, a link to a page or to a
        place in a page that is not there, a table in the form in which Markdown has it.
    """
    found = (path for path in folder.rglob("*.html") if not path.relative_to(folder).parts[0].startswith("_"))
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in found}
    faults = {f"{folder}: holds no page"} if not pages else set()
    places = {(folder / f"{name}.html").resolve(): {*own} for name, own in (unwritten or {}).items()}
    places |= {path: page.anchors for path, page in pages.items()}
    for path, page in pages.items():
        name = path.relative_to(folder.resolve()).as_posix()
        for urls, fetched in ((page.needs, True), (page.links, False)):
            faults |= {f"{name}: {fault}" for url in urls if (fault := _fault(path, url, places, fetched))}
        if raw := _RAW_TABLE.search("".join(page.text)):
            faults.add(f"{name}: a table is shown as its Markdown, {raw[0]}")
    for path in folder.rglob("*.css"):
        name = path.relative_to(folder).as_posix()
        urls = _urls(re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL))
        faults |= {f"{name}: {fault}" for url in urls if (fault := _fault(path.resolve(), url, places, True))}
    return sorted(faults)


def _fault(page: Path, url: str, places: dict[Path, set[str]], fetched: bool) -> str:
    """What is wrong with a link, or with what is ``fetched``; empty where nothing is."""
    parts, place = urlsplit(url), unquote(urlsplit(url).fragment)
    if parts.scheme == "data" or (not fetched and parts.scheme):
        return ""
    if parts.scheme or parts.netloc:
        return f"fetches {url} from elsewhere"
    if parts.path.startswith("/"):
        return f"{url} leads from the host's root, not from the page"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if target not in places and not target.is_file():
        return f"{url} is not there"
    lost = place and not fetched and place not in places.get(target, {place})
    return f"{url}: the page has no such place" if lost else ""


def main(arguments: list[str]) -> int:
    """Print the faults of one built site; 1 where there are any."""
    faults = check(Path(arguments[0]))
    print("\n".join(faults) or "nothing is fetched from elsewhere, nothing is missing")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
