"""``evaluate``, ``audit``: saved predictions and one's own tables."""

from __future__ import annotations

import argparse
from pathlib import Path

from xcrepro.errors import ArgumentError


def add(command) -> None:
    sub = command("evaluate", _evaluate, "every ranking metric of saved predictions")
    sub.add_argument(
        "truth",
        type=Path,
        help="test labels: a label file, a one-file dataset (either also .gz), or .npz of a SciPy matrix",
    )
    sub.add_argument(
        "predictions", type=Path, help="a score matrix (text or .npz), a saved TopK, or a calibration@k .npz"
    )
    sub.add_argument("-k", type=int, nargs="+", default=[1, 3, 5], help="default: 1 3 5")
    sub.add_argument(
        "--metrics",
        nargs="+",
        help="just these: names of --list, at every k or at one, such as nDCG@5, ECE@5 (scores in [0, 1]), 'binned macro-F1@5'",
    )
    sub.add_argument("--list", action=_ListMetrics, nargs=0, help="show the metrics there are, and stop")
    sub.add_argument(
        "--train-truth",
        type=Path,
        help="training labels, as for truth: adds propensity-scored metrics and macro-F1 by train frequency",
    )
    sub.add_argument("--A", type=float, help="of the propensity model, default 0.55")
    sub.add_argument("--B", type=float, help="of the propensity model, default 1.5")
    sub.add_argument(
        "--filter", type=Path, help="the test split's filter file (LF datasets): pairs that may not be predicted"
    )
    sub.add_argument("--csv", action="store_true", help="full precision, as CSV")

    sub = command("audit", _audit, "check a table of your own results for numbers that cannot stand together")
    sub.add_argument(
        "file",
        type=Path,
        help="CSV with the columns dataset, method, metric, k, value (one number a line), or dataset, method, P@1, nDCG@3, "
        "... (one method a line); dataset and method may be left out. Exit status 1 when something is found",
    )


class _ListMetrics(argparse.Action):
    """Print the metrics and leave, as ``--help`` does."""

    def __call__(self, parser, *_) -> None:
        from xcrepro.metrics import registry
        from xcrepro.repro import tables

        print(tables.show(registry.table()))
        parser.exit()


def _evaluate(arguments) -> int:
    import numpy as np

    from xcrepro import propensity
    from xcrepro.data.read import read_truth
    from xcrepro.data.splits import read_filter
    from xcrepro.metrics import registry
    from xcrepro.metrics.evaluate import evaluate
    from xcrepro.predictions import TopK
    from xcrepro.repro import tables

    if arguments.train_truth is None and (arguments.A is not None or arguments.B is not None):
        raise ArgumentError(
            "--A and --B", "go with --train-truth", "none", "propensities come from training label counts"
        )
    truth = read_truth(arguments.truth)
    weights = counts = None
    if arguments.train_truth is not None:
        train = read_truth(arguments.train_truth)
        if train.shape[1] != truth.shape[1]:
            raise ArgumentError("--train-truth", f"must have the {truth.shape[1]} labels of the truth", train.shape[1])
        counts = np.bincount(train.indices, minlength=train.shape[1])
        A, B = (default if given is None else given for given, default in ((arguments.A, 0.55), (arguments.B, 1.5)))
        weights = propensity.inverse(counts, train.shape[0], A, B)
    metrics = arguments.metrics or registry.default(weights is not None, counts is not None)
    k_max = max(int(ks.max()) for _, ks in registry.wanted(metrics, tuple(arguments.k)))
    exclude = None if arguments.filter is None else read_filter(arguments.filter, shape=truth.shape)
    top = TopK.load(arguments.predictions, k_max, exclude=exclude)
    table = evaluate(truth, top, tuple(arguments.k), weights, counts, metrics=metrics)
    print(tables.csv_text(table).rstrip() if arguments.csv else tables.show(table, decimals=6))
    return 0


def _audit(arguments) -> int:
    from xcrepro.published.results import audit_results

    found = audit_results(arguments.file)
    for row in found.itertuples():
        name = " / ".join(part for part in (row.dataset, row.method, row.variant) if part)
        print(f"{name + ': ' if name else ''}{row.column} = {row.printed}, expected {row.expected} [{row.check}]")
        print(f"    {row.why}")
    print("nothing found" if found.empty else f"{len(found)} found; xcrepro.published.checks derives each check")
    return 0 if found.empty else 1
