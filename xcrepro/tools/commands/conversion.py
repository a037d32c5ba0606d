"""``convert``, ``vectorize``: from other formats, and from raw text."""

from __future__ import annotations

from pathlib import Path

from xcrepro.tools.commands import shared


def add(command) -> None:
    sub = command("convert", _convert, "truth, predictions, features or a whole dataset in another format")
    option = sub.add_argument
    option("source", type=Path, metavar="IN", help="its content says what it is; a folder is Annif's")
    option("target", metavar="OUT", help="its ending says what it is to be; a folder ends in /")
    option("--from", dest="from_format", metavar="FORMAT", help="what IN is, where its content does not tell")
    option("--to", dest="to_format", metavar="FORMAT", help="what OUT is to be, where its ending does not tell")
    option(
        "--as",
        dest="kind",
        choices=("truth", "predictions", "features", "dataset"),
        help="what to take from a file that may be more than one",
    )
    shared.add_names(sub)
    option("--n-rows", type=int, metavar="N", help="how many rows there are, where IN leaves out empty ones")
    option("--n-features", type=int, metavar="D", help="how many features, for a file without a header")
    option(
        "--unknown",
        choices=("refuse", "drop", "count"),
        default="refuse",
        help="labels that none of the names is: refuse the file (the default), leave them out, or add them behind the others",
    )
    shared.add_match(sub)
    shared.flag(sub, "--one-based", "ids in the repository's text files are counted from 1")
    shared.flag(sub, "--by-rank", "take a file's column of ranks for the order")
    option("-k", type=int, help="how many predictions of a row to keep, default all")
    shared.flag(sub, "--force", "replace OUT where it is there already")
    shared.add_listing(sub, _formats, "formats there are")

    sub = command("vectorize", _vectorize, "a dataset from raw text: JSON lines with texts and labels, tf-idf features")
    option = sub.add_argument
    option("source", type=Path, metavar="FILE.jsonl", help="an object a point: title, content, text; labels")
    option("--out", type=Path, required=True, metavar="DIR", help="a new folder: train, test, names, dataset.toml")
    option("--test", type=Path, metavar="FILE.jsonl", help="test points of their own; else a share is drawn")
    option("--test-share", type=float, default=0.2, help="share of test points, default 0.2")
    option("--validation-share", type=float, default=0.0, help="share of points to calibrate on, default none")
    option("--seed", type=int, default=0, help="of the draw, default 0")
    option("--by", metavar="KEY", help="key of a time: the latest points are the test points, none is drawn")
    option("--group", metavar="KEY", help="key whose equal values are never in two parts, such as a series")
    option("--text", nargs="+", metavar="KEY", help="keys of the texts, default title content text")
    option("--label-key", metavar="KEY", help="key of the labels, default labels, target_ind or subjects")
    option("--labels", type=Path, metavar="FILE", help="label names, which fix the ids; default by alphabet")
    option("--min-df", type=int, default=2, help="train points in which a term must occur, default 2")
    option("--ngrams", type=int, default=1, help="longest run of words that is a term, default 1")
    option("--max-features", type=int, help="keep the most frequent terms only")
    shared.flag(sub, "--raw-counts", "a term's count in place of 1 + log of it")
    option("--name", help="of the dataset, default the folder's")
    option(
        "--truth", type=Path, metavar="FILE", help="a new file for the test labels, which DIR then lacks, for a class"
    )


def _formats():
    import pandas as pd

    from xcrepro.tools import formats

    return pd.DataFrame(formats.table())


def _convert(arguments) -> int:
    from xcrepro.tools.formats.convert import convert

    how = shared.taken(arguments, "source", "target", "from_format", "to_format", "kind", "k", "n_labels", "n_rows")
    how |= shared.taken(arguments, "n_features", "unknown", "match", "one_based", "by_rank")
    done = convert(**how, **shared.names_of(arguments), replace=arguments.force)
    print(f"{done.kind}, {done.source} -> {done.target}: {'; '.join(done.shapes)}")
    if done.labels is not None:
        print(f"label names: {done.labels}")
    return 0


def _vectorize(arguments) -> int:
    from xcrepro.core.data.names import read_label_names
    from xcrepro.tools.formats.vectorize import vectorize

    how = shared.taken(arguments, "source", "out", "test", "test_share", "validation_share", "seed", "label_key", "by")
    how |= shared.taken(arguments, "group", "min_df", "ngrams", "max_features", "name", "truth")
    names = None if arguments.labels is None else read_label_names(arguments.labels)
    done = vectorize(**how, text_keys=arguments.text, label_names=names, sublinear=not arguments.raw_counts)
    points = ", ".join(f"{count:,} {part}" for part, count in done.points.items())
    print(f"{done.name}: {points} points; {done.n_features:,} features, {done.n_labels:,} labels")
    if done.without_labels or done.without_features:
        print(f"{done.without_labels:,} points without a label, {done.without_features:,} without a term; they stay")
    if done.left_out:
        print(f"{done.left_out:,} points are in no part, because their group began before theirs")
    print(f"now: xc.load({done.name!r}, {str(arguments.out)!r})")
    return 0
