"""The class judges the truth: what all groups of a board predict for a few records, judged by the students themselves.

:func:`sheets` draws test records at random and writes a sheet per student: the record's words or title, and the labels that
any group's model has among its best, in random order and without saying whose they are or which are recorded. Some records are
in two sheets. :func:`judge` merges what was filled in. It says how well the judges agree, what P@k is on the judged truth
(prediction-powered inference, :mod:`xcrepro.core.judged`), how much of what is right nobody had recorded, and whether the
ranking on the recorded labels holds on the judged ones. No look-up can know that truth.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from xcrepro.core import judged, paths, propensity
from xcrepro.core.arguments import whole_number
from xcrepro.core.data.dataset import Dataset
from xcrepro.core.data.load import load
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.metrics.significance import t_reach
from xcrepro.core.predictions import TopK
from xcrepro.tools.course import board
from xcrepro.tools.formats.csv import without_formulas
from xcrepro.tools.reports import html
from xcrepro.tools.reports.grid import Cell, Grid

FOLDER = "judging"
"""Of a board: a sheet per judge, and what :func:`judge` makes of them."""
COLUMNS = ["record", "text", "label", "heading", "verdict"]
WRITTEN = ("judged.html", "judged.csv", "verdicts.csv")
"""What :func:`judge` writes beside the sheets."""
_ASKED = "asked.csv"
_SAID = {"1": 1, "yes": 1, "y": 1, "right": 1, "0": 0, "no": 0, "n": 0, "wrong": 0}
_LEAST = 3


class Outcome(NamedTuple):
    """What a class found.

    ``ranking`` has student, observed (P@k on the recorded labels), judged with low and high, rank and judged rank.
    ``pairs`` has left, right, observed, judged, low, high and held: "yes", "no" if the judged interval is on the other
    side, else "cannot tell", or "tie". ``agreement`` is :func:`xcrepro.core.judged.agreement`'s table. ``numbers`` are
    counts and shares, ``said`` the sentences that the command prints.
    """

    ranking: pd.DataFrame
    pairs: pd.DataFrame
    agreement: pd.DataFrame
    numbers: dict[str, float]
    said: list[str]


def sheets(
    folder: str | os.PathLike, *, records: int = 10, shared: int = 2, judges: Sequence[str] | None = None
) -> pd.DataFrame:
    """Write a sheet for each judge into ``DIR/judging``.

    Parameters
    ----------
    folder : path
        A board that students have handed in to. What is new there is taken in first.
    records : int
        Records per sheet, 1 or more.
    shared : int
        How many of them another judge has as well, from 0 to one less than ``records``; 0 for a single judge.
    judges : sequence of str, optional
        Their names, which are those of the sheets; by default all who have a folder in ``submissions``.

    Returns
    -------
    DataFrame
        judge, records, predictions (lines to fill in), and the sheet's path.

    Raises
    ------
    ArgumentError
        Where sheets are there already (they may hold verdicts), nobody has a sound submission, records cannot be read by a
        person, or there are too few of them.
    """
    folder = Path(folder)
    settings, state = board.submitted(folder)
    if (folder / FOLDER).exists():
        raise ArgumentError(
            "DIR", f"must have no folder {FOLDER} yet", folder / FOLDER, "it may hold verdicts: move it away"
        )
    names = board.students(folder) if judges is None else [*judges]
    if not names or len({*names}) != len(names) or any(not name or Path(name).name != name for name in names):
        raise ArgumentError("judges", "must be names of files, one or more, each once", names)
    if taken := {f"{name}.csv" for name in names} & {*WRITTEN}:
        raise ArgumentError("judges", f"must not be names of what is written later, {', '.join(WRITTEN)}", min(taken))
    if not state.tops:
        raise ArgumentError("DIR", "must have a sound submission in time: its predictions are what is judged", folder)
    whole_number("records", records, 1)
    shared = (
        0 if len(names) == 1 else whole_number("shared", shared, 0, records - 1, "each sheet needs records of its own")
    )
    own, n = records - shared, state.observed.shape[0]
    if own * len(names) > n:
        do = f"take at most {n // len(names) + shared} records for each of {len(names)} judges"
        raise ArgumentError("records", f"must fit into the {n} test records", records, do)
    ds = load("board", folder / "public", check=False)
    random = np.random.default_rng([settings["seed"], 3])
    drawn = random.permutation(n)[: own * len(names)].reshape(len(names), own)
    k, asked = board.deepest(settings["metrics"]), []
    for at, name in enumerate(names):
        rows = random.permutation(np.concatenate([drawn[at], drawn[(at + 1) % len(names)][:shared]]))
        asked += [
            (name, int(row), int(label)) for row in rows for label in random.permutation(_pool(state.tops, row, k))
        ]
    table = pd.DataFrame(asked, columns=["judge", "record", "label"])
    shown = _readable(table.assign(verdict=""), ds, folder)
    with paths.filling(folder / FOLDER) as part:
        for name, sheet in shown.groupby("judge", sort=False):
            (part / f"{name}.csv").write_bytes(_csv(sheet[COLUMNS]))
        (part / "README.md").write_text(_readme(), encoding="utf-8")
    with paths.atomic_path(folder / "hidden" / _ASKED) as part:
        table.to_csv(part, index=False, lineterminator="\n")
    found = (
        table.groupby("judge", sort=False)
        .agg(records=("record", "nunique"), predictions=("label", "size"))
        .reset_index()
    )
    return found.assign(sheet=[str(folder / FOLDER / f"{name}.csv") for name in found["judge"]])


def judge(folder: str | os.PathLike, *, interval: float = 0.95) -> Outcome:
    """Merge the sheets that were filled in, and rank the groups by the judged truth.

    A record counts if every prediction on it has a verdict: 1 or yes, 0 or no. Where two judges differ, it is no. A recorded
    label counts as right whatever a judge says; how often judges agree with the record is said. A sheet that is blank or not
    there has no verdicts, and its judge is named; so is every file in the folder that was not read. Of a sheet only record,
    label and verdict are read, so commas, semicolons or tabs may separate, and letters may be in any encoding that has ASCII.
    Writes ``judged.html``, ``judged.csv`` and ``verdicts.csv``, with texts and judges' names, into ``DIR/judging``.

    Parameters
    ----------
    folder : path
        A board with :func:`sheets`.
    interval : float
        Level of the intervals, for the draw of the records. They say nothing about wrong verdicts.

    Returns
    -------
    Outcome

    Raises
    ------
    DataMissing, DataError, ArgumentError
        Where there are no sheets; for a sheet with other columns, a verdict that is none of the above, a line that was not
        asked, by its file and line; with fewer than three judged records.
    """
    folder = Path(folder)
    settings, state = board.submitted(folder)
    asked = _asked(folder)
    found = [
        line
        for name, part in asked.groupby("judge", sort=False)
        for line in _read(folder / FOLDER / f"{name}.csv", name, part)
    ]
    # Also without a line the ids are whole numbers: they are places in lists.
    given = pd.DataFrame(found, columns=["record", "label", "verdict", "judge"])
    given = given.astype({"record": np.int64, "label": np.int64, "verdict": np.int64})
    rows, unread = _complete(asked, given), _unread(folder, asked)
    if len(rows) < _LEAST:
        do = f"a record counts when all its predictions have a verdict; {given['record'].nunique()} have some"
        do += f". {unread}" * bool(unread)
        raise ArgumentError("DIR", f"must have {_LEAST} judged records or more", f"{len(rows)}", do)
    given = given[given["record"].isin(rows)].reset_index(drop=True)
    given["recorded"] = np.asarray(state.observed[given["record"], given["label"]]).ravel() > 0
    said = given.rename(columns={"record": "row"})[["row", "label", "verdict", "judge"]]
    open_ = said[~given["recorded"]]
    metric = board.deepest(settings["metrics"][:1])
    known = {*zip(open_["row"], open_["label"], strict=True)}
    tops = {name: top for name, top in state.tops.items() if _covered(top, state.observed, rows, metric, known)}
    if not tops:
        raise ArgumentError(
            "DIR", "must have a submission whose predictions were judged", folder, "all are newer than the sheets"
        )
    how = {"ks": [metric], "metrics": ["P"], "rows": rows}
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always", judged.JudgedWarning)
        values = judged.estimate(state.observed, tops, open_, interval=interval, **how)
    ranking = values[["model", "observed", "value", "low", "high"]].set_axis(
        ["student", "observed", "judged", "low", "high"], axis=1
    )
    ranking = ranking.sort_values("observed", ascending=False, kind="stable").reset_index(drop=True)
    for name, column in (("rank", "observed"), ("judged rank", "judged")):
        ranking[name] = ranking[column].rank(ascending=False, method="min").astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", judged.JudgedWarning)  # said once
        pairs = _pairs(state.observed, tops, ranking, open_, interval, how)
    numbers = _numbers(given, state, rows, interval)
    agreed = judged.agreement(said)
    late = sorted({*state.tops} - {*tops})
    sentences = _sentences(numbers, agreed, asked, pairs, late, metric, interval)
    if silent := [name for name in asked["judge"].unique() if name not in {*given["judge"]}]:
        sentences.insert(1, f"No record is judged by: {', '.join(silent)}.")
    sentences += [unread] * bool(unread)
    sentences += [f"Warning: {text}" for text in dict.fromkeys(str(one.message) for one in doubts)]
    outcome = Outcome(ranking, pairs, agreed, numbers, sentences)
    whole = _readable(given, load("board", folder / "public", check=False), folder)[[*COLUMNS, "judge", "recorded"]]
    page = html.page("Judged by the class", _body(outcome, metric))
    contents = (page.encode(), _csv(ranking, "%.6g"), _csv(whole))
    paths.write_together({folder / FOLDER / name: what for name, what in zip(WRITTEN, contents, strict=True)})
    return outcome


def _csv(table: pd.DataFrame, digits: str | None = None) -> bytes:
    """CSV with a byte-order mark, without which Excel shows letters such as ö wrongly."""
    return without_formulas(table).to_csv(index=False, float_format=digits, lineterminator="\n").encode("utf-8-sig")


def _readable(table: pd.DataFrame, ds: Dataset, folder: Path) -> pd.DataFrame:
    """The table with what a person reads of each record and label."""
    texts, names = _texts(ds, folder), ds.label_names
    headings = [names[label] if names else f"label {label}" for label in table["label"]]
    return table.assign(text=[texts[row] for row in table["record"]], heading=headings)


def _texts(ds: Dataset, folder: Path) -> Sequence[str]:
    """What a person reads of each test record: its title, or the words that say most of it."""
    titles = folder / "public" / board.TEXTS
    if titles.exists():
        return titles.read_text(encoding="utf-8").splitlines()
    texts = judged.texts_of(ds)
    if not len(texts):
        rule = "must have words or titles, else nobody can judge a record"
        raise ArgumentError("DIR", rule, folder, "make the board of tib or gutenberg, or of --data with words")
    return texts


def _pool(tops: dict[str, TopK], row: int, k: int) -> np.ndarray:
    """The labels that any group has among its first k for a record."""
    ids = np.unique(np.concatenate([top.ids[row, :k] for top in tops.values()]))
    return ids[ids >= 0]


def _asked(folder: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(folder / "hidden" / _ASKED, dtype={"judge": str}, keep_default_na=False)
    except FileNotFoundError:
        raise DataMissing(f"{folder} has no sheets: `xcrepro course-board sheets {folder}` writes them") from None
    return table.astype({"record": np.int64, "label": np.int64})


def _unread(folder: Path, asked: pd.DataFrame) -> str:
    """Which files beside the sheets were not read, as a sentence; empty if there is none."""
    known = {f"{name}.csv" for name in asked["judge"]} | {"README.md", *WRITTEN}
    # Names that begin so are those of the system and of spreadsheets that have a sheet open.
    there = (path.name for path in (folder / FOLDER).glob("*") if not path.name.startswith((".", "~$")))
    names = ", ".join(sorted({*there} - known))
    do = "Save each sheet as CSV, under the name that it had."
    return f"Not read, because no sheet has this name: {names}. {do}" if names else ""


def _read(path: Path, name: str, asked: pd.DataFrame) -> list[tuple[int, int, int, str]]:
    """The verdicts of a sheet: record, label, verdict, judge; none where it is not there or blank."""
    if not path.exists():
        return []
    how = {"encoding": "utf-8-sig", "encoding_errors": "replace", "sep": None, "engine": "python"}
    try:
        sheet = pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False, **how)
    except (ValueError, OSError, csv.Error) as error:
        raise DataError(path, str(error), f"a CSV file with the columns {', '.join(COLUMNS)}") from error
    if not {*COLUMNS} <= {*sheet.columns}:
        do = "Put the verdicts into the sheet as it was written, and save it as CSV"
        raise DataError(path, f"columns {', '.join(sheet.columns)}", f"the columns {', '.join(COLUMNS)}", line=1, do=do)
    wanted, seen, found = {*zip(asked["record"], asked["label"], strict=True)}, set(), []
    for line, row in enumerate(sheet.to_dict("records"), start=2):
        text = row["verdict"].strip().casefold()
        pair = tuple(int(row[of]) if row[of].strip().isdecimal() else -1 for of in ("record", "label"))
        if pair not in wanted or pair in seen:
            expected = (
                "a line of the sheet, once" if pair in wanted else "a record and label that this judge was asked about"
            )
            raise DataError(path, f"record {row['record']!r}, label {row['label']!r}", expected, line=line)
        seen.add(pair)
        if text and text not in _SAID:
            raise DataError(path, f"verdict {row['verdict']!r}", "1 or yes, 0 or no, or nothing yet", line=line)
        if text:
            found.append((*pair, _SAID[text], name))
    return found


def _complete(asked: pd.DataFrame, given: pd.DataFrame) -> np.ndarray:
    """The records of which every prediction has a verdict, rising."""
    known = {*zip(given["record"], given["label"], strict=True)}
    whole = [pair in known for pair in zip(asked["record"], asked["label"], strict=True)]
    by_record = pd.Series(whole, index=asked["record"]).groupby(level=0).all()
    return by_record.index[by_record].to_numpy(np.int64)


def _covered(top: TopK, observed, rows: np.ndarray, k: int, known: set) -> bool:
    """Whether each of a group's first k on the judged records is recorded or has a verdict: not if it is newer."""
    ids = top.ids[rows, :k]
    at, label = np.repeat(rows, ids.shape[1])[ids.ravel() >= 0], ids.ravel()[ids.ravel() >= 0]
    new = np.asarray(observed[at, label]).ravel() == 0
    return all(pair in known for pair in zip(at[new].tolist(), label[new].tolist(), strict=True))


