"""Downloads against a server on this machine: good ones, and every way in which one goes wrong."""

from __future__ import annotations

import contextlib
import http.server
import io
import os
import stat
import tempfile
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.refused import damaged, refused
from tests.test_full_disk import full_disk
from xcrepro.__main__ import main
from xcrepro.core.data import load, registry
from xcrepro.core.data.registry import Entry
from xcrepro.core.errors import DataError, DataMissing, XCError
from xcrepro.repro.inputs import download

# A data set that meets the published row below.
TRAIN = "3 4 3\n0,2 0:1 3:0.5\n1 1:1\n0,1 2:2\n"
TEST = "2 4 3\n2 0:1\n0,1 3:1\n"
PAIR = {"Tiny/tiny_train.txt": TRAIN, "Tiny/tiny_test.txt": TEST}
TOML = """
name = "tiny-3"
printed_name = "Tiny-3"
group = "legacy"
[archive]
key = "tiny-3"
format = "bow"
[expected]
source = "xcrepo:dataset-table"
n_features = 4
n_labels = 3
n_train = 3
n_test = 2
avg_points_per_label = 1.67
avg_labels_per_point = 1.67
points_per_label_basis = "train"
"""


def archive(files: dict[str, str] | list[tuple[str | zipfile.ZipInfo, str]] = PAIR) -> bytes:
    """A zip file of names and texts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in files.items() if isinstance(files, dict) else files:
            bundle.writestr(name, text)
    return buffer.getvalue()


def of(train: str = TRAIN, **others: str) -> bytes:
    """The archive with another train file, and perhaps more files in its folder."""
    more = {f"Tiny/{name}.txt": text for name, text in others.items()}
    return archive(PAIR | {"Tiny/tiny_train.txt": train} | more)


class Server:
    """Serves ``body``; ``cut`` announces the whole body and sends that many bytes less; ``status`` other than 200."""

    def __init__(self) -> None:
        self.body, self.cut, self.status, self.hits = archive(), 0, 200, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.hits += 1
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(outer.body[: len(outer.body) - outer.cut])
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/tiny.zip"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server():
    served = Server()
    yield served
    served.stop()


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache; no proxies, no waiting between attempts."""
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "RETRIES", 0)
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def tiny(cache, server, monkeypatch) -> Entry:
    """A registry entry ``tiny-3`` whose archive the local server has."""
    register(monkeypatch, server.url)
    return registry.get("tiny-3")


def register(monkeypatch, url: str) -> None:
    """As a dataset of the package, whose archive napkinXC would have at ``url``."""
    from napkinxc.datasets import DATASETS

    form = {"url": url, "dir": "Tiny", "train": "tiny_train.txt", "test": "tiny_test.txt", "file_format": "libsvm"}
    monkeypatch.setitem(DATASETS, "tiny-3", {"formats": ["bow"], "subsets": ["train", "test"], "bow": form})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tiny-3.toml")
        path.write_text(TOML)
        monkeypatch.setitem(registry.package(), "tiny-3", registry._read(path, 0, package=True))
    monkeypatch.setitem(registry._known_names(), "tiny3", "tiny-3")


def read():
    return load.load("tiny-3", progress=False)


@contextlib.contextmanager
def refused_archive(cache: Path, found: str):
    """What the server sends is refused in a few words, and nothing of it stays."""
    with damaged("tiny-3.zip", match=found) as caught:
        yield
    assert len(str(caught.value)) < 400 + len(str(cache))
    assert everything(cache) == []


