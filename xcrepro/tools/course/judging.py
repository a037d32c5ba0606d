"""A class judges the truth: what several models predict for a few records, judged by the students themselves.

:func:`sheets` draws records at random and writes a sheet per student: a record's words or title, and the labels that any
model has among its best, in random order, without saying whose they are or which are recorded. Some records are in two
sheets. :func:`second` shows each label that is not recorded and was called right to another student. :func:`judge` merges what
was filled in: how well the judges agree, what each of them does to the result, P@k on the judged truth (prediction-powered
inference, :mod:`xcrepro.core.judged`), how much of what is right nobody had recorded, and whether the ranking on the recorded
labels holds.
"""

from __future__ import annotations

import codecs
import csv
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from xcrepro.core import judged, paths, propensity
from xcrepro.core.arguments import whole_number
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.metrics.significance import t_reach
from xcrepro.core.predictions import TopK
from xcrepro.tools.formats.csv import without_formulas
from xcrepro.tools.reports import html
from xcrepro.tools.reports.grid import of_table

COLUMNS = ["record", "text", "label", "heading", "verdict"]
AGAIN = "second"
"""The folder of second looks, beside the sheets."""
WRITTEN = ("judged.html", "verdicts.csv", "disputes.csv")
"""What :func:`judge` writes beside the sheets."""
_ASKED = "asked.csv"
_SAID = {"1": 1, "yes": 1, "y": 1, "right": 1, "0": 0, "no": 0, "n": 0, "wrong": 0}
_LEAST = 3


class Outcome(NamedTuple):
    """What a class found.

    ``ranking`` has model, observed (P@k on the recorded labels), judged with low and high, rank and judged rank. ``pairs`` has
    left, right, observed, judged, low, high and held: "yes", "no" if the judged interval is on the other side, else "cannot
    tell", or "tie". ``judges`` has a row per judge: verdicts, accepted (the share of recorded predictions that she calls
    right), right (the same of the others), agree (with others, on ``shared`` predictions), and moves: by how much the P@k of a
    model changes at most without the records of her sheet, in half widths of its interval. ``numbers`` are counts and shares,
    ``said`` the sentences that the command prints.
    """

    ranking: pd.DataFrame
    pairs: pd.DataFrame
    judges: pd.DataFrame
    numbers: dict[str, float]
    said: list[str]


