"""``judge``: which predictions people should look at, and what the metrics are on the complete truth after they did."""

from __future__ import annotations

import sys
from pathlib import Path

from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.tools.commands import shared
from xcrepro.tools.commands.evaluation import PLACES


def add(command) -> None:
    sub = command("judge", None, "judge a few random rows, and estimate metrics on the complete truth")
    parts = sub.add_subparsers(required=True, metavar="sample|estimate|sheets|second")
    drawn = parts.add_parser("sample", help="draw rows at random and write a sheet of their predictions to fill in")
    found = parts.add_parser("estimate", help="metrics on the complete truth, from a sheet that was filled in")
    shared_out = parts.add_parser("sheets", help="for a class: draw rows and write a sheet for each judge")
    again = parts.add_parser("second", help="for a class: what one judge called right, for another to look at")
    for part, function in ((drawn, _sample), (found, _estimate), (shared_out, _sheets), (again, _second)):
        part.set_defaults(command=function)
        part.add_argument("truth", help="test labels, as for evaluate; or a dataset's name")
        part.add_argument("predictions", type=Path, nargs="+", help="a file for each model, or a folder of such files")
        part.add_argument(
            "-k", type=int, nargs="+", default=[1, 3, 5], help="default: 1 3 5; people judge up to the largest"
        )
        part.add_argument("--points", type=int, help="of tib: how many of its records, default all")
        part.add_argument("--train-truth", type=Path, help="training labels, as for evaluate; a dataset has its own")
        part.add_argument(
            "--texts",
            type=Path,
            metavar="FILE",
            help="a line of text for each row, for people to read; a dataset's own titles or words are shown without it",
        )
        shared.add_reading(part)
    drawn.add_argument("-n", type=int, default=50, help="rows to judge, default 50; a larger one adds rows at the end")
    for part in (drawn, shared_out, again):
        part.add_argument("--seed", type=int, default=0, help="default 0")
    shared_out.add_argument("--judges", nargs="+", metavar="NAME", required=True, help="a sheet for each of them")
    shared_out.add_argument("--records", type=int, default=10, help="rows per sheet, default 10")
    shared_out.add_argument(
        "--shared", type=int, default=2, help="how many of them a second judge has as well, default 2"
    )
    shared_out.add_argument("--out", type=Path, required=True, help="a new folder for the sheets")
    again.add_argument("--verdicts", type=Path, required=True, help="the folder of the sheets")
    drawn.add_argument("--out", type=Path, required=True, help="the sheet, a new CSV file: write 1 or 0 under verdict")
    shared.flag(drawn, "--add", "keep the sheet --out as it is, and add the lines that it lacks at its end")
    sheet = "the sheet, to which lines of more judges may be added; or the folder of a class's sheets"
    found.add_argument("--verdicts", type=Path, required=True, help=sheet)
    found.add_argument("--metrics", nargs="+", default=["P"], help="default P; or coverage; or R, nDCG with --complete")
    shared.flag(found, "--complete", "judges named every relevant label of the drawn rows")
    found.add_argument(
        "--proxy",
        type=Path,
        metavar="FILE",
        help="cheap verdicts on all predictions, 0 (wrong) to 1 (right), in any form of predictions: narrower intervals",
    )
    found.add_argument("--confidence-level", type=float, default=0.95, help="default 0.95")
    found.add_argument(
        "--within",
        type=float,
        help="say how many more rows it takes until intervals reach that many points to either side",
    )
    shared.flag(found, "--csv", "full precision, as CSV")


def _read(arguments) -> tuple:
    """Truth, predictions by model, and all that was read."""
    found = shared.read(arguments, arguments.predictions, max(*arguments.k, PLACES))
    return found.truth, found.tops, found


def _texts(arguments, read):
    """What can be read of each row: the lines of ``--texts``, or what the dataset has."""
    from xcrepro.core import judged
    from xcrepro.core.data.lines import text_lines

    if arguments.texts is None:
        return judged.texts_of(read.dataset)
    return [text for _, text in text_lines(arguments.texts)]


def _sample(arguments) -> int:
    from xcrepro.core import judged
    from xcrepro.core.paths import atomic_path
    from xcrepro.tools.formats.csv import without_formulas

    if arguments.out.exists() != arguments.add:
        given = _filled(arguments.out) if arguments.out.exists() else f"{arguments.out}, which is not there"
        rule = "must be there, for --add to add to it" if arguments.add else "must not be there yet"
        do = "" if arguments.add else "--add keeps it and adds rows at its end; or take another name"
        raise ArgumentError("--out", rule, given, do)
    truth, tops, read = _read(arguments)
    names = None if read.label_names is None else read.label_names.names
    rows = judged.sample(truth.shape[0], arguments.n, arguments.seed)
    table = without_formulas(judged.sheet(truth, tops, rows, max(arguments.k), names, _texts(arguments, read)))
    before, table = _lacking(arguments.out, table, rows) if arguments.add else (b"", table)
    with atomic_path(arguments.out) as part:
        part.write_bytes(before + table.to_csv(index=False, header=not before, lineterminator="\n").encode())
    blank = int((table["verdict"] == "").sum())
    if before:
        print(f"{arguments.out}: {len(table)} lines added at the end, {blank} to judge; what was there is as it was")
        return 0
    say = f"{rows.size} rows, {blank} predictions to judge, in this order; you may stop after any row."
    print(f"{arguments.out}: {say}\nThen: xcrepro judge estimate ... --verdicts {arguments.out}")
    return 0


