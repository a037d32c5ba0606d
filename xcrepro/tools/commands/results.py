"""``compare``, ``results``: two runs held to each other; results that are kept."""

from __future__ import annotations

from pathlib import Path

from xcrepro.core.arguments import real_number
from xcrepro.core.errors import ArgumentError
from xcrepro.tools.commands import evaluation, shared

_MOST = 20  # cells that are shown of a comparison


def add(command) -> None:
    sub = command("compare", _compare, "which numbers differ between runs or result files, and by how much")
    sub.add_argument(
        "places",
        nargs="+",
        type=Path,
        metavar="A B",
        help="CSV files (of `evaluate --csv`, or behind a figure), results that were kept (.json), or folders of a run's "
        "figures; each is held to the first. Exit status 1 where they differ",
    )
    sub.add_argument(
        "--rtol", type=float, help="leave out numbers that differ by at most this share of themselves, default 0"
    )
    sub.add_argument(
        "--all", action="store_true", help=f"every cell that differs, not just the {_MOST} that differ most"
    )
    sub.add_argument("--csv", action="store_true", help="the cells that differ as CSV")

    sub = command("results", None, "a folder of results: add one, show all beside the printed rows")
    parts = sub.add_subparsers(required=True, metavar="add|show")
    one = parts.add_parser("add", help="evaluate saved predictions and keep the result", description="Keep a result.")
    one.set_defaults(command=_add)
    one.add_argument("truth", type=Path, help="test labels, as for `xcrepro evaluate`")
    one.add_argument("predictions", type=Path, help="saved predictions, as for `xcrepro evaluate`")
    one.add_argument("--name", required=True, help="what the model is called")
    one.add_argument(
        "--dataset", required=True, help="what the dataset is called; a name of the catalogue, or any other"
    )
    one.add_argument("-k", type=int, nargs="+", default=[1, 3, 5], help="default: 1 3 5")
    one.add_argument("--metrics", nargs="+", help="just these, as for `xcrepro evaluate`")
    one.add_argument("--train-truth", type=Path, help="training labels: adds propensity-scored metrics")
    one.add_argument("--A", type=float, help="of the propensity model; default the dataset's, else 0.55")
    one.add_argument("--B", type=float, help="of the propensity model; default the dataset's, else 1.5")
    one.add_argument("--filter", type=Path, help="pairs that may not be predicted")
    one.add_argument("--note", default="", help="a word to keep with it: a link, a commit, a setting")
    one.add_argument("--force", action="store_true", help="replace one of the same name")
    show = parts.add_parser("show", help="all results in one table", description="Show results beside printed rows.")
    show.set_defaults(command=_show)
    show.add_argument("--dataset", help="only of this one")
    show.add_argument("--metrics", nargs="+", default=[], help="columns such as PSP@5, or PSP for all its k")
    show.add_argument("--sort", default="", metavar="COLUMN", help="such as PSP@5; default the first metric")
    show.add_argument("--no-printed", action="store_true", help="without the printed rows")
    show.add_argument("--history", action="store_true", help="what was added when, with digests; replaced results too")
    show.add_argument("--csv", action="store_true", help="as CSV, at full precision")
    show.add_argument("--html", type=Path, metavar="FILE", help="write a page that sorts by a click")
    show.add_argument("--force", action="store_true", help="with --html: replace a page that is there already")
    for each in (one, show):
        each.add_argument(
            "--folder", type=Path, help="where results are kept, default results/ of the project, or here"
        )


def _compare(arguments) -> int:
    import pandas as pd

    from xcrepro.repro import same, tables

    first, *others = arguments.places
    if not others:
        raise ArgumentError("A B", "must be two places or more", first, "name what it is held to")
    rtol = 0.0 if arguments.rtol is None else real_number("--rtol", arguments.rtol, at_least=0, below=1)
    base, status, frames = _tables(first), 0, []
    for other in others:
        found = same.compare(base, _tables(other))
        cells = found.cells[~(found.cells["relative"] <= rtol)]
        status |= not cells.empty or any(found.only)
        frames.append(cells.assign(held=str(other)))
        if arguments.csv:
            continue
        for place, names in zip((first, other), found.only, strict=True):
            for name in names:
                print(f"only in {place}: {name}")
        by = f", by more than {rtol:g} of themselves" if rtol else ""
        print(f"{first} and {other}: {len(cells)} differ{by}, {found.compared} cells compared")
        if not cells.empty:
            shown = cells.iloc[sorted(range(len(cells)), key=lambda i: _weight(cells.iloc[i]))]
            shown = shown if arguments.all else shown.head(_MOST)
            used = [name for name in shown.columns if name != "relative" and (shown[name] != "").any()]
            print(tables.show(shown[used].reset_index(drop=True), decimals=9))
            if len(shown) < len(cells):
                print(f"{len(cells) - len(shown)} more: --all shows them")
    if arguments.csv:
        print(tables.csv_text(pd.concat(frames, ignore_index=True)).rstrip())
    return int(status)


