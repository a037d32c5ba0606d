"""What judges say: sheets to fill in, verdicts as they come back, and how well judges agree."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from xcrepro.core.accumulators.block import Block
from xcrepro.core.arguments import whole_number
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.metrics.replicates import models_of
from xcrepro.core.predictions import TopK

if TYPE_CHECKING:
    import pandas as pd

    from xcrepro.core.data.dataset import Dataset

WORDS = 12
"""Of a point that a sheet shows, where there is no text."""
DRAWN = -1
"""In place of a label: the row was drawn, and there is nothing in it to judge."""


class JudgedWarning(UserWarning):
    """The judged rows are such that an interval may not hold; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What judges said, one verdict a pair of row and label: that of most of its judges, and no where they are split.

    Made by :func:`verdicts`.

    Attributes
    ----------
    drawn : ndarray of int64
        The rows that were drawn to be judged, rising.
    rows, labels : ndarray of int64, shape (number of pairs,)
        By row, then by label.
    right : ndarray of bool, shape (number of pairs,)
        Is the label relevant to the row?
    table : DataFrame
        row, label, verdict, judge: every verdict as it came.
    """

    drawn: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    right: np.ndarray
    table: pd.DataFrame

    def __repr__(self) -> str:
        return f"Verdicts({self.drawn.size} rows drawn, {self.rows.size} pairs judged, {int(self.right.sum())} right)"


def verdicts(given, rows=None) -> Verdicts:
    """Verdicts, checked.

    Parameters
    ----------
    given : DataFrame, path, or iterable of tuples
        Columns ``row``, ``label``, ``verdict`` (1: the label is relevant to the row, 0: it is not) and, where there are
        several, ``judge``; a CSV file with this header; or tuples in this order. The label -1 says that the row was
        drawn and has nothing to judge.
    rows : array_like of int, optional
        The rows that were drawn. By default those with a verdict. Give them if a row can have been drawn without
        getting a verdict: left out, it would make the others no random choice.

    Returns
    -------
    Verdicts

    Raises
    ------
    ArgumentError
        For columns that are missing, a verdict that is neither 0 nor 1, a judge who contradicts himself, and a verdict
        on a row that was not drawn.

    Examples
    --------
    >>> verdicts([(4, 7, 1, "Ann"), (4, 2, 0, "Ann"), (4, 7, 1, "Bob"), (9, -1, 0, "Ann")])
    Verdicts(2 rows drawn, 2 pairs judged, 1 right)
    >>> verdicts([(4, 7, 1, "Ann"), (4, 7, 0, "Ann")])
    Traceback (most recent call last):
    xcrepro.core.errors.ArgumentError: verdicts must not contradict each other; got 1 and 0 of judge 'Ann' on row 4, label 7:
    keep one
    """
    import pandas as pd

    if isinstance(given, Verdicts):
        return given if rows is None else verdicts(given.table, rows)
    if isinstance(given, str | os.PathLike):
        table = _read(Path(given))
    elif isinstance(given, pd.DataFrame):
        table = given.copy()
    else:
        tuples = [tuple(each) for each in given]
        table = pd.DataFrame(tuples, columns=["row", "label", "verdict", "judge"][: max(map(len, tuples), default=3)])
    if not {"row", "label", "verdict"} <= {*table.columns}:
        raise ArgumentError("verdicts", "must have the columns row, label, verdict", [*table.columns])
    lines = table.index
    table = table.reindex(columns=["row", "label", "verdict", "judge"], fill_value="").reset_index(drop=True)
    for name, least, most, rule in (
        ("row", 0, 2**31, "must name rows from 0"),
        ("label", DRAWN, 2**31, "must name labels from 0, or -1"),
        ("verdict", 0, 1, "must be 1 (relevant) or 0 (not)"),
    ):
        numbers = pd.to_numeric(table[name], errors="coerce")
        values = numbers.to_numpy(np.float64, na_value=np.nan)
        good = (values >= least) & (values <= most) & (values == np.floor(values))
        if not good.all():
            at = int(np.argmin(good))
            found = f"{name} {str(table[name][at])!r}"
            if isinstance(given, str | os.PathLike):
                line = int(lines[at]) + 2  # below the header
                raise DataError(given, found, f"verdicts that {rule.removeprefix('must ')}", line=line)
            raise ArgumentError("verdicts", rule, f"{found} in line {at + 1}")
        table[name] = numbers.astype(np.int64)
    pairs, yes, judges = _counted(table)
    drawn = np.unique(table["row"].to_numpy(np.int64))
    if rows is not None:
        judged, drawn = drawn, np.unique(np.asarray(rows, np.int64))
        if (odd := np.setdiff1d(judged, drawn)).size or (drawn.size and drawn[0] < 0):
            do = "rows that are judged because they look odd make the judged ones no random choice: leave them out"
            got = f"row {odd[0] if odd.size else drawn[0]}"
            raise ArgumentError("verdicts", "must be on rows that were drawn, from 0", got, do)
    return Verdicts(drawn, *pairs, 2 * yes > judges, table)


def _counted(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The judged pairs (2, number of pairs), by row and label; how many judges say yes of each, and how many there are."""
    import pandas as pd

    line = np.flatnonzero(table["label"].to_numpy() != DRAWN)
    row, label, said = (table[name].to_numpy()[line] for name in ("row", "label", "verdict"))
    judge = pd.factorize(table["judge"].to_numpy()[line])[0]
    order = np.lexsort((said, judge, label, row))
    row, label, judge, said = (each[order] for each in (row, label, judge, said))

    def first(*keys: np.ndarray) -> np.ndarray:
        """Where one of the keys is another than before."""
        return np.append(True, np.any([key[1:] != key[:-1] for key in keys], axis=0))[: line.size]

    new_judge = first(row, label, judge)
    twice = np.flatnonzero(first(said) & ~new_judge)  # no, then yes
    if twice.size:
        # A judge's no and yes each have a first line; what contradicts is the later one.
        starts = np.flatnonzero(new_judge)
        opened = starts[np.searchsorted(starts, twice, side="right") - 1]
        at = table.loc[np.maximum(line[order[opened]], line[order[twice]]).min()]
        got = f"1 and 0 of judge {at['judge']!r} on row {at['row']}, label {at['label']}"
        raise ArgumentError("verdicts", "must not contradict each other", got, "keep one")
    row, label, said = row[new_judge], label[new_judge], said[new_judge]
    starts = np.flatnonzero(first(row, label))
    judges = np.diff(np.append(starts, row.size))
    yes = np.add.reduceat(said, starts) if starts.size else np.zeros(0, np.int64)
    return np.stack([row[starts], label[starts]]), yes, judges


