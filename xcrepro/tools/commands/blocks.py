"""``write-blocks``, and what ``evaluate`` does with ``--blocks``: more than one process holds."""

from __future__ import annotations

from pathlib import Path

from xcrepro.core.errors import ArgumentError
from xcrepro.tools.commands import shared

ENGINES = ("serial", "dask")


def add(command) -> None:
    sub = command("write-blocks", _write, "cut truth and a large score matrix into block files for `evaluate --blocks`")
    sub.add_argument("truth", type=Path, help="a label file, or a file of features and labels; text or .npz (CSR)")
    sub.add_argument("predictions", type=Path, help="a score matrix, text or .npz (CSR); it streams, whatever its size")
    sub.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets block-<first row>.npz")
    sub.add_argument("--block-rows", type=int, default=100_000, help="of a block, default 100000")
    sub.add_argument("-k", type=int, default=100, help="places of a row to keep, default 100")
    sub.add_argument("--first-row", type=int, default=0, help="of these rows among all, default 0")
    shared.add_reading(sub)


def add_arguments(sub) -> None:
    """Of ``evaluate``."""
    sub.add_argument(
        "--blocks",
        nargs="+",
        metavar="PATTERN",
        help="in place of truth and predictions: block files of `xcrepro write-blocks`, a folder, or 'dir/*.npz'",
    )
    sub.add_argument("--engine", choices=ENGINES, help="with --blocks: where the work is done, default serial")
    sub.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster (tcp://host:8786); default one of its own"
    )
    sub.add_argument("--workers", type=int, metavar="N", help="processes on this machine, default one a core")
    shared.flag(sub, "--allow-repeats", "with --blocks: a block or row may come twice")
    sub.add_argument(
        "--n-resamples", type=int, help="with --blocks: intervals from so many samples (Poisson bootstrap)"
    )


_READING = ("rows", "truth_from", "from_format", "labels_are", "judged_only", "by_rank", "one_based")


def asked(arguments) -> bool:
    """Whether ``evaluate`` is to work on blocks; what goes with them alone is refused otherwise."""
    for name in ("truth", "predictions"):
        if (given := getattr(arguments, name)) is not None and arguments.blocks:
            raise ArgumentError(name, "must not be given with --blocks, which hold both", given)
        if given is None and not arguments.blocks:
            raise ArgumentError(name, "must be given, or --blocks", None)
    if not arguments.blocks:
        own = ("engine", "scheduler", "workers", "allow_repeats", "n_resamples")
        shared.refuse(arguments, own, "goes with --blocks")
        return False
    whole = ("filter", "labels", *_READING, "split", "points", "per_label")
    shared.refuse(arguments, whole, "does not go with --blocks", "say it when the blocks are written")
    do = "blocks have no names of labels: xc.scale.evaluate(blocks, hierarchy=...) takes a hierarchy of their ids"
    shared.refuse(arguments, ("hierarchy", "levels"), "does not go with --blocks", do)
    if arguments.engine != "dask":
        shared.refuse(arguments, ("scheduler",), "goes with --engine dask")
    return True


def evaluate(arguments) -> int:
    """``evaluate --blocks``."""
    from xcrepro.tools import formats, scale

    found = [path for pattern in arguments.blocks for path in scale.block_paths(pattern)]
    weights = counts = None
    if arguments.train_truth is not None:
        train = formats.read_truth(arguments.train_truth, n_labels=arguments.n_labels)
        weights, counts, *_ = shared.weights(arguments, train)
    how = shared.taken(arguments, "workers", "metrics", "allow_repeats", "ties")
    how |= {"engine": arguments.engine or "serial", "client": arguments.scheduler, "progress": True}
    how["n_resamples"] = arguments.n_resamples or 0
    state = scale.state(found, tuple(arguments.k), weights, counts, **how)
    table = state.compute()
    if arguments.n_resamples:
        table = table.merge(state.intervals().drop(columns="value"), "left", ["metric", "k"])
    shared.print_table(table, arguments.csv, 6)
    return 0


def _streams(arguments) -> bool:
    """Whether both files are of the forms that are read piece by piece, and nothing has to be looked up for them."""
    from xcrepro.tools import formats

    asked = shared.taken(arguments, "labels", "rows", "n_labels", "truth_from", "from_format", "judged_only", "by_rank")
    if any(asked.values()):
        return False
    files = arguments.truth, arguments.predictions
    return all(not path.is_dir() and formats.detect(path).name in ("xc", "npz") for path in files)


def _write(arguments) -> int:
    from xcrepro.tools import scale

    source = arguments.truth, arguments.predictions, arguments.out
    about = {"rows": arguments.block_rows, **shared.taken(arguments, "k", "first_row")}
    if not _streams(arguments):
        found = shared.read(arguments, {"": arguments.predictions}, arguments.k)
        source = found.truth, found.tops[""], arguments.out
    paths = scale.write_blocks(*source, **about)
    print(f"{len(paths)} blocks in {arguments.out}")
    print(f"now: xcrepro evaluate --blocks '{arguments.out}/*.npz'")
    return 0
