"""``report``: everything there is to measure of saved predictions, in one folder."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from xcrepro.tools.commands import shared


def add(command) -> None:
    sub = command(
        "report", _report, "all there is to measure of saved predictions: one HTML page, CSV, LaTeX, pictures"
    )
    sub.add_argument("truth", help="a dataset's name, a dataset's folder, or a file of test labels as for evaluate")
    sub.add_argument(
        "predictions",
        type=Path,
        nargs="+",
        help="files as for evaluate, or folders with a file a model; NAME.seed0.npz, NAME.seed1.npz, ... are runs of one model",
    )
    sub.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder; written whole or not at all")
    shared.flag(sub, "--force", "replace a report of other input that stands there")
    sub.add_argument("-k", type=int, nargs="+", default=[1, 3, 5], help="default: 1 3 5; details are at the largest")
    shared.add_propensities(sub)
    shared.add_reading(sub)
    sub.add_argument("--texts", type=Path, metavar="FILE", help="a line for each test point: its id, title or text")
    shared.add_part(sub)
    sub.add_argument("--title", default="", help="what the data are called; default the dataset's name, or the file's")
    sub.add_argument(
        "--with", dest="others", type=Path, nargs="+", default=[], metavar="DIR",
        help="reports of the same models on other datasets: adds ranks over all of them",
    )  # fmt: skip
    sub.add_argument(
        "--calibrator",
        choices=("isotonic", "platt", "beta"),
        help="what calibrates the scores, default isotonic; with few points platt and beta spare the log loss",
    )
    shared.add_hierarchy(sub)
    sub.add_argument(
        "--about", type=Path, metavar="FILE.toml",
        help="what to show beside the numbers, such as training seconds or hardware: a table for each model, by its name",
    )  # fmt: skip
    shared.flag(sub, "--no-price", "leave out the price of coverage")
    sub.add_argument("--n-resamples", type=int, help="of the bootstrap; default by the number of points and models")
    sub.add_argument("--seed", type=int, default=0, help="of all that is drawn, default 0")
    sub.add_argument("--confidence-level", type=float, default=0.95, help="of the intervals, default 0.95")
    sub.add_argument(
        "--metrics", nargs="+", default=[],
        help="what models are compared in, as P@1 or PSP, all corrected together; default P, nDCG, PSP, macro-F1, ECE",
    )  # fmt: skip
    sub.add_argument(
        "--per-point", nargs="+", default=[], metavar="METRIC",
        help="metrics that are means over points: csv/points.csv gets their value for each point at the largest k",
    )  # fmt: skip


def _report(arguments) -> int:
    # A folder that will be refused is refused before anything is computed.
    from xcrepro.tools.reports import report as reports
    from xcrepro.tools.reports.given import without_folders

    reports.check_target(arguments.out)
    how = shared.reading(arguments) | {"label_names": arguments.labels or (), "texts": arguments.texts or ()}
    how |= shared.taken(arguments, "train_truth", "A", "B", "title", "split", "points", "others", "hierarchy", "levels")
    how |= shared.taken(arguments, "metrics", "per_point", "n_resamples", "seed", "confidence_level", "out", "force")
    how |= {"ks": tuple(arguments.k), "exclude": arguments.filter, "price": not arguments.no_price}
    how |= {"about": arguments.about or {}, "calibrator": arguments.calibrator or "isotonic", "progress": True}
    words = sys.argv[1:]
    how["command"] = without_folders(shlex.join(["xcrepro", *words]), [word for word in words if "/" in word])
    made = reports.report(arguments.truth, arguments.predictions, **how)
    for doubt in made.warnings:
        print(f"warning: {doubt}", file=sys.stderr)
    for sentence in made.sentences("first"):
        print(sentence)
    print(f"wrote {arguments.out / 'report.html'}")
    return 0