def _pairs(observed, tops: dict, ranking: pd.DataFrame, said: pd.DataFrame, interval: float, how: dict) -> pd.DataFrame:
    """Every pair of groups, left the one that is ahead on the recorded labels."""
    columns = ["left", "right", "observed", "judged", "low", "high", "held"]
    if len(tops) < 2:
        return pd.DataFrame(columns=columns)
    in_order = {name: tops[name] for name in ranking["student"]}
    found = judged.compare(observed, in_order, said, interval=interval, **how)
    pairs = found[["left", "right", "observed", "value", "low", "high"]].set_axis(columns[:-1], axis=1)
    held = np.where(pairs["low"] > 0, "yes", np.where(pairs["high"] < 0, "no", "cannot tell"))
    return pairs.assign(held=np.where(pairs["observed"] == 0, "tie", held))


def _numbers(given: pd.DataFrame, state, rows: np.ndarray, interval: float) -> dict[str, float]:
    """Shares: recorded predictions that judges accept, others that are right, and what is missing at least, with its ends."""
    each = given.groupby(["record", "label"]).agg(yes=("verdict", "mean"), recorded=("recorded", "first")).reset_index()
    each["right"] = each["yes"] > 0.5
    others, recorded = each[~each["recorded"]], each[each["recorded"]]
    new = others.groupby("record")["right"].sum().reindex(rows, fill_value=0).to_numpy(float)
    there = np.diff(state.observed.indptr)[rows].astype(float)
    share = new.sum() / max((new + there).sum(), 1)
    n, left = len(rows), 1 - len(rows) / state.observed.shape[0]
    spread = new - share * (new + there)
    error = np.sqrt(left * n / (n - 1) * (spread**2).sum()) / max((new + there).sum(), 1)
    reach = t_reach(interval, n - 1) * error
    counts = np.asarray(state.train.sum(axis=0)).ravel()
    weights = propensity.inverse(counts, state.train.shape[0])
    return {
        "records": n,
        "judges": given["judge"].nunique(),
        "predictions": len(each),
        "recorded accepted": recorded["right"].mean() if len(recorded) else np.nan,
        "unrecorded": len(others),
        "unrecorded right": int(others["right"].sum()),
        "missing at least": share,
        "missing low": max(share - reach, 0.0),
        "missing high": min(share + reach, 1.0),
        "missing by equation 1": 1 - state.observed.nnz / weights[state.observed.indices].sum(),
    }


