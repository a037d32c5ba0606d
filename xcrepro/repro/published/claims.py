"""What a document claims, claim by claim, what evidence says of it, and on what that rests; :data:`RULE` is how it is judged.

The claims live in ``data/claims``, one file a document, and are checked when they are first read.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core import paths
from xcrepro.core.arguments import did_you_mean, one_of, real_number, some_of
from xcrepro.core.data import registry
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.repro.published import printed_tables

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "id", "where", "claim", "kind", "rests", "needs", "datasets", "metric", "k", "left", "right", "direction", "value",
    "rounding", "notebook", "cell", "untested",
)  # fmt: skip
"""The columns of a file of claims; :class:`Claims` says what they hold."""

CHECKS = ("definition", "restated")
"""Kinds that say nothing new: a formula that our own call must give, a number of the text that its table has as well."""

KINDS = ("number", "order", "sign", "bound", "identity", "cost", "about data", *CHECKS)
"""What a claim can be; identities and bounds are exact, the others need an error; :data:`CHECKS` are counted as such."""

RESTS = ("data", "print", "proof", "simulation", "none")
"""On what a claim's verdict rests: differences measured on real data; the document's own printed numbers; a proof or a
calculation; chance drawn by us (labels removed, random instances); nothing, since it cannot be tested here. Evidence of
another kind is shown beside the verdict and changes nothing in it."""

DIRECTIONS = ("above", "below", "within", "equal", "at least", "at most")
"""Where left minus right is claimed to lie beside ``value``: the first two on one side of it, *within* between minus and plus
``value``, the margin up to which a difference counts as none. These need an error, the others are exact."""

SOURCES = ("real, live", "real, recorded", "synthetic", "print", "exact")
"""Where evidence comes from; a claim is judged by the sources of its :data:`RESTS`."""

NEEDS = ("", "mean", "one")
"""What a sentence asserts of its cells (models, ks) on a dataset: each of them; their mean ("generally", "tends to"); that it
can happen, for which one dataset is enough."""

RULE = """\
On one dataset a claim of *each* cell holds if each cell's own interval lies on the claimed side, so that it is wrong \
to say so no more often than for one cell. It does not hold if one lies on the other side with Holm's correction over \
the cells. If none does, and one or more are on the claimed side with that correction, the data are *never against* \
it, and we count how many are clear. A claim in *general* is judged by the mean over its cells. The same test points \
judge all of them, so the error of the mean is that of drawing these points again for all cells at once; where only \
the cells' own errors are known, it is the mean of them, which no dependence exceeds. Else we cannot tell."""
"""The one rule of all claims that differences decide; ``python -m benchmarks claims`` counts how often it errs."""

_JUDGES = {
    "data": ("real",),
    "print": ("print",),
    "proof": ("exact",),
    "simulation": ("real", "synthetic", "exact"),
    "none": (),
}
_WHERE = {"print": "in print", "proof": "by calculation", "simulation": "in simulation"}

_EXACT = ("equal", "at least", "at most")
_TINY = 12  # decimals of an exact comparison: a sum of floats may miss 0 by 1e-17
_NEEDED = ("source", "dataset", "metric", "k", "left", "right", "value")
_COMPARED = (
    "id", "source", "dataset", "metric", "k", "left", "right", "value", "low", "high", "p", "clear", "outcome", "effect",
)  # fmt: skip
_OUTCOME = ("source", "dataset", "id", "outcome")
_INTERVAL = 0.95  # of low and high, as xc.compare makes them where nothing else is asked for
_WORDS = ("holds", "does not hold", "never against", "cannot tell")


def claims(paper: str) -> Claims:
    """The claims of a document.

    Parameters
    ----------
    paper : str
        A document whose claims are written down, such as ``"jain16"``.

    Raises
    ------
    ArgumentError
        For another document; the nearest is named.
    DataError
        If the file of claims breaks a rule: the file, the line, what came and what is expected.

    Examples
    --------
    >>> jain16 = claims("jain16")
    >>> jain16["t3-psp-pfastxml-fastxml"]["where"]
    'section 7; table 3'
    >>> claims("jian16")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    xcrepro.core.errors.ArgumentError: paper must be one of 'calibration', ...; got 'jian16': did you mean 'jain16'?
    """
    found = _read(one_of("paper", paper, known()))
    return Claims(found.paper, found.table.copy())


