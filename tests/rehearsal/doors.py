"""A local server in place of the archives' own, with what downloads meet there: the confirmation page for large files, and a
connection that breaks once. Other answers are met in ``tests/repro/inputs/test_download.py``."""

from __future__ import annotations

import contextlib
import http.server
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from unittest import mock

from xcrepro.core.data import registry
from xcrepro.core.extras import library
from xcrepro.repro.inputs import download

WAYS = ("confirm", "broken")
"""How the archives are served."""
_FORM = (
    '<form id="download-form" action="https://drive.usercontent.google.com/download" method="get">'
    '<input type="hidden" name="id" value="{id}"><input type="hidden" name="confirm" value="t"></form>'
)
"""What Google asks before it sends a large file, in one line, as there."""


class Server:
    """Answers as Google Drive does for ``archives``, by their ids there, in one of :data:`WAYS`; ``asked`` are the bytes that
    each request wanted the answer from."""

    def __init__(self, archives: Mapping[str, bytes], way: str) -> None:
        self.archives, self.way, self.asked = archives, way, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def answer(self, request) -> None:
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request.path).query))
        start = int(request.headers.get("Range", "bytes=0-")[6:].partition("-")[0])
        self.asked.append(start)
        zipped = self.way != "confirm" or "confirm" in query
        body = self.archives[query["id"]] if zipped else _FORM.format(id=query["id"]).encode()
        request.send_response(206 if start else 200)
        request.send_header("Content-Type", "application/zip" if zipped else "text/html; charset=utf-8")
        request.send_header("Content-Length", str(len(body) - start))
        if zipped:
            request.send_header("Content-Disposition", 'attachment; filename="archive.zip"')
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        request.end_headers()
        end = len(body) // 2 if self.way == "broken" and not start else len(body)
        with contextlib.suppress(ConnectionError):
            request.wfile.write(body[start:end])
        request.close_connection = True


@contextlib.contextmanager
def serving(archives: Mapping[str, bytes], way: str) -> Iterator[Server]:
    """A server for archives by dataset, which gets all that this process asks of Google Drive meanwhile."""
    by_id = {}
    for name, archive in archives.items():
        entry = registry.get(name).archive
        address = download.archive_url(entry["key"], entry["format"])
        by_id[dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))["id"]] = archive
    server, requests = Server(by_id, way), library("requests")
    threading.Thread(target=server.http.serve_forever, args=(0.01,), daemon=True).start()
    send = requests.Session.send

    def sent(session, request, **options):
        place = urllib.parse.urlsplit(request.url)
        assert place.hostname in ("drive.google.com", "drive.usercontent.google.com"), request.url
        request.url = f"{server.url}{place.path}?{place.query}"
        return send(session, request, **options)

    try:
        with (
            mock.patch.object(requests.Session, "send", sent),
            mock.patch.dict("os.environ", {"NO_PROXY": "127.0.0.1"}),
        ):
            yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