def _sentences(numbers, agreed, asked, pairs, late, k: int, interval: float) -> list[str]:
    """What was found, in words."""
    level = f"{100 * interval:g} %"
    said = [
        f"{numbers['records']} of {asked['record'].nunique()} records are judged, by {numbers['judges']} judges: "
        f"{numbers['predictions']} predictions, {numbers['unrecorded']} of them not recorded."
    ]
    if len(agreed):
        share = (agreed["agree"] * agreed["pairs"]).sum() / agreed["pairs"].sum()
        said.append(
            f"Two judges agree on {100 * share:.0f} % of the {agreed['pairs'].sum()} predictions that both judged."
        )
        if 0.5 <= share < 1:  # as in judged.agreement, over all pairs of judges
            wrong = 100 * (1 - np.sqrt(2 * share - 1)) / 2
            said[-1] += (
                f" If all err equally often, {wrong:.1f} % of the verdicts are wrong, and a small P@{k} may be too large by as "
                "many points. The intervals do not include that."
            )
    if not np.isnan(numbers["recorded accepted"]):
        said.append(f"Of the predictions that are recorded, judges accept {100 * numbers['recorded accepted']:.0f} %.")
    said.append(
        f"{numbers['unrecorded right']} of the {numbers['unrecorded']} unrecorded predictions are right after all. So at least "
        f"{100 * numbers['missing at least']:.0f} % of what is right for a record was missing ({level} interval "
        f"{100 * numbers['missing low']:.0f} to {100 * numbers['missing high']:.0f} %): labels that no group predicted are not "
        f"counted. Equation 1 of Jain et al. (2016) says {100 * numbers['missing by equation 1']:.0f} %."
    )
    if len(pairs):
        counted = pairs["held"].value_counts()
        said.append(
            f"Pairs of groups: {len(pairs)}. Their order by P@{k} on the recorded labels holds on the judged ones for "
            f"{counted.get('yes', 0)}, turns for {counted.get('no', 0)}, and cannot be told for "
            f"{counted.get('cannot tell', 0)}; {counted.get('tie', 0)} tie on the recorded labels."
        )
    if late:
        said.append(f"Not judged, because handed in after the sheets were written: {', '.join(late)}.")
    return said