def _read(path: Path) -> pd.DataFrame:
    """A sheet that was filled in, in its order and perhaps not to its end: what is behind the first undone row is left out."""
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False)
        blank = table["verdict"].str.strip() == ""
        order = table["row"].drop_duplicates().tolist()
    except (ValueError, KeyError) as error:
        raise DataError(path, str(error), "a CSV file with the header row,label,verdict,judge") from error
    undone = {*table.loc[blank, "row"]}
    kept = [*itertools.takewhile(lambda row: row not in undone, order)]
    if wasted := [row for row in order[len(kept) :] if row not in undone]:
        text = (
            f"{path}: row {order[len(kept)]} has a blank verdict, so {len(wasted)} judged rows behind it are left out. "
        )
        warnings.warn(text + "Judge rows in the order of the sheet, else they are no random choice", JudgedWarning, 4)
    return table[table["row"].isin(kept)]


def agreement(given) -> pd.DataFrame:
    """How well judges agree, on the pairs that both judged.

    Parameters
    ----------
    given
        As for :func:`verdicts`.

    Returns
    -------
    DataFrame
        judge, other, pairs, agree (a share), kappa: Cohen's (1960), the agreement beyond what chance would bring, 1 if
        all are alike. ``error`` is the share of wrong verdicts that two judges have who err equally often and
        independently of each other: (1 - sqrt(2 agree - 1)) / 2. NaN where there is nothing to divide by, or where they
        agree in less than half.

    Examples
    --------
    >>> said = [(0, 1, 1, "Ann"), (0, 2, 0, "Ann"), (3, 1, 1, "Ann"), (3, 4, 0, "Ann")]
    >>> agreement(said + [(0, 1, 1, "Bob"), (0, 2, 0, "Bob"), (3, 1, 1, "Bob"), (3, 4, 1, "Bob")]).round(3)
      judge other  pairs  agree  kappa  error
    0   Ann   Bob      4   0.75    0.5  0.146
    """
    import pandas as pd

    table, by_judge = verdicts(given).table, {}
    judges = table["judge"].to_numpy()
    if (judges != judges[:1]).any():
        table = table[table["label"] != DRAWN].drop_duplicates(["row", "label", "judge"])
        by_judge = {
            name: part.set_index(["row", "label"])["verdict"] for name, part in table.groupby("judge", sort=True)
        }
    found = []
    for one, other in itertools.combinations(by_judge, 2):
        both = pd.concat([by_judge[one], by_judge[other]], axis=1, join="inner").to_numpy(np.float64)
        if len(both):
            agree, (a, b) = float((both[:, 0] == both[:, 1]).mean()), both.mean(axis=0).tolist()
            chance = a * b + (1.0 - a) * (1.0 - b)
            kappa = (agree - chance) / (1.0 - chance) if chance < 1 else np.nan
            error = (1.0 - float(np.sqrt(2.0 * agree - 1.0))) / 2.0 if agree >= 0.5 else np.nan
            found.append((one, other, len(both), agree, kappa, error))
    return pd.DataFrame(found, columns=["judge", "other", "pairs", "agree", "kappa", "error"])