def _weight(cell) -> tuple[int, float]:
    """What is shown first: texts that differ, such as the data's; then numbers, the largest first; then what one alone has."""
    if "" in (cell["first"], cell["second"]):
        return 2, 0.0
    return (0, 0.0) if cell["relative"] != cell["relative"] else (1, -cell["relative"])


def _tables(place: Path) -> dict:
    """The tables of a place; of a kept result its metrics, options and truth."""
    from xcrepro.repro import same

    if place.suffix != ".json":
        return same.read(place)
    import pandas as pd

    from xcrepro.core.errors import DataMissing
    from xcrepro.tools import results

    if not place.is_file():
        raise DataMissing(f"{place}: there is no such file or folder")
    result = results.read(place)
    rows = [(*name.rsplit("@", 1), repr(value)) for name, value in result.values.items()]
    about = {"dataset": result.dataset, **result.truth, **result.options}
    return {
        "": pd.DataFrame(rows, columns=["metric", "k", "value"], dtype=str),
        "about": pd.DataFrame([(name, f"{value}") for name, value in about.items()], columns=["what", "is"], dtype=str),
    }


def _add(arguments) -> int:
    from xcrepro.core import formats
    from xcrepro.core.data import registry as datasets
    from xcrepro.core.data.splits import read_filter
    from xcrepro.core.metrics import registry
    from xcrepro.tools import results

    shared.with_train_truth(arguments)
    truth = formats.read_truth(arguments.truth)
    options = dict.fromkeys(("A", "B", "train points", "train pairs"))
    weights = counts = train = None
    if arguments.train_truth is not None:
        train = formats.read_truth(arguments.train_truth)
        if train.shape[1] != truth.shape[1]:
            raise ArgumentError("--train-truth", f"must have the {truth.shape[1]} labels of the truth", train.shape[1])
        weights, counts, A, B = shared.weights(arguments, train, datasets.find(arguments.dataset))
        options |= {"A": A, "B": B, "train points": train.shape[0], "train pairs": train.nnz}
    metrics = arguments.metrics or registry.default(weights is not None, counts is not None)
    k_max = max(int(ks.max()) for _, ks in registry.wanted(metrics, tuple(arguments.k)))
    exclude = None if arguments.filter is None else read_filter(arguments.filter, shape=truth.shape)
    options["filtered pairs"] = 0 if exclude is None else len(exclude[0])
    places = max(k_max, evaluation.PLACES_TO_DIAGNOSE)
    named = {"n_labels": truth.shape[1], "n_rows": truth.shape[0]}
    top = formats.read_predictions(arguments.predictions, k=places, exclude=exclude, **named)
    if doubts := evaluation.warn(truth, top, train, exclude, metrics):
        options[results.DOUBTS] = doubts
    about = {"metrics": metrics, "options": options, **shared.taken(arguments, "name", "dataset", "note")}
    about |= {"inverse_propensity": weights, "label_counts": counts}
    result = results.of(Y=truth, top=top, ks=tuple(arguments.k), **about)
    path = results.add(result, arguments.folder, arguments.force)
    print(f"{path}: {len(result.values)} values, on truth {result.truth['fingerprint'][:8]}")
    return 0


def _show(arguments) -> int:
    from xcrepro.core import paths
    from xcrepro.tools import results

    if arguments.html is not None:
        shared.refuse_existing("--html", arguments.html, arguments.force)
    if arguments.history:
        table, notes = results.history(arguments.folder, arguments.dataset, arguments.metrics), []
    else:
        found = results.read_all(arguments.folder, arguments.dataset)
        table, notes = results.table(found, arguments.metrics, arguments.sort, not arguments.no_printed)
    if arguments.html is not None:
        from xcrepro.tools.reports import html

        with paths.atomic_path(arguments.html) as part:
            part.write_text(html.results(table, notes), encoding="utf-8")
        print(f"wrote {arguments.html}")
        return 0
    shared.print_table(table, arguments.csv)
    for note in [] if arguments.csv else notes:
        print(note)
    return 0
