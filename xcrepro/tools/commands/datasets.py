"""``fetch``, ``fingerprint``, ``filter``: datasets."""

from __future__ import annotations

from pathlib import Path

from xcrepro.core.errors import ArgumentError
from xcrepro.tools.commands import shared


def add(command) -> None:
    sub = command("fetch", _fetch, "download a dataset into the cache and check it")
    sub.add_argument("name", help="a dataset of the registry, such as eurlex-4k")
    shared.flag(sub, "--force", "download again")
    shared.add_listing(sub, _datasets, "datasets")
    shared.flag(sub, "--pin", "for maintainers: write the archive's SHA-256 into the dataset's file")

    sub = command("fingerprint", _fingerprint, "which truth is this? Its digest, and the dataset that is known by it")
    sub.add_argument("truth", type=Path, nargs="*", help="label files, one-file datasets or .npz of SciPy matrices")
    shared.add_reading(sub, predictions=False)
    sub.add_argument("--dataset", help="all splits of this dataset of the catalogue instead; with --folder, from there")
    sub.add_argument("--folder", type=Path, help="the dataset's folder")
    sub.add_argument(
        "--part", choices=("train", "test", "all"), help="of --dataset: what a truth that is put on record is"
    )
    shared.flag(
        sub,
        "--record",
        "put it on record (xcrepro/core/data/catalogue/fingerprints.csv): the truth, or all splits of the dataset",
    )

    filters = command("filter", None, "the pairs of a point and a label that may not be predicted, as a file")
    sub = filters.add_subparsers(required=True, metavar="make").add_parser(
        "make", help="make a filter file from texts and names"
    )
    sub.set_defaults(command=_make_filter)
    sub.add_argument("out", type=Path, help="to write, such as filter_labels_test.txt")
    sub.add_argument(
        "--texts", type=Path, required=True, help="of the points: a line each, or JSON lines (title, content)"
    )
    sub.add_argument("--labels", type=Path, required=True, help="label names, a line each, or JSON lines (title)")
    sub.add_argument(
        "--rule",
        choices=("same", "contained"),
        default="same",
        help="same: point and label are one item, by uid or by the whole text (default); contained: the label's name occurs in "
        "the point's text",
    )
    sub.add_argument("--truth", type=Path, help="whose shape the texts and names must have")
    shared.flag(sub, "--force", "replace a file that is there already")


def _datasets():
    import pandas as pd

    from xcrepro.core.data import registry

    entries = [registry.get(name) for name in registry.names()]
    rows = [(one.name, one.printed_name, one.n_labels, one.n_test) for one in entries]
    return pd.DataFrame(rows, columns=["name", "printed as", "labels", "test points"]).convert_dtypes()


def _make_filter(arguments) -> int:
    from xcrepro.core.data import filters
    from xcrepro.core.data.names import read_label_names
    from xcrepro.tools import formats

    shared.refuse_existing("OUT", arguments.out, arguments.force)
    shape = None if arguments.truth is None else formats.read_truth(arguments.truth).shape
    texts, names = filters.read_texts(arguments.texts, arguments.rule), read_label_names(arguments.labels)
    rows, labels = filters.make_filter(texts, names, arguments.rule, shape=shape)
    filters.write_filter(arguments.out, rows, labels)
    points = len({*rows.tolist()})
    print(f"wrote {arguments.out}: {len(rows):,} pairs, of {points:,} of {len(texts):,} points")
    return 0


def _fetch(arguments) -> int:
    from xcrepro.core.data import registry
    from xcrepro.repro.inputs.download import fetch, pin

    print(fetch(arguments.name, force=arguments.force))
    entry = registry.get(arguments.name)
    for key in ("licence", "citation"):
        if text := getattr(entry, key):
            print(f"{key}: {text}")
    if arguments.pin:
        path = pin(arguments.name)
        print(f"{path}: sha256 = {registry.get(arguments.name).archive['sha256']}")
    return 0


def _fingerprint(arguments) -> int:
    from xcrepro.core.data import open_sets, registry
    from xcrepro.core.data.load import load
    from xcrepro.core.data.locate import count_splits
    from xcrepro.repro.inputs import fingerprints
    from xcrepro.tools import diagnose
    from xcrepro.tools.formats import reader

    if arguments.record and not arguments.dataset:
        raise ArgumentError("--record", "goes with --dataset", "none")
    if arguments.record and bool(arguments.truth) != bool(arguments.part):
        rule = "goes with --record and a truth, and says which part of the dataset it is"
        raise ArgumentError("--part", rule, arguments.part)
    lines = []
    for path in arguments.truth:
        Y = reader.read(path, {}, **shared.reading(arguments)).truth
        print(f"{diagnose.fingerprint(Y)}  {path}: {diagnose.recognise(Y).text}")
        lines += [fingerprints.known(arguments.dataset, arguments.part, Y)] if arguments.record else []
    if arguments.dataset and not arguments.truth:
        count = count_splits(arguments.dataset, arguments.folder or None)
        home = open_sets.HOMES.get(registry.get(arguments.dataset).name)
        named = [] if arguments.folder or not home else [name for name, at in home.splits.items() if at >= count]
        for split in (*range(count), *named):
            ds = load(arguments.dataset, arguments.folder, split=split)
            for line in fingerprints.of_dataset(ds, str(split) if count > 1 else ""):
                print(f"{line.fingerprint}  {line.dataset}, {line.part} split {line.split}".rstrip())
                lines.append(line)
    if arguments.record:
        print(f"wrote {fingerprints.write(lines)}")
    return 0