def sheets(
    folder: str | os.PathLike,
    truth,
    tops: Mapping[str, TopK],
    judges: Sequence[str],
    *,
    texts: Sequence[str],
    label_names: Sequence[str] | None = None,
    records: int = 10,
    shared: int = 2,
    k: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """Write a sheet for each judge into a new folder.

    Parameters
    ----------
    folder : path
    truth, tops
        The recorded labels, and the predictions of each model.
    judges : sequence of str
        Their names, which are those of the sheets.
    texts : sequence of str
        What to read of each record.
    label_names : sequence of str, optional
    records, shared : int
        Records per sheet, and how many of them another judge has as well, from 0 to one less.
    k : int
        Predictions of each model and record that are judged.
    seed : int

    Returns
    -------
    DataFrame
        judge, records, predictions (lines to fill in), and the sheet's path.

    Raises
    ------
    ArgumentError
        Where the folder has files (they may hold verdicts), nobody can read the records, or there are too few of them.
    """
    folder, names, n = Path(folder), [*judges], truth.shape[0]
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArgumentError("--out", "must be a new or an empty folder", folder, "it may hold verdicts: take another")
    known = {name.removesuffix(".csv") for name in (*WRITTEN, _ASKED)}
    if not names or len({*names}) != len(names) or any(not name or Path(name).name != name for name in names):
        raise ArgumentError("judges", "must be names of files, one or more, each once", names)
    if taken := {*names} & {*known, AGAIN}:
        raise ArgumentError("judges", f"must not be names of what else is written, {', '.join(WRITTEN)}", min(taken))
    if len(texts) != n:
        do = "give the records' words or titles (--texts), a line for each"
        raise ArgumentError(
            "texts", f"must be one for each of the {n} records, so that people can judge", len(texts), do
        )
    whole_number("records", records, 1)
    few = "each sheet needs records of its own"
    shared = 0 if len(names) == 1 else whole_number("shared", shared, 0, records - 1, few)
    own = records - shared
    if own * len(names) > n:
        do = f"take at most {n // len(names) + shared} records for each of {len(names)} judges"
        raise ArgumentError("records", f"must fit into the {n} test records", records, do)
    drawn = judged.sample(n, own * len(names), seed).reshape(len(names), own)
    random, asked = np.random.default_rng([seed, 3]), []
    for at, name in enumerate(names):
        for row in random.permutation(np.concatenate([drawn[at], drawn[(at + 1) % len(names)][:shared]])):
            pool = np.unique(np.concatenate([top.ids[row, :k] for top in tops.values()]))
            pool = pool[pool >= 0] if (pool >= 0).any() else np.array([judged.DRAWN])
            asked += [(name, int(row), int(label)) for label in random.permutation(pool)]
    return _write_sheets(folder, asked, texts, label_names)


def second(
    folder: str | os.PathLike, truth, *, texts: Sequence[str], label_names: Sequence[str] | None = None, seed: int = 0
) -> pd.DataFrame:
    """Write ``DIR/second``: each label that is not recorded and that one judge called right, for another judge to look at.

    Few predictions are right without being recorded. So a small share of wrong verdicts makes many of them, and a second look
    at these alone takes most of it away. Who has judged the record does not get it again. Raises as :func:`sheets` does, and
    where there is nothing to look at or only one judge.
    """
    folder = Path(folder)
    asked, given = _given(folder)
    if (folder / AGAIN).exists():
        do = "it may hold verdicts: move it away"
        raise ArgumentError("DIR", f"must have no folder {AGAIN} yet", folder / AGAIN, do)
    each = given.groupby(["record", "label"])["verdict"].agg(["sum", "size"]).query("sum == size == 1").reset_index()
    if len(each):
        each = each[np.asarray(truth[each["record"], each["label"]]).ravel() == 0]
    judges = [*dict.fromkeys(given["judge"])]
    if len(judges) < 2 or each.empty:
        got = f"{len(judges)} judges with verdicts, {len(each)} such predictions"
        raise ArgumentError("DIR", "must have predictions that one of several judges called right", got)
    random, load, lines = np.random.default_rng([seed, 4]), dict.fromkeys(judges, 0), []
    saw = set(zip(asked["judge"], asked["record"], strict=True))
    for record, label in random.permutation(each[["record", "label"]].to_numpy(np.int64)).tolist():
        free = [name for name in random.permutation(judges).tolist() if (name, record) not in saw]
        if free:
            name = min(free, key=load.__getitem__)
            load[name] += 1
            lines.append((name, record, label))
    lines.sort(key=lambda line: judges.index(line[0]))
    return _write_sheets(folder / AGAIN, lines, texts, label_names)


def judge(
    folder: str | os.PathLike,
    truth,
    tops: Mapping[str, TopK],
    *,
    texts: Sequence[str] = (),
    label_names: Sequence[str] | None = None,
    train=None,
    k: int = 5,
    confidence_level: float = 0.95,
) -> Outcome:
    """Merge the sheets that were filled in, second looks included, and rank the models by the judged truth.

    A record counts if every prediction on it has a verdict: 1 or yes, 0 or no. The majority of its judges decides, and where
    they are split, it is no. A recorded label counts as right whatever a judge says; how often judges agree with the record is
    said. A sheet that is blank or not there has no verdicts, and its judge is named; so is every file in the folder that was
    not read. Of a sheet only record, label and verdict are read, so commas, semicolons or tabs may separate, and letters may be
    in any encoding that has ASCII. Writes :data:`WRITTEN` into the folder; ``disputes.csv`` has numbers in place of judges.

    Parameters
    ----------
    folder, truth, tops, texts, label_names, k
        As for :func:`sheets`.
    train : csr_matrix, optional
        Training labels; with them the share that equation 1 of jain16 takes for missing is said.
    confidence_level : float
        Level of the intervals, for the draw of the records. They say nothing about wrong verdicts.

    Raises
    ------
    DataMissing, DataError, ArgumentError
        Where there are no sheets; for a sheet with other columns, a verdict that is none of the above, a line that was not
        asked, by its file and line; with fewer than three judged records.
    """
    asked, given = _given(folder := Path(folder))
    rows, unread = _complete(asked, given), _unread(folder, asked)
    if len(rows) < _LEAST:
        do = f"a record counts when all its predictions have a verdict; {given['record'].nunique()} have some"
        do += f". {unread}" * bool(unread)
        raise ArgumentError("DIR", f"must have {_LEAST} judged records or more", len(rows), do)
    agreed = judged.agreement(_table(given[given["record"].isin(rows)]))
    again = _given(folder / AGAIN) if (folder / AGAIN).exists() else None
    given = given if again is None else pd.concat([given, again[1]], ignore_index=True)
    given = given[given["record"].isin(rows)].reset_index(drop=True)
    given["recorded"] = np.asarray(truth[given["record"], given["label"]]).ravel() > 0
    open_ = _table(given[~given["recorded"]])
    known = {*zip(open_["row"], open_["label"], strict=True)}
    judged_tops = {name: top for name, top in tops.items() if _covered(top, truth, rows, k, known)}
    if not judged_tops:
        do = "give the predictions that the sheets were made of, and the same -k"
        raise ArgumentError("predictions", "must be those that were judged", [*tops], do)
    how = {"ks": [k], "metrics": ["P"], "confidence_level": confidence_level}

    def estimate(rows, said):
        return judged.estimate(truth, judged_tops, said, rows=rows, **how)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", judged.JudgedWarning)
        values = estimate(rows, open_)
        doubts = [str(one.message).rstrip(".") for one in seen]  # of this estimate; of those below not again
        ranking = _ranking(values)
        pairs = _pairs(truth, judged_tops, ranking, open_, {**how, "rows": rows})
        judges = _judges(asked, given, rows, values, estimate)
    numbers = _numbers(given, truth, train, rows, confidence_level)
    said = _sentences(numbers, agreed, judges, asked, pairs, k, f"{100 * confidence_level:g} %")
    if silent := [name for name in asked["judge"].unique() if name not in {*given["judge"]}]:
        said.insert(1, f"No record is judged by: {', '.join(silent)}.")
    if late := sorted({*tops} - {*judged_tops}):
        said.append(f"Not judged, because not all of its predictions were in the sheets: {', '.join(late)}.")
    if again is None:
        said.append(
            "No second look was taken (`xcrepro judge second`); without it few wrong verdicts make P@k much too large."
        )
    elif left := len(again[0]) - len(again[1]):
        said.append(f"{left} of {len(again[0])} second looks have no verdict yet; there the first one counts.")
    said += [unread] * bool(unread) + [f"Warning: {text}." for text in dict.fromkeys(doubts)]
    outcome = Outcome(ranking, pairs, judges, numbers, said)
    whole = _readable(given, texts, label_names)[[*COLUMNS, "judge", "recorded"]]
    contents = html.page("Judged by the class", _body(outcome, k)).encode(), _csv(whole), _csv(_disputes(whole))
    paths.write_together({folder / name: what for name, what in zip(WRITTEN, contents, strict=True)})
    return outcome


# ---------------------------------------------------------------------- sheets


def _csv(table: pd.DataFrame) -> bytes:
    """CSV with a byte-order mark, without which Excel shows letters such as ö wrongly."""
    return without_formulas(table).to_csv(index=False, lineterminator="\n").encode("utf-8-sig")


def _write_sheets(folder: Path, lines: list[tuple[str, int, int]], texts, label_names) -> pd.DataFrame:
    """A sheet for each judge, how to fill it in, and what was asked: judge, record, label; and a row for each sheet."""
    asked = pd.DataFrame(lines, columns=["judge", "record", "label"])
    shown = _readable(asked[asked["label"] != judged.DRAWN].assign(verdict=""), texts, label_names)
    with paths.filling(folder) as part:
        for name, sheet in shown.groupby("judge", sort=False):
            (part / f"{name}.csv").write_bytes(_csv(sheet[COLUMNS]))
        asked.to_csv(part / _ASKED, index=False, lineterminator="\n")
        (part / "README.md").write_text(_README, encoding="utf-8")
    counts = {"records": ("record", "nunique"), "predictions": ("label", "size")}
    found = asked.groupby("judge", sort=False, as_index=False).agg(**counts)
    return found.assign(sheet=found["judge"].map(lambda name: str(folder / f"{name}.csv")))


def _readable(table: pd.DataFrame, texts: Sequence[str], names: Sequence[str] | None) -> pd.DataFrame:
    """The table with what a person reads of each record and label."""
    headings = [names[label] if names else f"label {label}" for label in table["label"]]
    return table.assign(text=[texts[row] if len(texts) else "" for row in table["record"]], heading=headings)


def _given(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What was asked (judge, record, label), and what was answered (record, label, verdict, judge)."""
    try:
        asked = pd.read_csv(folder / _ASKED, dtype={"judge": str}, keep_default_na=False)
    except FileNotFoundError:
        raise DataMissing(f"{folder} has no sheets: `xcrepro judge sheets` writes them") from None
    asked = asked.astype({"record": np.int64, "label": np.int64})
    by_judge = asked[asked["label"] != judged.DRAWN].groupby("judge", sort=False)
    found = [line for name, part in by_judge for line in _read(folder / f"{name}.csv", name, part)]
    given = pd.DataFrame(found, columns=["record", "label", "verdict", "judge"])
    # Also without a line the ids are whole numbers: they are places in lists.
    return asked, given.astype({"record": np.int64, "label": np.int64, "verdict": np.int64})


def _unread(folder: Path, asked: pd.DataFrame) -> str:
    """Which files beside the sheets were not read, as a sentence; empty if there is none."""
    known = {f"{name}.csv" for name in asked["judge"]} | {"README.md", AGAIN, _ASKED, *WRITTEN}
    # Names that begin so are those of the system and of spreadsheets that have a sheet open.
    there = [path for path in (*folder.glob("*"), *folder.glob(f"{AGAIN}/*")) if path.name not in known]
    names = sorted(str(path.relative_to(folder)) for path in there if not path.name.startswith((".", "~$")))
    do = "Save each sheet as CSV, under the name that it had."
    return f"Not read, because no sheet has this name: {', '.join(names)}. {do}" if names else ""


def _read(path: Path, name: str, asked: pd.DataFrame) -> list[tuple[int, int, int, str]]:
    """The verdicts of a sheet: record, label, verdict, judge; none where it is not there or blank."""
    if not path.exists():
        return []
    wide = path.read_bytes()[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    how = {"encoding": "utf-16" if wide else "utf-8-sig", "encoding_errors": "replace", "sep": None, "engine": "python"}
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
            expected = "a line of the sheet, once" if pair in wanted else "what this judge was asked about"
            raise DataError(path, f"record {row['record']!r}, label {row['label']!r}", expected, line=line)
        seen.add(pair)
        if text and text not in _SAID:
            raise DataError(path, f"verdict {row['verdict']!r}", "1 or yes, 0 or no, or nothing yet", line=line)
        if text:
            found.append((*pair, _SAID[text], name))
    return found


# ---------------------------------------------------------------------- what they say


def _complete(asked: pd.DataFrame, given: pd.DataFrame) -> np.ndarray:
    """The records of which every prediction has a verdict, rising."""
    known = {*zip(given["record"], given["label"], strict=True)}
    whole = [label == judged.DRAWN or (record, label) in known for _, record, label in asked.itertuples(index=False)]
    by_record = pd.Series(whole, index=asked["record"]).groupby(level=0).all()
    return by_record.index[by_record].to_numpy(np.int64)


def _table(given: pd.DataFrame) -> pd.DataFrame:
    return given.rename(columns={"record": "row"})[["row", "label", "verdict", "judge"]]


def _covered(top: TopK, truth, rows: np.ndarray, k: int, known: set) -> bool:
    """Whether each of a model's first k on the judged records is recorded or has a verdict: not if it is newer."""
    ids = top.ids[rows, :k]
    at, label = np.repeat(rows, ids.shape[1])[ids.ravel() >= 0], ids.ravel()[ids.ravel() >= 0]
    new = np.asarray(truth[at, label]).ravel() == 0
    return all(pair in known for pair in zip(at[new].tolist(), label[new].tolist(), strict=True))


def _ranking(values: pd.DataFrame) -> pd.DataFrame:
    ranking = values[["model", "observed", "value", "low", "high"]].rename(columns={"value": "judged"})
    ranking = ranking.sort_values("observed", ascending=False, kind="stable").reset_index(drop=True)
    for name, column in (("rank", "observed"), ("judged rank", "judged")):
        ranking[name] = ranking[column].rank(ascending=False, method="min").astype(int)
    return ranking


def _pairs(truth, tops: Mapping[str, TopK], ranking: pd.DataFrame, said: pd.DataFrame, how: dict) -> pd.DataFrame:
    """Every pair of models, left the one that is ahead on the recorded labels."""
    columns = ["left", "right", "observed", "judged", "low", "high", "held"]
    if len(tops) < 2:
        return pd.DataFrame(columns=columns)
    found = judged.compare(truth, {name: tops[name] for name in ranking["model"]}, said, **how)
    pairs = found[["left", "right", "observed", "value", "low", "high"]].set_axis(columns[:-1], axis=1)
    held = np.where(pairs["low"] > 0, "yes", np.where(pairs["high"] < 0, "no", "cannot tell"))
    return pairs.assign(held=np.where(pairs["observed"] == 0, "tie", held))


def _judges(
    asked: pd.DataFrame, given: pd.DataFrame, whole_rows: np.ndarray, values: pd.DataFrame, estimate
) -> pd.DataFrame:
    """A row per judge; see :class:`Outcome`. ``estimate(rows, verdicts)`` is that of the whole class, from fewer rows: the
    records of a sheet are a random choice, so those of the others are one, too."""
    both = judged.agreement(_table(given))
    whole, reach = values["value"].to_numpy(), ((values["high"] - values["low"]) / 2).to_numpy()
    found = []
    for name, part in given.groupby("judge", sort=False):
        rest = given[~given["record"].isin(asked["record"][asked["judge"] == name])]
        rows, moves = np.setdiff1d(whole_rows, asked["record"][asked["judge"] == name]), np.nan
        if len(rows) >= _LEAST:
            without = estimate(rows, _table(rest[~rest["recorded"]]))["value"].to_numpy()
            moves = float((np.abs(without - whole) / np.maximum(reach, 1e-12)).max())
        own = both[(both["judge"] == name) | (both["other"] == name)]
        shared = int(own["pairs"].sum())
        by_kind = [part["verdict"][part["recorded"] == kind].mean() for kind in (True, False)]
        agree = (own["agree"] * own["pairs"]).sum() / shared if shared else np.nan
        found.append((name, len(part), *by_kind, agree, shared, moves))
    columns = ["judge", "verdicts", "accepted", "right", "agree", "shared", "moves"]
    return pd.DataFrame(found, columns=columns).sort_values("moves", ascending=False, kind="stable", ignore_index=True)


def _disputes(whole: pd.DataFrame) -> pd.DataFrame:
    """The predictions on which judges differ, to talk about; judges are numbers, the same ones in the whole sheet."""
    differ = whole.groupby(["record", "label"])["verdict"].transform("nunique") > 1
    names = np.random.default_rng(len(whole)).permutation(np.unique(whole["judge"].astype(str)))
    number = {name: f"judge {at + 1}" for at, name in enumerate(names.tolist())}
    return whole[differ].assign(judge=whole["judge"].map(number)).sort_values(["record", "label", "judge"])


def _numbers(given: pd.DataFrame, truth, train, rows: np.ndarray, confidence_level: float) -> dict[str, float]:
    """Shares: recorded predictions that judges accept, others that are right, and what is missing at least, with its ends."""
    each = given.groupby(["record", "label"]).agg(yes=("verdict", "mean"), recorded=("recorded", "first")).reset_index()
    each["right"] = each["yes"] > 0.5
    others, recorded = each[~each["recorded"]], each[each["recorded"]]
    new = others.groupby("record")["right"].sum().reindex(rows, fill_value=0).to_numpy(float)
    n, left, whole = len(rows), 1 - len(rows) / truth.shape[0], new + np.diff(truth.indptr)[rows].astype(float)
    share = new.sum() / max(whole.sum(), 1)
    error = np.sqrt(left * n / (n - 1) * ((new - share * whole) ** 2).sum()) / max(whole.sum(), 1)
    reach = t_reach(confidence_level, n - 1) * error
    numbers = {
        "records": n,
        "judges": given["judge"].nunique(),
        "predictions": len(each),
        "recorded accepted": recorded["right"].mean() if len(recorded) else np.nan,
        "unrecorded": len(others),
        "unrecorded right": int(others["right"].sum()),
        "missing at least": share,
        "missing low": max(share - reach, 0.0),
        "missing high": min(share + reach, 1.0),
        "missing by equation 1": np.nan,
    }
    if train is not None:
        weights = propensity.inverse(train.getnnz(axis=0), train.shape[0])
        numbers["missing by equation 1"] = 1 - truth.nnz / weights[truth.indices].sum()
    return numbers


def _sentences(numbers, agreed: pd.DataFrame, judges: pd.DataFrame, asked, pairs, k: int, level: str) -> list[str]:
    """What was found, in words."""
    said = [
        f"{numbers['records']} of {asked['record'].nunique()} records are judged, by {numbers['judges']} judges: "
        f"{numbers['predictions']} predictions, {numbers['unrecorded']} of them not recorded."
    ]
    if len(agreed):
        share, both = (agreed["agree"] * agreed["pairs"]).sum() / agreed["pairs"].sum(), agreed["pairs"].sum()
        said.append(f"Two judges agree on {100 * share:.0f} % of the {both} predictions that both judged.")
        if 0.5 <= share < 1:  # as in judged.agreement, over all pairs of judges
            wrong = 100 * (1 - np.sqrt(2 * share - 1)) / 2
            said[-1] += (
                f" If all err equally often, {wrong:.1f} % of the verdicts are wrong, which no interval includes."
            )
    for one in judges[judges["moves"] > 1].itertuples():
        said.append(
            f"Look at the sheet of {one.judge} before you believe a number: without it, P@{k} of a model moves by "
            f"{one.moves:.1f} times the half width of its interval."
        )
    if not np.isnan(numbers["recorded accepted"]):
        said.append(f"Of the predictions that are recorded, judges accept {100 * numbers['recorded accepted']:.0f} %.")
    said.append(
        f"{numbers['unrecorded right']} of the {numbers['unrecorded']} unrecorded predictions are right after all. So at least "
        f"{100 * numbers['missing at least']:.0f} % of what is right for a record was missing ({level} interval "
        f"{100 * numbers['missing low']:.0f} to {100 * numbers['missing high']:.0f} %): labels that no model predicted are not "
        "counted."
    )
    if not np.isnan(numbers["missing by equation 1"]):
        said[-1] += f" Equation 1 of Jain et al. (2016) says {100 * numbers['missing by equation 1']:.0f} %."
    if len(pairs):
        counted = pairs["held"].value_counts()
        said.append(
            f"Pairs of models: {len(pairs)}. Their order by P@{k} on the recorded labels holds on the judged ones for "
            f"{counted.get('yes', 0)}, turns for {counted.get('no', 0)}, and cannot be told for "
            f"{counted.get('cannot tell', 0)}; {counted.get('tie', 0)} tie on the recorded labels."
        )
    return said


def _body(outcome: Outcome, k: int) -> str:
    """The page: what was found, in words and in three tables, shares in percent."""
    moves = (
        "One row per judge: the share of the recorded predictions that she calls right, of the others, and of the verdicts on "
        "which another judge agrees. The last column says by how many half widths of its interval the P@k of a model moves "
        "without the records of her sheet; look at it if that is more than 1."
    )
    parts = ['<main class="xcrepro-report"><h1>Judged by the class</h1>']
    parts += [f"<p>{html.escape(text)}</p>" for text in outcome.said]
    first = f"P@{k} of each model on the recorded and on the judged labels"
    tables = {first: outcome.ranking, f"P@{k} of left minus right, in points": outcome.pairs, moves: outcome.judges}
    for caption, table in tables.items():
        shares = [name for name in table.select_dtypes("float") if name != "moves"]
        shown = table.assign(**{name: 100 * table[name] for name in shares})
        parts += [of_table("judged", caption, shown, 1).html()] * bool(len(table))
    return "\n".join([*parts, "</main>"])


_README = """# The class judges

Each sheet is for one student. Read the text of a record, then write under *verdict* for every heading: 1 if you would look
for this record under it, 0 if not. Do not ask whether it is the best heading, and do not look the record up. A record counts
when all its headings have a verdict; you may stop after any record. Leave the other columns as they are.
"""
