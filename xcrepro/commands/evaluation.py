"""``evaluate``, ``audit``, ``certainty``: saved predictions, one's own tables, two printed numbers."""

from __future__ import annotations

import argparse
from pathlib import Path

from xcrepro.errors import ArgumentError, DataError, XCError


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

    sub = command("certainty", _certainty, "is a lead between two printed numbers certain, whatever the two predicted?")
    sub.add_argument("first", help="as printed, percent: 54.23")
    sub.add_argument("second", help="as printed, of the same test points")
    sub.add_argument("-n", type=int, help="how many test points; or --dataset")
    sub.add_argument(
        "--dataset", help="of the catalogue, which knows how many test points it has, and for PSP its weights"
    )
    sub.add_argument("--metric", default="P", help="P (the default; nDCG@1 is P@1) or PSP")
    sub.add_argument("-k", type=int, default=1, help="default: 1")
    sub.add_argument("--alpha", type=float, default=0.05, help="of the two-sided test; default: 0.05")
    sub.add_argument("--fractions", action="store_true", help="the numbers are fractions, not percent")


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
    from xcrepro.data.splits import read_filter
    from xcrepro.metrics import registry
    from xcrepro.metrics.evaluate import evaluate
    from xcrepro.predictions import TopK
    from xcrepro.repro import tables

    if arguments.train_truth is None and (arguments.A is not None or arguments.B is not None):
        raise ArgumentError(
            "--A and --B", "go with --train-truth", "none", "propensities come from training label counts"
        )
    truth = _labels(arguments.truth)
    weights = counts = None
    if arguments.train_truth is not None:
        train = _labels(arguments.train_truth)
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


def _labels(path: Path):
    """The label matrix of a split label file, an ``.npz`` or a one-file XC dataset."""
    from xcrepro.data.read import read_labels, read_xc

    try:
        return read_labels(path)
    except DataError as error:
        # The header alone tells the two text formats apart, so the wrong reader stops at the first line.
        try:
            return read_xc(path)[1]
        except XCError:
            raise error from None


def _audit(arguments) -> int:
    from xcrepro.published.results import audit_results

    found = audit_results(arguments.file)
    for row in found.itertuples():
        name = " / ".join(part for part in (row.dataset, row.method, row.variant) if part)
        print(f"{name + ': ' if name else ''}{row.column} = {row.printed}, expected {row.expected} [{row.check}]")
        print(f"    {row.why}")
    print("nothing found" if found.empty else f"{len(found)} found; xcrepro.published.checks derives each check")
    return 0 if found.empty else 1


def _certainty(arguments) -> int:
    from xcrepro.data import registry
    from xcrepro.published import leads

    if (arguments.n is None) == (arguments.dataset is None):
        raise ArgumentError("-n and --dataset", "must be one of the two", "both" if arguments.n else "none")
    if arguments.metric == "PSP" and not arguments.dataset:
        raise ArgumentError("--dataset", "must be given for PSP", "none", "its weights hang on the dataset")
    n, weights = arguments.n, None
    if arguments.dataset:
        entry = registry.get(arguments.dataset)
        n = entry.n_test
        weights = leads.weights_of(entry.name, arguments.k) if arguments.metric == "PSP" else None
    one = 1.0 if arguments.fractions else 100.0
    about = {"weights": weights, "alpha": arguments.alpha, "one": one}
    print(leads.lead(arguments.first, arguments.second, n, arguments.metric, arguments.k, **about))
    return 0