def known() -> list[str]:
    """The documents whose claims are written down."""
    return sorted(path.stem for path in paths.committed_files("data/claims", "*.csv"))


@functools.cache
def _read(paper: str) -> Claims:
    return read_claims(paths.committed(f"data/claims/{paper}.csv"))


def read_claims(path: str | Path) -> Claims:
    """The claims of a file with :data:`COLUMNS`, whose name is the document's; DataError names the line that breaks a rule."""
    path = Path(path)
    return Claims(path.stem, _checked(printed_tables.text_table(path, "claims"), path))


@dataclass(frozen=True, eq=False, repr=False)
class Claims:
    """What one document claims.

    Attributes
    ----------
    paper : str
    table : DataFrame of str
        One row a claim, with the columns

        * ``id``; ``where`` (section, equation, table or figure); ``claim``, in this project's words with the
          exceptions that the document makes; ``kind``, one of :data:`KINDS`.
        * ``rests``, one of :data:`RESTS`: the evidence by which it is judged. ``needs``, one of :data:`NEEDS`: what the
          sentence asserts of its cells.
        * What would show it: ``datasets`` (``;`` between names; empty: any), ``metric``, ``k`` (``;`` between
          several), ``left`` and ``right``, ``direction`` (one of :data:`DIRECTIONS`, of left minus right beside
          ``value``, which is 0 if it is empty) and ``rounding``, the decimals to which an equal is equal (empty: all
          digits). Without a ``metric`` the notebook gives the cells that show the claim, for the ``direction``. All
          empty where no difference shows it and the notebook says so in words.
        * ``notebook`` and ``cell``: the notebook that tests it, and a text of the cell that does; ``untested``, if it
          rests on nothing: the reason why. Then a notebook is one that has a finding of ours beside it.

    Examples
    --------
    >>> import xcrepro as xc
    >>> found = xc.claims("jain16").table
    >>> found.loc[0, ["left", "direction", "right", "metric", "k"]].tolist()
    ['PfastXML', 'above', 'FastXML', 'PSP', '1;3;5']
    """

    paper: str
    table: pd.DataFrame = field(repr=False)

    def __repr__(self) -> str:
        return f"Claims({self.paper!r}: {len(self)} claims)"

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, id: str) -> pd.Series:
        """One claim; an unknown id is an ArgumentError that names the nearest."""
        return self.table.iloc[list(self.table["id"]).index(self._known(id)[0])]

    def _known(self, ids: str | Iterable[str]) -> list[str]:
        known = list(self.table["id"])
        wanted = [ids] if isinstance(ids, str) else list(ids)
        for id in wanted:
            if id not in known:
                do = f"{did_you_mean(id, known)} xc.claims({self.paper!r}).table lists them".strip()
                raise ArgumentError("id", f"must be a claim of {self.paper}", repr(id), do)
        return wanted

    def comparisons(
        self, evidence: pd.DataFrame, confidence_level: float = 0.95, *, only=None, datasets=()
    ) -> pd.DataFrame:
        """Each comparison of the evidence that a claim is about, with what it says.

        Parameters
        ----------
        evidence, confidence_level, only, datasets
            As for :meth:`verdicts`.

        Returns
        -------
        DataFrame
            The columns id, source, dataset, metric, k, left, right, value, low, high, p, clear, outcome and effect. Left and
            right are the claim's: a pair the other way round is turned. Of a claim in general there is one row for each
            dataset, the mean of its cells. ``low`` and ``high`` are the comparison's own interval, ``p`` is Holm's over
            those of a dataset; NaN where the claim is exact or the evidence has no error. ``clear``: on the claimed side by
            ``p``.
            ``outcome`` is ``"holds"`` (the interval), ``"does not hold"`` (on the other side by ``p``) or ``"cannot tell"``;
            ``effect`` what the evidence says in words of a claim that no difference shows.

        Examples
        --------
        >>> import pandas as pd, xcrepro as xc
        >>> row = {"source": "real, live", "dataset": "TIB", "metric": "PSP", "k": 1}
        >>> row |= {"left": "FastXML", "right": "PfastXML"}
        >>> evidence = pd.DataFrame([row | {"value": -0.029, "stderr": 0.005}])
        >>> found = xc.claims("jain16").comparisons(evidence)
        >>> found[["left", "right", "value", "low", "high", "outcome"]].round(3).values.tolist()
        [['PfastXML', 'FastXML', 0.029, 0.019, 0.039, 'holds']]
        """
        confidence_level = real_number("confidence_level", confidence_level, above=0, below=1)
        chosen = self._chosen(only)
        given, told = _evidence(evidence, self, datasets)
        found = [part for claim in chosen.itertuples() if (part := _judged(claim, given, confidence_level)) is not None]
        if len(told := told[told["id"].isin(chosen["id"])]):
            found.append(told)
        if not found:
            claimed = next((one for one in chosen.itertuples() if one.metric), None)
            example = f"such as {_comparison(claimed)}" if claimed else "but these claims have none"
            came = "; ".join(dict.fromkeys(f"{one.left} and {one.right}, {one.metric}" for one in given.itertuples()))
            rule = f"must have a comparison that a claim of {self.paper} is about"
            raise ArgumentError("evidence", rule, came or "no row", example)
        import pandas as pd

        return pd.concat(found, ignore_index=True)

    def verdicts(
        self, evidence: pd.DataFrame, confidence_level: float = 0.95, *, only=None, datasets=()
    ) -> pd.DataFrame:
        """Each claim against the evidence on which it rests: holds, does not hold, never against, cannot tell.

        :data:`RULE` says how differences decide it. We also cannot tell where the evidence has no error, or lacks one of the
        claim's ks. Which evidence decides is the claim's ``rests``: other evidence is shown, and decides nothing. Exact claims
        (equal, at least, at most) need no error.

        Parameters
        ----------
        evidence : DataFrame
            Paired differences as :func:`xcrepro.compare` gives them, left minus right, of one dataset after the
            other: the columns metric, k, left, right, value, and an error: ``p raw``, ``stderr``, or ``low`` and
            ``high`` (95 %); beside them ``dataset``, a name of the catalogue, and ``source``, one of :data:`SOURCES`.
            If a comparison of a dataset comes both live and recorded, the live one counts. A claim without a metric has
            rows with its ``id``: differences, one for each of its cells, whose ``left`` tells them apart; or, if it has no
            direction either, an ``outcome`` (holds, does not hold, cannot tell) and ``effect``, what was found in words;
            there ``dataset`` may be empty if the source is print or exact.
        confidence_level : float
            The probability with which an interval holds the truth.
        only : str or sequence of str, optional
            The ids of claims; all of the document else.
        datasets : sequence of str
            Names of your own datasets, which the catalogue does not know.

        Returns
        -------
        DataFrame
            One row a claim: id, claim, ``print`` (left minus right as printed, in points, from the least to the
            largest over the document's datasets and ks, and on how many datasets the claim holds there; it is not a
            sample), ``real`` and ``synthetic`` (each dataset's outcome), the counts ``holds``, ``does not hold``, ``never
            against`` and ``cannot tell`` of real datasets (samples of one dataset are one), ``rests`` (:data:`RESTS`) and
            ``verdict``. By data: ``"holds on 3 of 4, never against on 1 (clear in 2 of 3)"``; ``"holds on TIB"`` if there is
            one; ``"holds, shown on TIB"`` if one is enough. Else ``"holds in print"``, ``"holds by calculation"`` (and behind
            it, where real data say otherwise, ``"; does not hold on 2 of 2"``), ``"holds in simulation"`` or ``"cannot be
            tested here"``. ``"no real data"`` where only synthetic evidence is there,
            ``"no evidence"`` where none is, ``"see its cell"`` if no one comparison shows the claim.

        Raises
        ------
        ArgumentError
            If the evidence lacks a column, has a dataset, metric or source that nobody knows (the nearest is named),
            a comparison twice, percent for a fraction, or no comparison that a claim is about; for an unknown id.

        Examples
        --------
        >>> import pandas as pd, xcrepro as xc
        >>> row = {"source": "real, live", "metric": "PSP", "left": "PfastXML", "right": "FastXML", "stderr": 0.005}
        >>> evidence = pd.DataFrame(
        ...     [row | {"dataset": name, "k": k, "value": value} for k in (1, 3, 5) for name, value in
        ...      [("TIB", 0.03), ("Bibtex", 0.02), ("Delicious", 0.004)]])
        >>> found = xc.claims("jain16").verdicts(evidence, only="t3-psp-pfastxml-fastxml")
        >>> found.loc[0, "print"], found.loc[0, "verdict"]
        ('+0.4 to +20.9 (6 of 6)', 'holds on 2 of 3, cannot tell on 1')
        """
        return self.sum_up(self.comparisons(evidence, confidence_level, only=only, datasets=datasets), only=only)

    def sum_up(self, comparisons: pd.DataFrame, *, only=None) -> pd.DataFrame:
        """Each claim's verdict, as :meth:`verdicts` gives it, from rows of :meth:`comparisons`, none or more.

        Examples
        --------
        >>> import pandas as pd, xcrepro as xc
        >>> row = {"source": "print", "dataset": "", "id": "t3-most-columns", "outcome": "holds", "effect": "36 of 36"}
        >>> jain16 = xc.claims("jain16")
        >>> jain16.sum_up(jain16.comparisons(pd.DataFrame([row])), only="t3-most-columns")[["print", "verdict"]].values
        array([['36 of 36', 'holds in print']], dtype=object)
        """
        import pandas as pd

        rows, of = [], {}
        for row in comparisons.itertuples(index=False):
            of.setdefault(row.id, []).append(row)
        for claim in self._chosen(only).itertuples():
            part = of.get(claim.id, [])
            real, made = ([row for row in part if row.source.startswith(kind)] for kind in ("real", "synthetic"))
            of_one = _by_dataset(real, claim, lambda row: sample_of(row.dataset))
            count = {word: list(of_one.values()).count(word) for word in _WORDS}
            said = "; ".join(row.effect for row in part if row.source == "print")
            real, made = (_by_dataset(some, claim) for some in (real, made))
            shown = {"print": _printed(self.paper, claim) or said, "real": _listed(real), "synthetic": _listed(made)}
            judges = [row for row in part if row.source.partition(",")[0] in _JUDGES[claim.rests]]
            judges = _by_dataset(judges, claim, lambda row: "")
            open = [row for row in part if row.metric and of_one.get(sample_of(row.dataset)) == "never against"]
            open = [row.clear for row in open if row.source.startswith("real")]
            verdict = _verdict(claim, of_one, judges.get("", ""), bool(made), f" (clear in {sum(open)} of {len(open)})")
            rows.append(
                {"id": claim.id, "claim": claim.claim} | shown | count | {"rests": claim.rests, "verdict": verdict}
            )
        return pd.DataFrame(rows)

    def _chosen(self, only) -> pd.DataFrame:
        return self.table if only is None else self.table[self.table["id"].isin(self._known(only))]