class _Telling(Sequence):
    """The most telling words of a dataset's test points, looked up when one is asked for."""

    def __init__(self, ds: Dataset) -> None:
        self._ds = ds

    def __len__(self) -> int:
        return self._ds.test.X.shape[0]

    def __getitem__(self, row):
        return ", ".join(self._ds.telling_words(int(row), WORDS))


def texts_of(ds: Dataset | None) -> Sequence[str]:
    """What a judge reads of each test point: its texts where the dataset has them, else its most telling words; else nothing.

    >>> import xcrepro as xc
    >>> texts_of(xc.load("tib", points=2000))[0][:26]
    'java, bluej, programming, '
    """
    if ds is None:
        return ()
    return lines_of(ds.test.texts) or (_Telling(ds) if ds.words and ds.test.X is not None else ())


def lines_of(texts: Mapping[str, Sequence[str]]) -> list[str]:
    """Points' texts, a line for each with its fields; none of no fields."""
    return [" ".join(" / ".join(fields).split()) for fields in zip(*texts.values(), strict=True)]


def sheet(
    Y, top, rows, k: int = 5, label_names: Sequence[str] | None = None, texts: Sequence[str] = ()
) -> pd.DataFrame:
    """What is to be judged, as a table to fill in: of each row the labels that a model has among its first k.

    Parameters
    ----------
    Y, top
        Truth and predictions as for :func:`xcrepro.evaluate`; ``top`` may be a mapping of models.
    rows : array_like of int
        Of :func:`xcrepro.judged.sample`. Judge them in this order; you may stop after any row.
    k : int
    label_names : sequence of str, optional
    texts : sequence of str, optional
        What to read of each row of the truth, such as a title.

    Returns
    -------
    DataFrame
        row, [text,] label, [name,] verdict, judge. A row's labels stand by their ids, so that nothing tells which model was how
        sure. Of observed labels the verdict is there, 1 by the judge "observed"; the others are blank.
    """
    import pandas as pd

    block = {name: Block(Y, each, whole_number("k", k, 1)) for name, each in named_models(top).items()}
    rows = np.asarray(rows, np.int64)
    truth = next(iter(block.values())).truth
    if rows.size and not 0 <= rows.min() <= rows.max() < truth.n_rows:
        raise ArgumentError("rows", f"must be rows below {truth.n_rows}", f"{rows.min()} to {rows.max()}")
    if len(texts) not in (0, truth.n_rows):
        raise ArgumentError("texts", f"must be one for each of the {truth.n_rows} rows, or none", len(texts))
    found = []
    for row in rows.tolist():
        ids = np.unique(np.concatenate([each.ids[row] for each in block.values()]))
        own = truth.indices[truth.indptr[row] : truth.indptr[row + 1]]
        lines = [
            (row, label, "1", "observed") if label in own else (row, label, "", "") for label in ids[ids >= 0].tolist()
        ]
        found += lines or [(row, DRAWN, "0", "nothing predicted")]
    table = pd.DataFrame(found, columns=["row", "label", "verdict", "judge"])
    if label_names is not None:
        table.insert(2, "name", ["" if label == DRAWN else label_names[label] for label in table["label"]])
    if len(texts):
        own = {row: texts[row] for row in rows.tolist()}
        table.insert(1, "text", [own[row] for row in table["row"]])
    return table


def named_models(top) -> dict[str, TopK]:
    """The models by name; one without a name is ""."""
    if not isinstance(top, Mapping):
        return {"": top}
    found = models_of("top", top)
    if many := [name for name, runs in found.items() if len(runs) > 1]:
        raise ArgumentError(
            "top", "must hold one TopK for each model", f"several for {many[0]!r}", "judge one training of it"
        )
    return {name: runs[0] for name, runs in found.items()}
