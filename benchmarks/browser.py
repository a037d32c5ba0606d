"""The report in a browser's tab beside the command's: seconds from the click to the page, for files of two models.

It takes what `make site web` builds, and a Chromium that Playwright can drive; without them there is nothing to measure.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

import xcrepro as xc
from docs import browser
from xcrepro.core.paths import project_root

CASES = ((400, 700, 10), (2_000, 1_000, 20), (20_000, 5_000, 100))
"""Points, labels, predictions for each point."""
PATIENCE = 900


def files(folder: Path, n: int, n_labels: int, k: int) -> list[Path]:
    """A truth with labels of a power law, and two models that see it through noise."""
    rng = np.random.default_rng(0)
    popular = rng.zipf(1.3, (n, 3 * k)) % n_labels
    rows = np.repeat(np.arange(n), 3)
    Y = sparse.csr_matrix((np.ones(3 * n, np.float32), (rows, popular[:, :3].ravel())), shape=(n, n_labels))
    Y.data[:] = 1
    sparse.save_npz(folder / "truth.npz", Y)
    for model in ("one", "other"):
        seen = np.where(rng.random((n, 3 * k)) < 0.8, popular, rng.integers(n_labels, size=popular.shape))
        score = (rng.random(seen.shape) * np.linspace(1, 0.1, 3 * k)).astype(np.float32)
        scores = sparse.coo_matrix(
            (score.ravel(), (np.repeat(np.arange(n), 3 * k), seen.ravel())), (n, n_labels)
        ).tocsr()
        scores.data = np.minimum(scores.data, 1)
        xc.TopK.from_scores(scores, k).save(folder / f"{model}.npz")
    return [folder / f"{name}.npz" for name in ("truth", "one", "other")]


def in_a_tab(page, truth: Path, models: list[Path]) -> tuple[float, str]:
    """Seconds from the click to the end, and what is said then."""
    page.set_input_files("#truth", truth)
    page.set_input_files("#predictions", models)
    start = time.perf_counter()
    page.click("button[type=submit]")
    while (took := time.perf_counter() - start) < PATIENCE:
        said = page.inner_text("#said")
        if any(end in said for end in ("Done", "no report", "This did", "too little")):
            return took, said.partition(".")[0]
        page.wait_for_timeout(100)
    return took, "not done"


def run(quick: bool = False) -> list[dict]:
    """A row for the command and one for the tab, of each case; its parts are loaded anew for each."""
    from playwright.sync_api import sync_playwright

    rows = []
    for n, n_labels, k in ((30, 20, 5),) if quick else CASES:
        with tempfile.TemporaryDirectory() as temporary:
            truth, *models = files(Path(temporary), n, n_labels, k)
            start = time.perf_counter()
            command = [sys.executable, "-m", "xcrepro", "report", truth, *models, "--out", Path(temporary) / "report"]
            subprocess.run([*map(str, command)], check=True, capture_output=True)
            native = time.perf_counter() - start
            with browser.served(project_root() / "build/site/html") as home, sync_playwright() as play:
                chromium = play.chromium.launch(executable_path=browser.find(), args=["--no-sandbox"])
                page = chromium.new_page()
                page.goto(f"{home}run/index.html")
                took, said = in_a_tab(page, truth, models)
                chromium.close()
        job = {"job": f"report of two models, {n:,} points x {n_labels:,} labels, {k} predictions a point"}
        rows.append(job | {"where": "xcrepro report", "seconds": native, "ratio": 1.0, "note": ""})
        rows.append(job | {"where": "a browser's tab", "seconds": took, "ratio": took / native, "note": said})
    return rows
