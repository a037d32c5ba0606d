"""``report``: everything there is to measure of saved predictions, in one folder."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from xcrepro.commands import blocks
from xcrepro.errors import ArgumentError, XCError


def add(command) -> None:
    sub = command("report", _report, "all there is to measure of saved predictions: one HTML page, CSV, LaTeX, SVG")
    sub.add_argument(
        "truth", nargs="?", help="a dataset's name, a dataset's folder, or a file of test labels as for evaluate"
    )
    sub.add_argument(
        "predictions",
        type=Path,
        nargs="*",
        help="files as for evaluate, or folders with a file a model; NAME.seed0.npz, NAME.seed1.npz, ... are runs of one model",
    )
    sub.add_argument(
        "--blocks",
        nargs="+",
        metavar="NAME=PATTERN",
        help="in place of both: a model's block files (`xcrepro write-blocks`); the report has what follows from blocks alone",
    )
    blocks.add_engine(sub, "with --blocks: ")
    sub.add_argument(
        "--resume", type=Path, metavar="DIR", help="with --blocks: keep each block's state, go on from them"
    )
    sub.add_argument(
        "--calibration", action="store_true", help="with --blocks: scores are probabilities; their errors, too"
    )
    sub.add_argument(
        "--n-labels", type=int, metavar="L", help="with --blocks: of --train-truth, where it does not say it"
    )
    sub.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder; written whole or not at all")
    sub.add_argument("--force", action="store_true", help="replace a report of other input that stands there")
    sub.add_argument("-k", type=int, nargs="+", default=[1, 3, 5], help="default: 1 3 5; details are at the largest")
    sub.add_argument(
        "--train-truth",
        type=Path,
        help="training labels, as for evaluate: adds propensity-scored metrics and what depends on train frequency; "
        "a dataset has its own",
    )
    sub.add_argument("--A", type=float, help="of the propensity model, default the dataset's or 0.55")
    sub.add_argument("--B", type=float, help="of the propensity model, default the dataset's or 1.5")
    sub.add_argument(
        "--filter", type=Path, help="the test split's filter file (LF datasets): pairs that may not be predicted"
    )
    sub.add_argument(
        "--labels", type=Path, metavar="FILE", help="label names, one a line, or a label map; default the dataset's"
    )
    sub.add_argument("--split", type=int, help="of a dataset given by its name: which split, default 0")
    sub.add_argument("--points", type=int, help="of tib: how many of its records, default all")
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
    sub.add_argument("--no-price", action="store_true", help="leave out the price of coverage")
    sub.add_argument("--samples", type=int, help="of the bootstrap; default by the number of points and models")
    sub.add_argument("--seed", type=int, default=0, help="of all that is drawn, default 0")
    sub.add_argument("--confidence", type=float, default=0.95, help="of the intervals, default 0.95")
    sub.add_argument(
        "--notebook", action="store_true", help="also the notebook kit/your_predictions, executed on the same input"
    )


def _report(arguments) -> int:
    # A folder that will be refused is refused before anything is computed.
    from xcrepro.data.names import read_label_names
    from xcrepro.reports import report as reports

    reports.check_target(arguments.out)
    if blocks.report_asked(arguments):
        return blocks.report(arguments)
    exclude, truth = None, arguments.truth
    if arguments.split is not None or arguments.points is not None:
        from xcrepro.data.load import load

        if arguments.notebook:
            raise ArgumentError("--notebook", "does not go with --split and --points", arguments.truth)
        truth = load(truth, split=arguments.split or 0, points=arguments.points)
    names = () if arguments.labels is None else read_label_names(arguments.labels).names
    if arguments.filter is not None:
        from xcrepro.data.splits import read_filter

        exclude = read_filter(arguments.filter)
    made = reports.report(
        truth,
        arguments.predictions,
        train_truth=arguments.train_truth,
        A=arguments.A,
        B=arguments.B,
        ks=tuple(arguments.k),
        title=arguments.title,
        label_names=names,
        exclude=exclude,
        others=arguments.others,
        price=not arguments.no_price,
        calibrator=arguments.calibrator or "isotonic",
        samples=arguments.samples,
        seed=arguments.seed,
        confidence=arguments.confidence,
        command=shlex.join(["xcrepro", *sys.argv[1:]]),
        progress=True,
    )
    extra = _notebook(arguments) if arguments.notebook else {}
    path = made.save(arguments.out, force=arguments.force, extra=extra, progress=True)
    for doubt in made.warnings:
        print(f"warning: {doubt}", file=sys.stderr)
    for sentence in made.sentences("ranking"):
        print(sentence)
    print(f"wrote {path}")
    return 0


def _notebook(arguments) -> dict[str, bytes]:
    """The notebook of the same report, executed."""
    import json
    import tempfile

    from xcrepro import paths
    from xcrepro.repro import children

    source = paths.committed("notebooks/kit/your_predictions.ipynb")
    if not source.is_file():
        raise ArgumentError("--notebook", "needs the project's notebooks, as a clone and the wheel have them", source)
    if len(arguments.predictions) != 1:
        raise ArgumentError("--notebook", "goes with one file or folder of predictions", len(arguments.predictions))
    values = {"truth": str(_absolute(arguments.truth)), "predictions": str(arguments.predictions[0].resolve())}
    values |= {"ks": arguments.k, "seed": arguments.seed, "A": arguments.A, "B": arguments.B}
    if arguments.train_truth is not None:
        values["train_truth"] = str(arguments.train_truth.resolve())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.ipynb"
        parameters = [part for name, value in values.items() for part in ("-y", json.dumps({name: value}))]
        log = Path(folder) / "report.log"
        with open(log, "wb") as words:
            arguments = [str(source), str(out), *parameters, "--no-progress-bar"]
            process = children.papermill(arguments, cwd=folder, stdout=words, stderr=words)
        try:
            process.wait()
        finally:
            children.stop([process])
        if process.returncode:
            said = log.read_text(encoding="utf-8", errors="replace").strip()
            raise XCError(f"the notebook failed; its last words: {said[-500:]}")
        return {"report.ipynb": out.read_bytes()}


def _absolute(truth: str) -> str:
    """A path in full, a dataset's name as it is."""
    return str(Path(truth).expanduser().resolve()) if Path(truth).expanduser().exists() else truth