def _body(outcome: Outcome, k: int) -> str:
    parts = ['<main class="xcrepro-report"><h1>Judged by the class</h1>']
    parts += [f"<p>{html.escape(text)}</p>" for text in outcome.said]
    rows = [
        [
            Cell(row["student"]),
            Cell(str(row["rank"]), number=row["rank"]),
            Cell(f"{100 * row['observed']:.1f}", number=row["observed"]),
            Cell(str(row["judged rank"]), number=row["judged rank"]),
            Cell(f"{100 * row['judged']:.1f}", f"{100 * row['low']:.1f} to {100 * row['high']:.1f}", row["judged"]),
        ]
        for row in outcome.ranking.to_dict("records")
    ]
    columns = ["student", "rank", f"P@{k}, recorded labels", "rank, judged", f"P@{k}, judged"]
    parts.append(Grid("judged", "One row per group. Percent.", columns, rows).html())
    if len(outcome.pairs):
        rows = [
            [
                Cell(row["left"]),
                Cell(row["right"]),
                Cell(f"{100 * row['observed']:+.1f}", number=row["observed"]),
                Cell(
                    f"{100 * row['judged']:+.1f}", f"{100 * row['low']:+.1f} to {100 * row['high']:+.1f}", row["judged"]
                ),
                Cell(row["held"]),
            ]
            for row in outcome.pairs.to_dict("records")
        ]
        columns = ["left", "right", "recorded labels", "judged", "same order"]
        parts.append(Grid("pairs", f"P@{k} of left minus right, in points", columns, rows).html())
    return "\n".join([*parts, "</main>"])


def _readme() -> str:
    return """# The class judges

Each sheet is for one student. Read the text of a record, then write under *verdict* for every heading: 1 if you would look
for this record under it, 0 if not. Do not ask whether it is the best heading, and do not look the record up. A record counts
when all its headings have a verdict; you may stop after any record. Leave the other columns as they are.
"""
