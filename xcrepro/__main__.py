"""The command line, ``xcrepro`` or ``python -m xcrepro``; ``xcrepro --help`` lists its commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from xcrepro.errors import ArgumentError, DataError, XCError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status: 0 well, 1 something failed, 2 wrong input, 130 interrupted."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.command(arguments)
    except XCError as error:
        print(f"xcrepro: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("xcrepro: interrupted; what is done stays done", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="xcrepro", description="Reproduce XC evaluation papers, and evaluate your own."
    )
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, function, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help)
        sub.set_defaults(command=function)
        return sub

    command("list", _list, "show the items: id, sizes, title")

    sub = command("run", _run, "regenerate figures and tables, only what changed")
    sub.add_argument("items", nargs="*", help="ids or paper names; none: all but those that take long")
    _size_and_jobs(sub)
    sub.add_argument("--long", action="store_true", help="also those that take long")
    sub.add_argument("--force", action="store_true", help="also what is unchanged")
    sub.add_argument(
        "-p", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="a parameter for the named items"
    )
    sub.add_argument(
        "--record",
        action="store_true",
        help="on real data (-p dataset NAME -p folder DIR): commit the numbers to data/recorded; -p split mean: the mean of "
        "all splits",
    )
    sub.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="with --record: all that the manifest has recorded of the items, from the datasets' folders in DIR",
    )
    sub.add_argument("--dry", action="store_true", help="run nothing, say what would run and why")
    sub.add_argument("--write-back", action="store_true", help="put the outputs into the committed notebooks, tidied")

    sub = command("new", _new, "a new item: module, notebook, test and manifest entry, from templates that run")
    sub.add_argument("item", help="paper/item_name; a paper that is not there yet becomes a folder")
    sub.add_argument("--title", default="", help="one line for `xcrepro list`")

    sub = command(
        "accept", _accept, "what items come to now is right: golden files, outputs of the committed notebooks"
    )
    sub.add_argument("items", nargs="+", help="ids or paper names")
    _size_and_jobs(sub)

    sub = command("check", _check, "golden files of all items, and what committed notebooks must be")
    _size_and_jobs(sub)
    sub.add_argument("--long", action="store_true", help="also items that take long")

    sub = command("fetch", _fetch, "download a dataset into the cache and check it")
    sub.add_argument("name", help="a dataset of the registry, such as eurlex-4k")
    sub.add_argument("--force", action="store_true", help="download again")

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

    sub = command("tidy", _tidy, "bring notebooks into the form in which they are committed")
    sub.add_argument("paths", nargs="*", type=Path, help="notebooks or folders; none: notebooks/")
    sub.add_argument("--check", action="store_true", help="change nothing, fail if something would change")
    return parser


class _ListMetrics(argparse.Action):
    """Print the metrics and leave, as ``--help`` does."""

    def __call__(self, parser, *_) -> None:
        from xcrepro.metrics import registry
        from xcrepro.repro import tables

        print(tables.show(registry.table()))
        parser.exit()


def _size_and_jobs(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--size", default="small", help="small (default: synthetic or committed data) or paper")
    sub.add_argument("--jobs", type=int, help="notebooks at once, default one a core")


def _list(_) -> int:
    from xcrepro.repro import manifest

    entries = manifest.load()
    width = max(map(len, entries), default=0)
    for name, entry in entries.items():
        print(f"{name:<{width}}  {'+'.join(entry.sizes):<11}  {'(long) ' if entry.long else ''}{entry.title}")
    return 0


def _run(arguments) -> int:
    from xcrepro.repro import recording, runner

    if len({name for name, _ in arguments.p}) != len(arguments.p):
        raise ArgumentError("-p", "must name each parameter once", [name for name, _ in arguments.p])
    parameters = {name: recording.value(text) for name, text in arguments.p}
    if arguments.data is not None and not arguments.record:
        raise ArgumentError("--data", "goes with --record", "none")
    if arguments.record or parameters.get("split") == recording.MEAN:
        return _record(arguments, parameters)
    report = runner.run(
        arguments.items,
        arguments.size,
        force=arguments.force,
        jobs=arguments.jobs,
        parameters=parameters,
        write_back=arguments.write_back,
        dry=arguments.dry,
        long=arguments.long,
    )
    return 0 if report.ok else 1


def _record(arguments, parameters: dict) -> int:
    """On real data: what the parameters say, or with ``--data`` all that the manifest has."""
    from xcrepro import paths
    from xcrepro.data.load import count_splits
    from xcrepro.repro import manifest, recording, runner

    entries = manifest.load()
    named = [entries[name] for name in manifest.find(entries, arguments.items)]
    if arguments.size != "small":
        raise ArgumentError("--size", "must be small for runs on a folder of real data", arguments.size)
    if arguments.data is None:
        if not arguments.items:
            raise ArgumentError("--record", "needs named items, or --data", "none", "xcrepro run ITEM ... --record")
        recordings = [recording.of(entry, parameters, count_splits) for entry in named]
    else:
        if parameters:
            raise ArgumentError("--data", "goes without -p", list(parameters), "the manifest has the parameters")
        recordings, missing = recording.all_planned(named, arguments.data, count_splits)
        for dataset in missing:
            print(f"left out: {arguments.data / dataset} is not there")
    if arguments.dry:
        for one in recordings:
            print(f"{one.dataset}  {one.command}")
        return 0
    with runner.alone(paths.project_root()):
        return 0 if recording.run(recordings, arguments.force, commit=arguments.record) else 1


def _new(arguments) -> int:
    from xcrepro.repro import scaffold

    for path in scaffold.new(arguments.item, arguments.title):
        print(f"wrote {path}")
    print(f"now: xcrepro run {arguments.item}, look at what comes out, change it; then xcrepro accept {arguments.item}")
    return 0


def _accept(arguments) -> int:
    from xcrepro.repro import runner

    small = arguments.size == "small"
    report = runner.run(arguments.items, arguments.size, jobs=arguments.jobs, accept=True, write_back=small)
    return 0 if report.ok else 1


def _check(arguments) -> int:
    from xcrepro.repro import guard, runner

    report = runner.run(None, arguments.size, jobs=arguments.jobs, long=arguments.long)
    faults = guard.project()
    for name, problems in faults.items():
        for problem in problems:
            print(f"{name}: {problem}")
    if not faults:
        print("notebooks: nothing to mend")
    return 0 if report.ok and not faults else 1


def _fetch(arguments) -> int:
    from xcrepro.data import registry
    from xcrepro.data.load import fetch

    print(fetch(arguments.name, force=arguments.force))
    entry = registry.get(arguments.name)
    for key in ("licence", "citation"):
        if text := getattr(entry, key):
            print(f"{key}: {text}")
    return 0


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


def _tidy(arguments) -> int:
    from xcrepro.repro import tidy

    changed = tidy.tidy(arguments.paths, check=arguments.check)
    for path in changed:
        print(f"{'not tidy' if arguments.check else 'tidied'}: {path}")
    if not changed:
        print("all notebooks are tidy")
    return 1 if changed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