# ------------------------------------------------------------------------------------------------ the file


def _checked(text: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The table of a file of claims, or a DataError that names the first line that breaks a rule."""
    refuse = printed_tables.refuser(text, path, COLUMNS)
    refuse(~text["id"].str.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*"), "id", "small letters, digits and hyphens")
    refuse(text.duplicated("id"), "id", "each id once")
    for column in ("where", "claim"):
        refuse(text[column].str.strip() == "", column, "a text")
    refuse(~text["kind"].isin(KINDS), "kind", f"one of {', '.join(KINDS)}")
    refuse(~text["rests"].isin(RESTS), "rests", f"one of {', '.join(RESTS)}")
    refuse(~text["needs"].isin(NEEDS), "needs", "mean, one, or nothing where each cell has to show it")
    refuse((text["needs"] != "") & (text["rests"] != "data"), "needs", "nothing where real data do not decide")
    refuse(
        ~text["k"].str.fullmatch(r"([1-9]\d*(;[1-9]\d*)*)?"), "k", "whole numbers from 1 with ';' between, or nothing"
    )
    refuse(~text["direction"].isin((*DIRECTIONS, "")), "direction", f"one of {', '.join(DIRECTIONS)}, or nothing")
    refuse(~text["value"].str.fullmatch(r"(-?\d+(\.\d+)?)?"), "value", "a number of digits and a point, or nothing")
    refuse(~text["rounding"].str.fullmatch(r"\d{0,2}"), "rounding", "a number of decimals, or nothing")
    directed = text["direction"] != ""
    shows = directed & ~((text["metric"] == "") & ~text["direction"].isin(_EXACT))  # else its notebook gives the cells
    for column in ("metric", "left"):
        refuse(shows & (text[column] == ""), column, "a name where there is a direction")
    for column in ("metric", "k", "left", "right", "rounding"):
        refuse(~shows & (text[column] != ""), column, "nothing where there is no metric and no direction")
    refuse(~directed & (text["value"] != ""), "value", "nothing where there is no direction")
    within = (text["direction"] == "within") & ~text["value"].str.fullmatch(r"0*\.?0*[1-9]\d*(\.\d+)?")
    refuse(within, "value", "the margin, above 0, up to which a difference counts as none")
    exact = text["kind"].isin(("identity", "bound", "definition"))
    refuse(exact & shows & ~text["direction"].isin(_EXACT), "direction", f"{' or '.join(_EXACT)}: the claim is exact")
    refuse((text["direction"] != "equal") & (text["rounding"] != ""), "rounding", "nothing but for an equal")
    refuse(~text["notebook"].str.fullmatch(r"([a-z0-9_]+/[a-z0-9_]+)?"), "notebook", "a notebook's id, or nothing")
    tested = text["notebook"] != ""
    refuse(tested & (text["cell"] == ""), "cell", "a text of the cell that tests the claim")
    refuse(~tested & (text["cell"] != ""), "cell", "nothing where there is no notebook")
    rests = text["rests"] != "none"
    refuse(~rests & (text["untested"].str.strip() == ""), "untested", "the reason, where the claim rests on nothing")
    refuse(rests & (text["untested"] != ""), "untested", "nothing where the claim rests on evidence")
    refuse(rests & ~tested, "notebook", "the notebook that has the evidence on which the claim rests")
    for at, names in text["datasets"].items():
        for name in names.split(";") if names else ():
            if name not in _datasets():
                expected = f"datasets by the names they are printed with. {did_you_mean(name, _datasets())}".strip()
                raise DataError(path, f"datasets {name!r}", expected, line=at + 2)
    return text


@functools.cache
def _datasets() -> tuple[str, ...]:
    """The names of the catalogue, and those that a document prints of datasets that are in none."""
    printed = [name for name in printed_tables.find()["dataset"].unique() if name]
    return tuple(dict.fromkeys([*(registry.get(name).printed_name for name in registry.names()), *printed]))


# -------------------------------------------------------------------------------------------- the evidence


def _evidence(evidence, claims: Claims, own: Iterable[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The comparisons with all columns, and what cells say of claims; checked, datasets by their printed names."""
    import numpy as np
    import pandas as pd

    if not isinstance(evidence, pd.DataFrame):
        rule = "must be a table of differences, as xc.compare gives it"
        raise ArgumentError("evidence", rule, type(evidence).__name__)
    if not len(evidence):
        raise ArgumentError("evidence", "must have a comparison or more", "no row")
    own = [own] if isinstance(own, str) else list(own)
    said = _texts(evidence, "outcome") != ""
    told, out = (evidence[of].reset_index(drop=True) for of in (said, ~said))
    told = _told(told, claims, own) if len(told) else pd.DataFrame(columns=list(_COMPARED))
    if not len(out):
        return pd.DataFrame(columns=["id", *_NEEDED, "pair"]), told
    _has(out, _NEEDED, "xc.compare gives all but dataset and source" if {"dataset", "source"} - {*out} else "")
    if not {"p raw", "stderr"} & {*out} and not {"low", "high"} <= {*out}:
        rule = "must have an error: 'p raw', 'stderr', or 'low' and 'high'"
        raise ArgumentError("evidence", rule, ", ".join(map(str, out.columns)))
    for name in ("value", "stderr", "low", "high", "p raw"):
        try:
            out[name] = pd.to_numeric(out[name]).astype("float64") if name in out else np.nan
        except (TypeError, ValueError):
            raise ArgumentError(f"evidence[{name!r}]", "must have numbers", f"a column of {out[name].dtype}") from None
    for name in out["source"].unique():
        one_of("evidence['source']", name, SOURCES)
    out["dataset"] = [_dataset(str(name), own) for name in out["dataset"]]
    units = _units()
    known = dict.fromkeys([*units, *filter(None, claims.table["metric"])])
    some_of("evidence['metric']", list(out["metric"].unique()), list(known))
    percent = out["metric"].map(lambda name: units.get(name) == "fraction" and "bare" not in name and "PS-" not in name)
    if (wrong := percent & (out["value"].abs() > 1)).any():
        rule = "must have differences of fractions, from -1 to 1"
        one = out[wrong].iloc[0]
        came = f"{one['value']:g} for {one['metric']} on {one['dataset']}"
        raise ArgumentError("evidence['value']", rule, came, "divide percent by 100")
    out["k"] = [_whole(k) for k in out["k"]]
    out["id"] = _texts(out, "id")
    claims._known(filter(None, out["id"].unique()))
    # One pair is one comparison, whichever way round it comes; the cells of a claim are known by what they are of.
    pairs = out[["id", "left", "right"]].astype(str).itertuples(index=False)
    out["pair"] = [(one.id, one.left) if one.id else tuple(sorted((one.left, one.right))) for one in pairs]
    name = "{left} and {right}, {metric}, k = {k}, on {dataset}"
    return _once(out, ["dataset", "metric", "k", "pair"], "comparison", name), told


def _told(told: pd.DataFrame, claims: Claims, own: list[str]) -> pd.DataFrame:
    """What cells say of claims, checked, in the columns of comparisons."""
    import numpy as np

    _has(told, _OUTCOME)
    out = told.assign(**{name: _texts(told, name) for name in (*_OUTCOME, "effect")})
    claims._known(out["id"])
    for name in out["source"].unique():
        one_of("evidence['source']", name, SOURCES)
    for word in out["outcome"].unique():
        one_of("evidence['outcome']", word, _WORDS)
    anywhere = out["source"].isin(("print", "exact")) & (out["dataset"] == "")
    out["dataset"] = out["dataset"].mask(~anywhere, out.loc[~anywhere, "dataset"].map(lambda name: _dataset(name, own)))
    out = _once(out, ["id", "dataset"], "outcome", "{id} on {dataset} ({source})")
    out[["value", "low", "high", "p"]], out[["metric", "k", "left", "right"]], out["clear"] = np.nan, "", False
    return out[list(_COMPARED)]


def _texts(table: pd.DataFrame, column: str) -> pd.Series:
    """A column as texts, empty where nothing stands."""
    import pandas as pd

    given = table[column] if column in table else pd.Series("", table.index)
    return given.astype(object).fillna("").astype(str)


def _has(table: pd.DataFrame, columns: Iterable[str], do: str = "") -> None:
    if missing := [name for name in columns if name not in table]:
        rule = f"must have the columns {', '.join(columns)}"
        raise ArgumentError("evidence", rule, f"none named {', '.join(missing)}", do)


def _once(rows: pd.DataFrame, key: list[str], what: str, name: str) -> pd.DataFrame:
    """Without what is recorded where a live row says the same; refused where a source says it twice."""
    if (again := rows.duplicated(["source", *key])).any():
        came = f"{name.format(**rows[again].iloc[0])} again"
        raise ArgumentError("evidence", f"must have each {what} of a source once", came)
    live = rows.assign(live=rows["source"] == "real, live").groupby(key, dropna=False)["live"].transform("any")
    return rows[~(live & (rows["source"] == "real, recorded"))].reset_index(drop=True)


def _dataset(name: str, own: list[str]) -> str:
    real = name.removesuffix(registry.SYNTHETIC)
    if name in own or real in _datasets():
        return name
    try:
        return registry.get(real).printed_name + name[len(real) :]
    except ArgumentError:
        near = did_you_mean(name, [*_datasets(), *own], 1)
        do = f"{near} name your own in datasets=[...]".strip()
        raise ArgumentError("evidence['dataset']", "must be a dataset of the catalogue", repr(name), do) from None


def _whole(k) -> str:
    try:
        return "" if k is None or k == "" or math.isnan(k) else str(int(k))
    except (TypeError, ValueError):
        return str(k)


@functools.cache
def _units() -> dict[str, str]:
    from xcrepro.core import metrics

    return metrics.table().set_index("metric")["unit"].to_dict()


# ---------------------------------------------------------------------------------------------- the verdict


def _comparison(claim) -> str:
    ks = f", k = {claim.k.replace(';', ', ')}" if claim.k else ""
    return f"{claim.left} and {claim.right}, {claim.metric}{ks}"


def _judged(claim, given: pd.DataFrame, confidence_level: float) -> pd.DataFrame | None:
    """The comparisons of the evidence that one claim is about, with their outcomes; None where there is none."""
    import numpy as np
    import pandas as pd

    if not claim.direction:
        return None
    if claim.metric:
        pair = tuple(sorted((claim.left, claim.right)))
        mine = (given["pair"] == pair) & (given["metric"] == claim.metric) & given["k"].isin(claim.k.split(";"))
    else:
        mine = given["id"] == claim.id
    if claim.datasets:
        of = given["dataset"].str.removesuffix(registry.SYNTHETIC).map(sample_of)
        mine &= of.isin(claim.datasets.split(";"))
    part = given[mine].copy()
    if not len(part):
        return None
    if claim.metric:
        turned = (part["left"] != claim.left).to_numpy()
        part.loc[turned, ["value", "low", "high"]] = -part.loc[turned, ["value", "high", "low"]].to_numpy()
        part["left"], part["right"] = claim.left, claim.right
    part["id"], part["p"], part["clear"] = claim.id, np.nan, False
    if claim.direction in _EXACT:
        part["outcome"] = ["holds" if _is_exact(claim, value) else "does not hold" for value in part["value"]]
        part.loc[part["value"].isna(), "outcome"] = "cannot tell"
        part[["low", "high"]] = np.nan
    else:
        each = [one.copy() for _, one in part.groupby(["source", "dataset"], sort=False)]
        part = pd.concat([_with_errors(claim, one, confidence_level) for one in each])
    return part.assign(effect="")[list(_COMPARED)]


def _is_exact(claim, value: float) -> bool:
    off = round(value - float(claim.value or 0), _TINY)
    if claim.direction == "equal":
        return (round(value, int(claim.rounding)) == float(claim.value or 0)) if claim.rounding else off == 0
    return off >= 0 if claim.direction == "at least" else off <= 0


def _with_errors(claim, comparisons: pd.DataFrame, confidence_level: float) -> pd.DataFrame:
    """The comparisons of one dataset, or their mean, by :data:`RULE`: own interval, Holm's p, and the outcome of each."""
    import numpy as np

    from xcrepro.core import distributions
    from xcrepro.core.metrics.significance import holm

    target = float(claim.value or 0)
    within = claim.direction == "within"
    if claim.needs == "mean":
        comparisons = _mean_of(claim, comparisons, target)
    # Of the two ends of a margin the nearer one decides: an interval on its inner side is inside the other end, too.
    value = comparisons["value"].to_numpy()
    off = value - (np.copysign(target, value) if within else target)
    error = _errors(comparisons, off)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.abs(off) / error
    raw = np.where(off == 0, 1.0, 2 * np.asarray(distributions.normal(-np.where(np.isnan(z), 0, z))))
    raw = np.where(np.isnan(error), np.nan, raw)
    if target == 0:  # the p of the evidence may be Student's; it is of a difference of 0
        raw = np.where(np.isnan(comparisons["p raw"]), raw, comparisons["p raw"])
    comparisons["p"] = holm(raw)
    with np.errstate(invalid="ignore"):
        alone, sure = raw <= 1 - confidence_level, comparisons["p"].to_numpy() <= 1 - confidence_level
        half = error * float(distributions.normal_quantile((1 + confidence_level) / 2))
        # A p of few runs is Student's, one of a bootstrap is counted: where the normal interval says otherwise, p decides.
        apart, reached = np.abs(off), half >= np.abs(off)
    half = np.where(reached & alone, apart * (1 - 1e-9), np.where(~reached & ~alone & ~np.isnan(raw), apart, half))
    comparisons["low"], comparisons["high"] = comparisons["value"] - half, comparisons["value"] + half
    side = np.sign(target - np.abs(value) if within else off if claim.direction == "above" else -off)
    comparisons["clear"] = sure & (side > 0)
    holds, fails = alone & (side > 0), sure & (side < 0)
    comparisons["outcome"] = np.where(holds, "holds", np.where(fails, "does not hold", "cannot tell"))
    return comparisons


def _mean_of(claim, cells: pd.DataFrame, target: float) -> pd.DataFrame:
    """One row, the mean of the cells; its error is the mean of theirs, which is the largest that any dependence allows. The
    mean itself may be the one cell."""
    import numpy as np

    error = float(np.mean(_errors(cells, cells["value"].to_numpy() - target)))
    known = {"value": float(cells["value"].mean()), "stderr": error, "p raw": np.nan, "low": np.nan, "high": np.nan}
    left = cells["left"].iloc[0] if claim.metric or len(cells) == 1 else f"mean of {len(cells)}"
    return cells[:1].assign(**known, k=claim.k, left=left)


def _errors(comparisons: pd.DataFrame, off) -> object:
    """Standard errors: as given, else from the half of the 95 % interval that lies towards the claimed value."""
    import numpy as np

    from xcrepro.core import distributions

    towards = np.where(off > 0, comparisons["value"] - comparisons["low"], comparisons["high"] - comparisons["value"])
    from_ends = towards / distributions.normal_quantile((1 + _INTERVAL) / 2)
    return np.where(comparisons["stderr"].isna(), from_ends, comparisons["stderr"])


def sample_of(name: str) -> str:
    """The dataset of which a name is a sample: all records, or one split."""
    return re.sub(r" \(all records\)$|, split \d+$", "", name)


def _by_dataset(rows: list, claim, name: Callable = lambda row: row.dataset) -> dict[str, str]:
    """Each dataset's outcome by its comparisons and by what its cell says, by :data:`RULE`."""
    found = {}
    for key in dict.fromkeys(map(name, rows)):
        one = [row for row in rows if name(row) == key]
        outcomes = {row.outcome for row in one}
        ks: dict[str, set[str]] = {}
        for row in one if claim.metric else ():
            if row.metric:
                ks.setdefault(row.source, set()).add(row.k)
        asked = {claim.k} if claim.needs == "mean" else set(claim.k.split(";"))
        whole = all(have == asked for have in ks.values())
        whole &= all(row.metric or row.outcome != "cannot tell" for row in one)
        so = {
            "does not hold": "does not hold" in outcomes,
            "holds": whole and outcomes == {"holds"},
            "never against": whole and any(row.clear for row in one),
        }
        found[key] = next((word for word in so if so[word]), "cannot tell")
    return found


def _listed(outcomes: dict[str, str]) -> str:
    groups: dict[str, list[str]] = {}
    for name, word in outcomes.items():
        groups.setdefault(word, []).append(name)
    return "; ".join(f"{word} on {', '.join(groups[word])}" for word in _WORDS if word in groups)


def _verdict(claim, real: dict[str, str], judged: str, synthetic: bool, clear: str) -> str:
    """The verdict by what the claim rests on: ``real``, each dataset's outcome, with how many cells are clear where none is
    against; or ``judged``, the outcome of the rest."""
    if claim.rests == "none":
        return "cannot be tested here"
    if not judged:
        if claim.rests == "data" and synthetic:
            return "no real data"
        return "no evidence" if claim.metric else "see its cell"
    if claim.rests != "data":
        said = f"{judged} {_WHERE[claim.rests]}"
        aside = claim.rests in ("print", "proof") and not set(real.values()) <= {judged}
        return f"{said}; {_counted(real, clear)}" if aside else said  # data that say something else are not passed over
    if claim.needs == "one":
        shown = [name for name, word in real.items() if word == "holds"]
        if shown or "cannot tell" in real.values():
            return f"holds, shown on {', '.join(shown)}" if shown else "cannot tell"
    return _counted(real, clear)


def _counted(real: dict[str, str], clear: str) -> str:
    """On how many datasets a claim comes out in each way."""
    count = {word: list(real.values()).count(word) for word in _WORDS}
    first, *rest = (word for word in _WORDS if count[word])
    on = {word: f"{word} on {count[word]}" for word in rest} | {first: f"{first} on {count[first]} of {len(real)}"}
    if len(real) == 1:
        on[first] = f"{first} on {next(iter(real))}"
    return ", ".join(on[word] + clear * (word == "never against") for word in (first, *rest))


def _printed(paper: str, claim) -> str:
    """Left minus right as the document prints them: their range, and on how many datasets the claim holds there."""
    from xcrepro.core.metrics import METRICS

    names = METRICS[claim.metric].printed_as if claim.metric in METRICS else ()
    if not names or not claim.right or claim.direction == "within":  # print has no interval to lie inside a margin
        return ""
    printed = printed_tables.find(source=paper)
    ks = [int(k) for k in claim.k.split(";") if k]
    here = printed["metric"].isin(names) & printed["method"].isin((claim.left, claim.right)) & printed["k"].isin(ks)
    here &= (printed["variant"] == "") & (printed["dataset"].isin(claim.datasets.split(";")) | (claim.datasets == ""))
    cells = printed[here].set_index(["dataset", "k", "method"])["value"].unstack("method")
    if not {claim.left, claim.right} <= set(cells):
        return ""
    gap = (cells[claim.left] - cells[claim.right]).dropna() - float(claim.value or 0)
    if not len(gap):
        return ""
    sign = -1 if claim.direction in ("below", "at most") else 1
    good = (sign * gap > 0 if claim.direction in ("above", "below") else sign * gap >= 0).groupby("dataset").all()
    return f"{gap.min():+.1f} to {gap.max():+.1f} ({good.sum()} of {len(good)})"