def everything(folder: Path) -> list[str]:
    """All files and folders below ``folder``."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) if folder.exists() else []


def test_good_download(tiny, cache, server):
    ds = read()
    assert ds.label_counts.tolist() == [2, 2, 1]
    assert np.array_equal(ds.train.X.toarray(), [[1, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 2, 0]])
    assert ds.test.Y.shape == (2, 3)
    assert (ds.name, ds.A, ds.B) == ("tiny-3", 0.55, 1.5)
    assert ds.published["xcrepo:dataset-table"]["n_labels"] == 3
    there = ["tiny-3", "tiny-3.sha256", "tiny-3/Tiny", "tiny-3/Tiny/tiny_test.txt", "tiny-3/Tiny/tiny_train.txt"]
    assert everything(cache) == there
    # sha256sum can read what is remembered.
    digest, name = (cache / "tiny-3.sha256").read_text().split()
    assert (len(digest), name) == (64, "tiny-3.zip")
    # The second time nothing is fetched, unless it is asked for.
    assert np.array_equal(read().train.X.toarray(), ds.train.X.toarray())
    assert download.fetch("Tiny-3", progress=False) == cache / "tiny-3"
    assert server.hits == 1
    download.fetch("tiny-3", force=True, progress=False)
    assert server.hits == 2
    assert everything(cache) == there


def test_progress_is_a_bar_on_stderr(tiny, cache, capfd):
    download.fetch("tiny-3")
    out, err = capfd.readouterr()
    assert out == ""
    assert "100%" in err
    download.fetch("tiny-3", force=True, progress=False)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("retries", [0, 1])
def test_truncated_body(tiny, cache, server, monkeypatch, retries):
    """This server does not continue where it stopped, so a second attempt is refused; but there is one."""
    monkeypatch.setattr(download, "RETRIES", retries)
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)
    server.cut = 20
    with pytest.raises(DataMissing) as caught:
        read()
    if not retries:
        assert "incomplete" in str(caught.value)
        assert "are kept" not in str(caught.value)
    assert server.hits == 1 + retries
    assert everything(cache) == []


def damaged_member() -> bytes:
    body = bytearray(archive())
    body[body.index(b"tiny_train.txt") + len("tiny_train.txt") + 4] ^= 0xFF
    return bytes(body)


def lying_size() -> bytes:
    """A member that says it is small."""
    body = bytearray(of(TRAIN * 10_000))
    size = len(TRAIN * 10_000).to_bytes(4, "little")
    while (at := body.find(size)) >= 0:
        body[at : at + 4] = (100).to_bytes(4, "little")
    return bytes(body)


def test_changed_archive(tiny, cache, server):
    download.fetch("tiny-3", progress=False)
    before, old = everything(cache), (cache / "tiny-3.sha256").read_text().split()[0]
    server.body = of(TRAIN.replace("0:1", "0:9"))
    with pytest.raises(DataError, match=r"delete .*tiny-3\.sha256") as caught:
        download.fetch("tiny-3", force=True, progress=False)
    new = download.hashlib.sha256(server.body).hexdigest()
    assert old in str(caught.value)
    assert new in str(caught.value)
    # What was there is there still.
    assert everything(cache) == before
    assert load.load("tiny-3").train.X[0, 0] == 1
    # As the message says:
    (cache / "tiny-3.sha256").unlink()
    download.fetch("tiny-3", force=True, progress=False)
    assert load.load("tiny-3").train.X[0, 0] == 9
    assert (cache / "tiny-3.sha256").read_text().split()[0] == new


def test_trust_on_first_use_is_said(tiny, cache, server, capfd):
    download.fetch("tiny-3")
    digest = (cache / "tiny-3.sha256").read_text().split()[0]
    said = capfd.readouterr().err
    for word in ("trusted", digest, str(cache / "tiny-3.sha256")):
        assert word in said
    download.fetch("tiny-3", force=True)
    assert "trusted" not in capfd.readouterr().err


def test_a_pinned_archive(mine, cache, server, capfd):
    """--pin writes the sum of the first good archive; from then on no other is taken, whatever the cache remembers."""
    name_archive(mine, f'url = "{server.url}"')
    before = (mine / "dataset.toml").read_text()
    with pytest.raises(DataMissing, match="--force --pin"):
        download.pin("mine")
    assert main(["fetch", "mine", "--pin"]) == 0
    good, digest = server.body, download.hashlib.sha256(server.body).hexdigest()
    assert capfd.readouterr().out.endswith(f"{mine / 'dataset.toml'}: sha256 = {digest}\n")
    assert registry.get("mine").archive == {"url": server.url, "sha256": digest}
    # One line more, in the table it belongs to.
    after = (mine / "dataset.toml").read_text().splitlines()
    after.remove(f'sha256 = "{digest}"')
    assert after == before.splitlines()
    assert main(["fetch", "mine", "--pin"]) == 0

    server.body = of(TRAIN.replace("0:1", "0:9"))
    (cache / "mine.sha256").unlink()
    there = everything(cache)
    with pytest.raises(DataError, match=f"expected {digest}"):
        download.fetch("mine", force=True, progress=False)
    assert everything(cache) == there
    # Another sum is not written over the one that is there.
    (cache / "mine.sha256").write_text("0" * 64 + "  mine.zip\n")
    with pytest.raises(DataError, match="Take that"):
        download.pin("mine")
    server.body = good
    capfd.readouterr()
    download.fetch("mine", force=True)
    assert "trusted" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "text", ["", '[archive]  # from there\nurl = "x"\n\n# of the twin\n[twin]\nhead = 0.1', "[twin]\n"]
)
def test_a_pin_keeps_the_rest_of_the_file(cache, text):
    home = cache.parent / "mine"
    home.mkdir(parents=True)
    (home / "dataset.toml").write_text(f'name = "mine"\n{text}')
    registry.pin("mine", "a" * 64)
    kept = (home / "dataset.toml").read_text().splitlines()
    kept.remove('sha256 = "' + "a" * 64 + '"')
    added = [] if "[archive]" in text else ["", "[archive]"]
    assert kept == ['name = "mine"', *text.splitlines(), *added]
    assert registry.get("mine").archive["sha256"] == "a" * 64
    for wrong in ("a" * 63, "A" * 64, 7):
        with refused("sha256", repr(wrong)):
            registry.pin("mine", wrong)


def test_wrong_numbers(tiny, cache, server, monkeypatch):
    server.body = of("2 4 3\n0,2 0:1\n1 1:1\n")
    with pytest.raises(DataError, match="xcrepo:dataset-table") as caught:
        read()
    lines = [line.split() for line in str(caught.value).splitlines() if line.startswith("  ")]
    assert ["n_train", "3", "2", "differs"] in lines
    assert ["n_test", "2", "2"] in lines
    assert ["avg_points_per_label", "1.67", "1.0000", "differs"] in lines
    assert everything(cache) == []
    # Asked for all the same, it comes, but its checksum is not taken for a good one.
    assert load.load("tiny-3", check=False, progress=False).train.Y.shape == (2, 3)
    assert not (cache / "tiny-3.sha256").exists()
    with pytest.raises(DataError, match="n_train"):
        load.load("tiny-3")
    assert server.hits == 2


def test_wrong_file_inside_is_named_by_its_place_in_the_archive(tiny, cache, server):
    server.body = of("3 4 3\n0,9 0:1\n1 1:1\n0 1:1\n")
    with damaged("tiny_train.txt", line=2, match=r"^tiny-3\.zip/Tiny/"):
        read()
    assert everything(cache) == []


def test_a_filter_that_does_not_fit_is_seen_before_the_archive_is_trusted(tiny, cache, server):
    """So that a repaired archive is not refused for the sum of the broken one."""
    server.body = of(filter_labels_test="0 99\n")
    with damaged("filter_labels_test.txt", line=1, match=r"^tiny-3\.zip/Tiny/"):
        download.fetch("tiny-3", progress=False)
    assert everything(cache) == []
    server.body = of(filter_labels_test="0 1\n")
    download.fetch("tiny-3", progress=False)
    assert [part.tolist() for part in read().excluded] == [[0], [1]]


def test_archive_without_data(tiny, cache, server):
    server.body = archive({"Tiny/readme.txt": "moved"})
    with pytest.raises(DataMissing, match=r"^tiny-3\.zip"):
        read()
    assert everything(cache) == []


def test_named_files_win_over_others_in_the_archive(tiny, cache, server):
    server.body = archive([*PAIR.items(), ("Tiny/train.txt", "x"), ("Tiny/validation.txt", "x")])
    assert read().train.X.shape == (3, 4)
    assert read().train.X.shape == (3, 4)


ESCAPES = ("../evil.txt", "/evil.txt", "Tiny/../../evil.txt", "..\\evil.txt", "C:\\evil.txt")


def special(kind: int) -> bytes:
    member = zipfile.ZipInfo("Tiny/tiny_train.txt")
    member.external_attr = (kind | 0o777) << 16
    return archive([(member, "/etc/passwd")])


def twice() -> bytes:
    with pytest.warns(UserWarning, match="Duplicate"):
        return archive([("Tiny/tiny_train.txt", TRAIN), ("Tiny/tiny_train.txt", TEST)])


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (lambda: b"<!DOCTYPE html><html><title>Quota exceeded</title></html>", "web page .*57 bytes.*Nothing was"),
        (lambda: b"\n<html><body>Sign in</body></html>", "web page"),
        (lambda: archive()[:-30], "beginning of"),
        (lambda: b"", "empty"),
        (lambda: b"3 4 3\n0,2 0:1\n", "14 bytes .*b'3 4 3"),
        (damaged_member, "damaged"),
        (lying_size, "damaged"),
        *((lambda name=name: archive({"Tiny/tiny_train.txt": TRAIN, name: "evil"}), "outside") for name in ESCAPES),
        (lambda: archive({f"Tiny/{number}": "" for number in range(10_001)}), "10,001 members"),
        (lambda: archive({"Tiny/tiny_train.txt": "0" * (2 << 20)}), "unpack to 2,097,152"),
        (lambda: special(stat.S_IFLNK), "a link"),
        (lambda: special(stat.S_IFCHR), "special file"),
        (lambda: special(stat.S_IFIFO), "special file"),
        (twice, "tiny_train.txt' twice"),
        (lambda: archive({"Tiny/a.txt": "", "tiny/A.TXT": ""}), "A.TXT' twice"),
        (lambda: archive({"Tiny/a.txt": "", "Tiny/a.txt/b.txt": ""}), "a.txt/b.txt' twice"),
        (lambda: archive({"Tiny/a.txt/b.txt": "", "Tiny/a.txt": ""}), "a.txt' twice"),
        (lambda: archive({"Tiny/" + "a" * 300: ""}), "at most 200"),
        (lambda: archive({"a/" * 30 + "b": ""}), "20 parts"),
        (lambda: archive({"Tiny/a\nb": ""}), "can be printed"),
    ],
)
def test_an_archive_that_is_not_what_it_claims(tiny, cache, server, tmp_path, body, found):
    """Refused before a byte of it is unpacked."""
    server.body = body()
    with refused_archive(cache, found):
        read()
    assert not [p for p in everything(tmp_path) if "evil" in p]


def test_more_than_is_allowed_and_a_say(tiny, cache, server, monkeypatch):
    monkeypatch.setenv("XCREPRO_MAX_UNPACKED", "50")
    with refused_archive(cache, r"at most 50.*XCREPRO_MAX_UNPACKED=BYTES"):
        read()
    monkeypatch.setenv("XCREPRO_MAX_UNPACKED", "6000")
    assert read().train.X.shape == (3, 4)
    monkeypatch.setenv("XCREPRO_MAX_UNPACKED", "much")
    with refused("$XCREPRO_MAX_UNPACKED", "'much'"):
        download.fetch("tiny-3", force=True, progress=False)


def test_larger_than_the_disk(tiny, cache, monkeypatch):
    usage = type("usage", (), {"free": 10})
    monkeypatch.setattr(download.shutil, "disk_usage", lambda path: usage)
    with refused_archive(cache, "10 bytes free"):
        read()


@pytest.mark.parametrize("room", [0, 200, 2000])
def test_a_full_disk_leaves_nothing(tiny, cache, server, room):
    """The archive does not fit; one of its files does not."""
    server.body = of(TRAIN + "# " + "word " * 1000 + "\n")
    with full_disk(room), pytest.raises(OSError, match="too large") as caught:
        read()
    assert caught.value.filename == str(cache / "tiny-3")
    assert everything(cache) == []
    assert read().train.X.shape == (3, 4)


@pytest.mark.parametrize("where", ["download", "unpack", "read_folder", "_install"])
def test_interruption_leaves_nothing(tiny, cache, monkeypatch, where):
    module = load if where == "read_folder" else download
    real = getattr(module, where)

    def stop(*args, **kwargs):
        if where != "_install":
            real(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, where, stop)
    with pytest.raises(KeyboardInterrupt):
        read()
    assert everything(cache) == []


def test_interrupted_replacement_keeps_the_old_files(tiny, cache, monkeypatch):
    download.fetch("tiny-3", progress=False)
    before, real = everything(cache), os.rename

    def fail(source, target):
        if Path(source).name == "files":
            raise PermissionError("no")
        real(source, target)

    monkeypatch.setattr(download.os, "rename", fail)
    with pytest.raises(PermissionError):
        download.fetch("tiny-3", force=True, progress=False)
    assert everything(cache) == before


def test_no_network_says_once_what_to_do(cache, monkeypatch, capfd):
    """None of the libraries' own lines on the way: the address, the reason and what to do, in the end."""
    register(monkeypatch, "http://127.0.0.1:9/tiny.zip")  # port 9: nobody listens
    monkeypatch.setattr(download, "RETRIES", 2)
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)
    assert main(["fetch", "tiny-3"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    lines = [line for line in err.replace("\r", "\n").splitlines() if line.strip()]
    assert lines[0].startswith(("downloading: ", "xcrepro: Tiny-3 did not arrive"))
    for word in ("Retrying", "HTTPConnectionPool", "urllib3", "Traceback"):
        assert word not in err
    for part in (
        "no connection (",
        "refused",
        "http://127.0.0.1:9/tiny.zip",
        str(cache / "tiny-3.zip"),
        "xcrepro fetch tiny-3",
        str(cache / "tiny-3") + os.sep,
        'xcrepro.load("tiny-3", path=',
        "XCREPRO_DATA",
    ):
        assert part in err
    assert everything(cache) == []


def test_http_error(tiny, cache, server):
    server.status = 404
    with pytest.raises(DataMissing, match="404"):
        read()
    assert everything(cache) == []


def test_an_archive_put_there_by_hand(tiny, cache, server):
    server.status = 500
    cache.mkdir(parents=True)
    (cache / "tiny-3.zip").write_bytes(archive())
    assert read().train.X.shape == (3, 4)
    assert server.hits == 0
    assert (cache / "tiny-3.zip").exists()


def test_files_put_there_by_hand(tiny, cache, server):
    (cache / "tiny-3").mkdir(parents=True)
    (cache / "tiny-3" / "train.txt").write_text(TRAIN)
    (cache / "tiny-3" / "test.txt").write_text(TEST)
    assert load.load("tiny-3").train.X.shape == (3, 4)
    assert server.hits == 0


def test_no_archive_says_what_to_do(cache):
    with pytest.raises(DataMissing, match=r"no archive(?s:.)*XMLRepository(?s:.)*bibtex\.zip"):
        load.load("bibtex")
    with pytest.raises(DataMissing, match="proprietary"):
        download.fetch("ads-9m")
    with refused("name", match="'bibtex'"):
        download.fetch("bibtx")
    with pytest.raises(XCError, match=r"'eurlex-4k' .*'raw'"):
        download.archive_url("eurlex-4k", "raw")
    assert everything(cache) == []


def test_two_at_once(tiny, cache, server, monkeypatch):
    """The one that finishes last finds the folder there and leaves it."""
    real = download._install

    def second(*args):
        # Another fetch, from beginning to end, while the first one is about to put its files in place.
        monkeypatch.setattr(download, "_install", real)
        download.fetch("tiny-3", progress=False)
        real(*args)

    monkeypatch.setattr(download, "_install", second)
    assert read().train.X.shape == (3, 4)
    assert server.hits == 2
    assert everything(cache)[:2] == ["tiny-3", "tiny-3.sha256"]


# --- a reader's own ---


@pytest.fixture
def mine(cache) -> Path:
    """The folder of a dataset.toml in ``$XCREPRO_DATA``."""
    home = cache.parent / "mine"
    home.mkdir(parents=True)
    (home / "dataset.toml").write_text(TOML.replace("tiny-3", "mine").replace("Tiny-3", "Mine").replace("format", "# "))
    return home


def name_archive(home: Path, text: str) -> None:
    toml = (home / "dataset.toml").read_text()
    (home / "dataset.toml").write_text(toml.replace('key = "mine"', text))


def test_a_readers_archive_beside_the_toml(mine, cache):
    name_archive(mine, 'file = "data.zip"')
    with pytest.raises(DataMissing, match="name the"):
        load.load("mine", progress=False)
    (mine / "data.zip").write_bytes(archive())
    assert load.load("mine", progress=False).label_counts.tolist() == [2, 2, 1]
    assert download.fetch("mine") == cache / "mine"


def test_fetch_on_the_command_line(mine, cache, capsys):
    name_archive(mine, 'file = "data.zip"')
    assert main(["fetch", "mine"]) == 2
    assert f"into {mine}" in capsys.readouterr().err
    for half, text in (("train", TRAIN), ("test", TEST)):
        (mine / f"{half}.txt").write_text(text)
    with open(mine / "dataset.toml", "r+") as file:
        text = file.read()
        file.seek(0)
        file.write('licence = "CC0"\ncitation = "A. Reader, 2026"\n' + text)
    assert main(["fetch", "mine"]) == 0
    assert capsys.readouterr().out == f"{mine}\nlicence: CC0\ncitation: A. Reader, 2026\n"


def test_another_average_is_said_and_no_checksum_kept(mine, cache):
    name_archive(mine, 'file = "data.zip"')
    (mine / "data.zip").write_bytes(archive({"train.txt": TRAIN.replace("0,1 2:2", "0 2:2"), "test.txt": TEST}))
    with pytest.warns(UserWarning, match=r"data\.zip: avg_points_per_label is 1\.3333, .* 1\.67"):
        ds = load.load("mine", progress=False)
    assert not ds.comparable
    assert ds.notes == load.load("mine").notes
    assert not (cache / "mine.sha256").exists()