def _filled(sheet: Path) -> str:
    """A sheet, and how many verdicts people wrote into it."""
    import pandas as pd

    try:
        table = pd.read_csv(sheet, dtype=str, keep_default_na=False, index_col=False)
        written = ~table["verdict"].str.strip().eq("") & ~table["judge"].isin(["observed", "nothing predicted"])
        return f"{sheet}, which holds {int(written.sum())} verdicts"
    except (ValueError, KeyError, OSError):
        return str(sheet)


def _lacking(sheet: Path, table, rows) -> tuple[bytes, object]:
    """The bytes of a sheet, and the lines of ``table`` for pairs that it lacks, in its columns."""
    import pandas as pd

    do = "Only a sheet of this command can be added to"
    try:
        before = sheet.read_bytes()
        there = pd.read_csv(sheet, dtype=str, keep_default_na=False, index_col=False)
        known = set(zip(there["row"].astype(int), there["label"].astype(int), strict=True))
    except (ValueError, KeyError) as error:
        raise DataError(sheet, str(error), "a CSV file with the header row,label,verdict,judge", do=do) from None
    if odd := sorted({row for row, _ in known} - set(rows.tolist())):
        found, expected = f"row {odd[0]}", "rows that are drawn now as well"
        raise DataError(sheet, found, expected, do="Take the seed of that draw, and no smaller -n")
    new = [pair not in known for pair in zip(table["row"], table["label"], strict=True)]
    table = table[new].reindex(columns=[*there.columns], fill_value="")
    return before + (b"" if before.endswith(b"\n") else b"\n"), table


def _proxy(path: Path, read):
    """Cheap verdicts, by the rows and labels of what was read."""
    from xcrepro.tools import formats

    names = read.label_names if read.label_names is not None and len(read.label_names) == read.truth.shape[1] else None
    about = {"n_labels": read.truth.shape[1], "label_names": names}
    about |= {"row_ids": read.row_ids} if read.row_ids else {"n_rows": read.truth.shape[0]}
    return formats.read_predictions(path, **about)


def _class(arguments, read) -> dict:
    """What the functions for a class read beside truth and predictions."""
    names = None if read.label_names is None else read.label_names.names
    return {"texts": _texts(arguments, read), "label_names": names}


def _sheets(arguments) -> int:
    from xcrepro.tools.course import judging

    truth, tops, read = _read(arguments)
    how = shared.taken(arguments, "records", "shared", "seed") | {"k": max(arguments.k)}
    table = judging.sheets(arguments.out, truth, tops, arguments.judges, **_class(arguments, read), **how)
    shared.print_table(table, False, 0)
    print(f"Then: xcrepro judge second ... and estimate ... --verdicts {arguments.out}")
    return 0


def _second(arguments) -> int:
    from xcrepro.tools.course import judging

    truth, _, read = _read(arguments)
    table = judging.second(arguments.verdicts, truth, **_class(arguments, read), seed=arguments.seed)
    shared.print_table(table, False, 0)
    print(f"Then: xcrepro judge estimate ... --verdicts {arguments.verdicts}")
    return 0


def _of_a_class(arguments) -> int:
    from xcrepro.tools.course import judging

    others = ("complete", "proxy", "within", "csv")
    shared.refuse(arguments, others, "goes with one sheet", "the verdicts of a class are a folder of sheets")
    truth, tops, read = _read(arguments)
    how = {"k": max(arguments.k), "confidence_level": arguments.confidence_level, "train": read.train}
    found = judging.judge(arguments.verdicts, truth, tops, **_class(arguments, read), **how)
    shared.print_table(found.ranking, False, 4)
    shared.print_table(found.judges, False, 2)
    for text in found.said:
        print(text)
    print(arguments.verdicts / judging.WRITTEN[0])
    return 0


def _estimate(arguments) -> int:
    import warnings

    from xcrepro.core import judged

    if arguments.verdicts.is_dir():
        return _of_a_class(arguments)
    truth, tops, read = _read(arguments)
    proxy = None if arguments.proxy is None else _proxy(arguments.proxy, read)
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always", judged.JudgedWarning)
        said = judged.verdicts(arguments.verdicts)
        how = {"complete": arguments.complete, "proxy": proxy}
        both = judged.Judged(truth, tops, said, arguments.k, arguments.metrics, **how)
        found = [both.estimate(confidence_level=arguments.confidence_level)]
        found += [both.compare(confidence_level=arguments.confidence_level)] if len(tops) > 1 else []
    for text in dict.fromkeys(str(each.message) for each in doubts):
        print(f"warning: {text}", file=sys.stderr)
    for table in found:
        shared.print_table(table, arguments.csv, 4)
    if arguments.within is not None:
        more = [judged.next_rows(table, said, arguments.within / 100.0, truth.shape[0]).size for table in found]
        what = f"until every interval reaches {arguments.within:g} points to either side"
        print(f"{max(more)} more rows {what}: judge sample --add -n {said.drawn.size + max(more)}")
    return 0
