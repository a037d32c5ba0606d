"""The published record: every number of the five documents, one printed value a row.

The numbers live in ``data/published``, one file a document, and are checked when they are first read; the statistics
of the datasets are those of the registry. A row says where its number stands, how it is printed and what it is read as.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core import paths
from xcrepro.core.arguments import did_you_mean
from xcrepro.core.data import registry
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.repro.published.checks import column as column_name

if TYPE_CHECKING:
    import os

    import pandas as pd

DOCUMENTS = ("xcrepo", "reeval", "calibration", "jain16", "coverage")
"""The documents, as ids begin with them."""

COLUMNS = (
    "source", "row", "dataset", "method", "variant", "metric", "k", "printed", "value", "reading", "stderr", "note",
)  # fmt: skip
"""The columns of the record; :func:`table` says what they hold."""

READINGS = ("as printed", "corrected", "uncertain")
"""How a value is read; :func:`table` says what the words mean."""

# The tables of datasets, whose numbers and order are the catalogue's: columns in the order of print.
_DATASET_COLUMNS = {
    "xcrepo:dataset-table": ("n_features", "n_labels", "n_train", "n_test", "avg_points_per_label",
                             "avg_labels_per_point"),
    "reeval:table2": ("n_train", "n_test", "n_features", "avg_labels_per_point", "n_labels", "bins"),
    "calibration:table3": ("n_train", "n_labels", "n_test", "avg_labels_per_point", "avg_points_per_label"),
    "jain16:table2": ("n_train", "n_features", "n_labels", "n_test", "avg_labels_per_point", "avg_points_per_label"),
}  # fmt: skip
# Numbers that calibration, table 3, prints in each other's column; the registry has each in its own.
_SWAPPED = {
    "amazon-3m": ("n_train", "n_labels"),
    "lf-amazon-131k": ("avg_labels_per_point", "avg_points_per_label"),
    "lf-wikiseealso-320k": ("avg_labels_per_point", "avg_points_per_label"),
    "lf-amazontitles-131k": ("avg_labels_per_point", "avg_points_per_label"),
}


def sources() -> list[str]:
    """The ids of all tables, in the order of the documents. :func:`about` describes them.

    Returns
    -------
    list of str
        ``"document:table"``. Numbers that stand in a sentence, a heading or a caption have a place as well, e.g.
        ``"reeval:sec4"``.

    Examples
    --------
    >>> ids = sources()
    >>> len(ids), ids[0], ids[-1]
    (65, 'xcrepo:dataset-table', 'coverage:table3')
    >>> [name for name in ids if name.startswith("reeval:table")]
    ['reeval:table2', 'reeval:table3', 'reeval:table4']
    """
    return list(_about().index)


def about() -> pd.DataFrame:
    """What each table is.

    Returns
    -------
    DataFrame of str
        One row an id of :func:`sources` (the index): ``document``, ``kind`` (``"datasets"``, ``"table"``, or ``"text"`` for a
        sentence, a heading or a caption), ``place`` and ``title``, in this project's words.

    Examples
    --------
    >>> about().loc["jain16:table3a", "title"]
    'PSnDCG and PSP (printed N and P) on EURLex-4K'
    """
    return _about().copy()


def table(id: str) -> pd.DataFrame:
    """One table of a document, tidy: one printed value a row, in the order of print.

    Parameters
    ----------
    id : str
        One of :func:`sources`, e.g. ``"jain16:table3a"``, ``"xcrepo:EURLex-4K"``.

    Returns
    -------
    DataFrame
        With the columns

        * ``source``: the id;  ``row`` (int64): the line of the table, from 1.
        * ``dataset``, ``method``, ``metric``: text, under the names this project uses throughout; :func:`names` has the
          ones that are printed otherwise. ``""`` where there is none.
        * ``variant``: text, what tells rows of one method apart: calibration (``"none"``, ``"isotonic"``, ``"platt"``,
          ``"isotonic-separate"``, ...), ``"beta=0.25"``, training labels (``"full"``, ``"head-1000"``), or the mark of
          the hardware (xcrepo); ``""`` where there is none.
        * ``k`` (Int64): NA where the metric has none.
        * ``printed``: the text as printed; ``""`` where the cell is empty, a dash, or missing.
        * ``value`` (float64): what it is read as, in the unit of print: percent for the metrics of a model, gigabytes,
          hours, milliseconds as the metric's name says. NaN where nothing is reported or the true value is unknown.
        * ``reading``: ``"as printed"``; ``"corrected"``: ``value`` differs from ``printed``, and other numbers of the
          documents say by which fault; ``"uncertain"``: ``printed`` is in doubt and so is ``value``. ``note`` has the
          reason. Only what has to be changed to read a table is corrected here: a printed number that cannot be right
          but has no better reading stays, and is a finding of the audit.
        * ``stderr``: the standard error as printed, or ``""``.  ``note``: text.

        Metrics are ``P``, ``N`` (nDCG), ``PSP``, ``PSN`` (propensity-scored), ``micro_F1``, ``macro_F1``, ``Cov`` (correct
        labels found), ``Cov_norm`` (jain16's coverage), ``ECE``, ``ACE``, ``Brier``, ``model_size_gb``, ``train_time_hr``, ...

    Raises
    ------
    ArgumentError
        With the nearest ids, where there is no such table.

    Examples
    --------
    >>> t = table("reeval:table3")
    >>> t[["dataset", "method", "metric", "k", "printed", "value"]].head(2)
         dataset method metric  k printed  value
    0  EURLex-4K    SVM      P  1   83.44  83.44
    1  EURLex-4K    SVM      P  3   70.62  70.62
    >>> t = table("calibration:table7").query("reading == 'corrected' and metric == 'Brier' and k == 3")
    >>> t[["dataset", "method", "variant", "printed", "value"]].values.tolist()
    [['EURLex-4K', 'DiSMEC', 'isotonic', '1.68', 16.8], ['EURLex-4K', 'PLT', 'isotonic', '1.79', 17.9]]
    """
    known = _places()
    if not isinstance(id, str) or id not in known:
        do = f"{did_you_mean(id, known)} xcrepro.published.sources() lists them".strip()
        raise ArgumentError("id", "must be a table of the record", repr(id), do)
    start, stop = known[id]
    return _record().iloc[start:stop].reset_index(drop=True)


def find(dataset=None, method=None, metric=None, k=None, source=None) -> pd.DataFrame:
    """The printed values that meet every filter, with the columns of :func:`table`, in the order of the documents.

    Parameters
    ----------
    dataset, method, metric, k, source
        One value or several, or None for all. Case, ``-``, ``_`` and blanks do not matter in names; ``dataset`` also takes
        the keys and aliases of the registry, and ``dataset`` and ``method`` what a document prints. ``source`` takes the
        ids of tables and, for all tables of one, the names of documents (:data:`DOCUMENTS`).

    Returns
    -------
    DataFrame
        Empty where every name is known but nothing is printed for them together.

    Raises
    ------
    ArgumentError
        With the nearest names, where the record has no such name.

    Examples
    --------
    >>> found = find(dataset="eurlex-4k", method="AttentionXML", metric="P", k=1)
    >>> found[["source", "variant", "printed"]].values.tolist()  # doctest: +NORMALIZE_WHITESPACE
    [['reeval:table3', '', '85.12'], ['calibration:table6', 'none', '84.63'],
     ['calibration:table6', 'isotonic-separate', '83.83'], ['calibration:table6', 'platt-separate', '84.63']]
    >>> find(method="PfastreXMl", metric=["PSP", "PSN"], k=1, source="jain16")["value"].tolist()
    [45.38, 45.38, 69.05, 69.05, 21.32, 21.32, 31.16, 31.16, 29.93, 29.93, 13.52, 13.52]
    """
    frame = _record()
    for column, wanted in (("dataset", dataset), ("method", method), ("metric", metric), ("source", source), ("k", k)):
        if wanted is not None:
            frame = frame[frame[column].isin(_resolve(column, wanted))]
    return frame.reset_index(drop=True)


def read_printed(path: str | os.PathLike) -> pd.DataFrame:
    """Printed rows of a reader's own, such as ``printed.csv`` beside a ``dataset.toml``, in the checked form of
    :func:`table`."""
    return _checked(text_table(path), Path(path))


def wide(id: str) -> pd.DataFrame:
    """A table as a person sees it: the ``value`` of every cell, float64, NaN where none is known.

    Parameters
    ----------
    id : str
        One of :func:`sources`.

    Returns
    -------
    DataFrame of float64
        Rows: a MultiIndex of dataset, method and variant in the order of print; where the document prints a row twice, it is
        here twice. Columns: ``"P@1"``, ``"P@3"``, ..., or the name alone for a metric without k.

    Examples
    --------
    >>> wide("jain16:table4a").loc[("EURLex-4K", "FastXML", "")].to_dict()
    {'Cov_norm@1': 16.39, 'Cov_norm@3': 28.39, 'Cov_norm@5': 40.49}
    """
    frame = table(id)
    frame["column"] = [column_name(metric, k) for metric, k in zip(frame["metric"], frame["k"].fillna(0), strict=True)]
    place = {metric: i for i, metric in enumerate(dict.fromkeys(frame["metric"]))}
    order = frame.assign(metric=frame["metric"].map(place)).sort_values(["metric", "k"])["column"].unique()
    index = ["dataset", "method", "variant", "again"]
    frame["again"] = frame.groupby([*index[:3], "column"]).cumcount()
    cells = frame.set_index([*index, "column"])["value"].unstack("column")
    shown = cells.loc[list(frame[index].drop_duplicates().itertuples(index=False, name=None)), order]
    return shown.rename_axis(columns=None).droplevel("again")


def names() -> pd.DataFrame:
    """Datasets and methods that a table prints under another name than the record's.

    Returns
    -------
    DataFrame of str
        ``source``, ``what`` (``"dataset"`` or ``"method"``), ``printed`` and ``name``.

    Examples
    --------
    >>> names().query("source == 'reeval:table3'").values.tolist()
    [['reeval:table3', 'method', 'XLNet-APLC', 'APLC-XLNet']]
    """
    return _text("names").copy()


def words() -> pd.DataFrame:
    """Numbers in sentences, headings and captions that no row of a table has: counts, sizes, settings, machines.

    Returns
    -------
    DataFrame of str
        ``document``, ``place``, ``said`` (the printed words), ``what`` (what is meant, and its number where ``said`` has
        several), ``dataset``, ``quantity`` (``n_train``, ``n_features`` or ``n_labels`` where a size of the dataset is said)
        and ``note``.

    Examples
    --------
    >>> words().query("document == 'calibration' and place == 'abstract'")["said"].tolist()
    ['nine models', 'four different model families', 'seven benchmark']
    """
    return _text("words").copy()


def methods() -> pd.DataFrame:
    """The page's list of code, in the order of the page.

    Returns
    -------
    DataFrame
        Text columns ``method``, ``category``, ``features``, ``language``, ``authors``, ``venue``, ``venue_printed`` and
        ``source``, and ``year`` (int64).

    Examples
    --------
    >>> methods().groupby("year").size().tail(3).to_dict()
    {2022: 3, 2023: 4, 2024: 1}
    """
    return _text("methods").astype({"year": "int64"})


def listed_as() -> pd.DataFrame:
    """Methods of the benchmark tables that the page's list of code has under another name, or not at all.

    Returns
    -------
    DataFrame of str
        ``printed`` (the record's name), ``listed`` (the name in :func:`methods`; empty: not listed) and ``why``.
        Who is not here is
        listed under the record's name, or stands in no benchmark table.

    Examples
    --------
    >>> listed_as().query("printed == 'Astec'")["listed"].item()
    'DeepXML/Astec'
    """
    return _text("listed_as").copy()


def references() -> pd.DataFrame:
    """The page's list of references.

    Returns
    -------
    DataFrame
        Text columns ``source``, ``ref`` (``"[01]"``) and ``text``, and ``year`` (Int64).

    Examples
    --------
    >>> references()[["ref", "year"]].loc[30:31].values.tolist()
    [['[31]', 2016], ['[32]', 2017]]
    """
    frame = _text("references").copy()
    frame["year"] = _whole(frame["year"])
    return frame


def formulas() -> pd.DataFrame:
    """The gains of jain16, table 1, and its propensity model, as formulas.

    Returns
    -------
    DataFrame of str
        ``source``, ``group`` (``"a"``: unbiased from observed labels alone, ``"b"``: more must be known), ``name``,
        ``formula`` (LaTeX, as printed) and ``remark`` (ours: what it needs, and where the print must be read otherwise).

    Examples
    --------
    >>> formulas().query("name == 'inverse propensity'")["formula"].item()
    '1 + C(N_l + B)^{-A}'
    """
    return _text("formulas").copy()


def _folder() -> Path:
    return paths.committed("data/published")


def text_table(path: str | os.PathLike, what: str = "published numbers", where: str = "") -> pd.DataFrame:
    """A CSV file in UTF-8 with every cell as text; an error calls what is missing ``what``, and ``where`` ends its message."""
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise DataMissing(f"{path}: the {what} are not there{where}")
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(path, f"no table ({error})", "CSV in UTF-8, a header first") from None
    if not isinstance(frame.index, pd.RangeIndex):  # pandas takes cells beyond the header for the names of rows
        raise DataError(path, "more cells than columns", "as many cells in a line as in the header")
    return frame


@functools.cache
def _text(name: str) -> pd.DataFrame:
    return text_table(_folder() / f"{name}.csv", where="; they are part of the project's folder")


def kept(name: str) -> pd.DataFrame:
    """A further file of ``data/published``, every cell as text."""
    return _text(name)


@functools.cache
def _about() -> pd.DataFrame:
    return _text("sources").set_index("source")


@functools.cache
def _record() -> pd.DataFrame:
    import pandas as pd

    known = set(_about().index)
    frames = [_checked(_text(document), _folder() / f"{document}.csv", known) for document in DOCUMENTS]
    frames += [_datasets(source) for source in _DATASET_COLUMNS]
    together = pd.concat(frames, ignore_index=True)
    if without := known - set(together["source"]):
        path = _folder() / "sources.csv"
        raise DataError(path, f"{', '.join(sorted(without))} without a number", "sources that have numbers")
    place = {source: i for i, source in enumerate(_about().index)}
    return together.sort_values("source", key=lambda column: column.map(place), kind="stable", ignore_index=True)


@functools.cache
def _places() -> dict[str, tuple[int, int]]:
    column = _record()["source"]
    first = column.drop_duplicates()
    starts = [*first.index, len(column)]
    return dict(zip(first, itertools.pairwise(starts), strict=True))


def refuser(text: pd.DataFrame, path: Path, columns: Iterable[str]) -> Callable[..., None]:
    """``refuse(bad, column, expected)``, which names the first line of a file that breaks a rule; its columns come first."""
    if list(text.columns) != list(columns):
        raise DataError(path, f"columns {', '.join(text.columns)}", ", ".join(columns), line=1)

    def refuse(bad, column: str, expected: str) -> None:
        if bad.any():
            at = int(bad.to_numpy().argmax())
            raise DataError(path, f"{column} {text.at[at, column]!r}", expected, line=at + 2)

    return refuse


def _checked(text: pd.DataFrame, path: Path, known: set[str] | None = None) -> pd.DataFrame:
    """The typed frame of one document's file, or a DataError that names the first line that breaks a rule."""
    refuse = refuser(text, path, COLUMNS)
    if known is None:
        refuse(~text["source"].str.fullmatch(r"[^:]+:[^:]+"), "source", "an id such as 'document:table'")
    else:
        refuse(~text["source"].isin(known), "source", "an id that sources.csv lists")
        refuse(~text["source"].str.startswith(f"{path.stem}:"), "source", f"an id of {path.stem}")
    refuse(~text["row"].str.fullmatch(r"[1-9]\d{0,17}"), "row", "a whole number from 1, 18 digits at most")
    refuse(~text["k"].str.fullmatch(r"([1-9]\d{0,17})?"), "k", "a whole number from 1, or nothing; 18 digits at most")
    refuse(text["metric"] == "", "metric", "a name")
    for column in ("value", "stderr"):
        refuse(~text[column].str.fullmatch(r"(\d+(\.\d+)?)?"), column, "a number of digits and a point, or nothing")
    refuse(
        ~text["printed"].str.fullmatch(r"((\d+|\d{1,3}(,\d{3})+)(\.\d+)?)?"),
        "printed", "a number of digits, separators and a point, or nothing",
    )  # fmt: skip
    refuse(~text["reading"].isin(READINGS), "reading", " or ".join(map(repr, READINGS)))
    typed = text.copy()
    typed["row"] = text["row"].astype("int64")
    typed["k"] = _whole(text["k"])
    typed["value"] = text["value"].map(_float).astype("float64")
    refuse(typed["value"] == math.inf, "value", "a number that float64 can hold")
    as_printed = text["reading"] == "as printed"
    plain = text["printed"].str.replace(",", "")
    refuse(as_printed & (text["value"] != plain), "value", "the printed number where it is read as printed")
    refuse(
        (text["reading"] == "corrected") & (typed["value"] == plain.map(_float)),
        "value", "another number than the printed one where it is corrected",
    )  # fmt: skip
    refuse(~as_printed & (text["note"] == ""), "note", "a reason where a value is not read as printed")
    cell = ["source", "row", "dataset", "method", "variant", "metric", "k"]
    refuse(text.duplicated(cell), "metric", "each cell of a table once")
    return typed


def _datasets(source: str) -> pd.DataFrame:
    """A table of datasets in the layout of the record."""
    import pandas as pd

    rows = []
    for row, name in enumerate(registry.names(source), start=1):
        entry = registry.get(name)
        numbers = entry.published[source]
        pair = _SWAPPED.get(name, ()) if source == "calibration:table3" else ()
        cells = []
        for column in _DATASET_COLUMNS[source]:
            if column == "bins":
                cells += [(f"labels_{label}", str(count), count) for label, count in numbers["bins"].items()]
            else:
                shown = pair[1 - pair.index(column)] if column in pair else column
                cells.append((column, entry.printed(shown, source), numbers.get(column, math.nan)))
        for metric, printed, value in cells:
            printed = _separated(printed, source) if printed.isdigit() else printed
            read = ("corrected", "", f"The document prints {' and '.join(pair)} in each other's column.")
            read = read if metric in pair else ("as printed", "", "")
            rows.append((source, row, entry.printed_name, "", "", metric, pd.NA, printed, float(value), *read))
    return pd.DataFrame(rows, columns=COLUMNS).astype({"k": "Int64"})


def _separated(digits: str, source: str) -> str:
    """A whole number with separators, as ``source`` prints it: calibration has none in numbers of four digits."""
    return digits if len(digits) == 4 and source == "calibration:table3" else f"{int(digits):,}"


def _whole(text: pd.Series) -> pd.Series:
    import pandas as pd

    return pd.array([int(t) if t else pd.NA for t in text], dtype="Int64")


def _float(text: str) -> float:
    return float(text) if text else math.nan


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c not in "-_ ")


@functools.cache
def _known(column: str) -> dict[str, list]:
    """For one column: plain spelling -> the names it means."""
    record = _record()
    values = [value for value in record[column].unique() if value != ""]
    known = {_plain(value): [value] for value in values}
    if column == "source":
        known |= {document: [v for v in values if v.startswith(f"{document}:")] for document in DOCUMENTS}
    printed = _text("names")
    for row in printed[printed["what"] == column].itertuples():
        known.setdefault(_plain(row.printed), [row.name])
    return known


def _resolve(column: str, wanted) -> list:
    """The names of the record that a filter of :func:`find` means."""
    several = [wanted] if isinstance(wanted, str) or not isinstance(wanted, Iterable) else list(wanted)
    if column == "k":
        have = sorted(_record()["k"].dropna().unique())
        for k in several:
            if isinstance(k, bool) or k not in have:
                raise ArgumentError("k", "must be a k of the record", repr(k), f"it has {', '.join(map(str, have))}")
        return several
    known = _known(column)
    found = []
    for name in several:
        key = _plain(name) if isinstance(name, str) else None
        if key is not None and key not in known and column == "dataset":
            with contextlib.suppress(ArgumentError):
                key = _plain(registry.get(name).printed_name)
        if key not in known:
            raise ArgumentError(column, f"must be a {column} of the record", repr(name), _near(column, key))
        found += known[key]
    return found


def _near(column: str, key: str | None) -> str:
    known = _known(column)
    if key and (near := did_you_mean(key, {plain: names[0] for plain, names in known.items()})):
        return near
    some = list(dict.fromkeys(name for values in known.values() for name in values))
    return f"it has {', '.join(map(repr, some[:8]))}" + (", ..." if len(some) > 8 else "")
