"""``python -m docs.report_picture``: the first screen of a report of two models on Cooking, ``docs/_static/report.png``."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import xcrepro as xc
from docs import browser

PICTURE = Path(__file__).parent / "_static" / "report.png"


def report() -> xc.Report:
    """The report that is shown."""
    ds = xc.load("cooking", points=6000)
    models = {"PLT": xc.models.PLT(trees=1), "1-vs-All": xc.models.OneVsRest()}
    return xc.report(
        ds, {name: model.fit(ds.train.X, ds.train.Y).predict(ds.test.X, 10) for name, model in models.items()}
    )


def digest(made: xc.Report) -> str:
    """Of what the first screen says: the picture carries it, and a test compares it with the report of today."""
    shown = {name: made.about[name] for name in ("title", "about", "sentences", "scoreboard")}
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def main() -> int:
    from PIL import Image, PngImagePlugin

    program = browser.find()
    if program is None:
        print("no Playwright or no Chromium here: no picture is made")
        return 1
    made, about = report(), PngImagePlugin.PngInfo()
    about.add_text("data", digest(made))
    with tempfile.TemporaryDirectory() as home, browser.Browser(program) as one:
        page = made.save(Path(home) / "report")
        one.size(1280, 640)
        one.open(page.as_uri())
        one.screenshot(PICTURE)
    Image.open(PICTURE).convert("RGB").quantize(256).save(PICTURE, pnginfo=about, optimize=True)
    print(f"wrote {PICTURE} ({PICTURE.stat().st_size:,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
