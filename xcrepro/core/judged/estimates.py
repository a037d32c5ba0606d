"""Estimates on the complete truth from judged rows."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from xcrepro.core import distributions
from xcrepro.core.accumulators.block import KS, Block
from xcrepro.core.accumulators.labels import LabelCounts
from xcrepro.core.accumulators.rows import RowSums
from xcrepro.core.arguments import one_of, real_number
from xcrepro.core.errors import ArgumentError
from xcrepro.core.judged.sampling import estimated, regressed
from xcrepro.core.judged.sheets import DRAWN, JudgedWarning, Verdicts, agreement, named_models, verdicts
from xcrepro.core.kernels import ranking as kernel
from xcrepro.core.metrics import registry
from xcrepro.core.metrics.replicates import Options, Rows
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import Truth, as_truth

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("P",)
"""What is estimated unasked: verdicts on predictions are enough for it."""
FEW = 20
"""With fewer judged rows an interval is not to be trusted."""
LEVELS = 8
"""Into how many levels cheap verdicts are cut that are more than yes and no."""
_METHODS = ("ppi++", "ppi", "judged only")
_TARGETS = ("these rows", "fresh rows")
_OF_HITS = {
    kernel.HITS,
    kernel.SERVED,
    kernel.FIRST,
    kernel.DCG,
}  # what relevant labels elsewhere in a row do not change
_DOUBT = 0.001  # the chance of a false alarm that judged rows were not drawn at random
_ERRS = 0.05  # the share of wrong verdicts from which on a warning is given


class _Model(NamedTuple):
    """One model: sums over all rows, and its values on the judged ones, whose arrays have a line for each."""

    sums: RowSums
    labels: LabelCounts | None  # for coverage
    cheap: list[RowSums]  # at each level of the cheap verdicts, on what they add to the observed truth
    values: dict[str, dict[str, np.ndarray]]  # "observed", "judged", "cheap" -> metric -> (n, K)
    rejected: tuple[int, int]  # of the judged predictions that are observed, those that judges reject, and all
    right: np.ndarray  # (m, 3): row, label, place, from 0, of the predictions that are right, by row and label


class Judged:
    """Estimates on the complete truth: what is asked of them shares the work.

    Parameters
    ----------
    Y, top, given, ks, metrics, complete, rows, proxy
        As for :func:`estimate`. Metrics are fractions that are means over rows (``P``, ``nDCG (ideal k)``, ``R``, ``nDCG``,
        ``AP``, ...) and ``coverage``. ``complete``: have the judges named EVERY relevant label of the drawn rows, so that
        one without a verdict, and not observed, is none? Metrics that depend on how many labels a row has (``R``, ``nDCG``,
        ...) need it.

    Raises
    ------
    ArgumentError
        For verdicts that break a rule or are on a label that does not exist, a metric that cannot be estimated and why.
    """

    def __init__(self, Y, top, given, ks=KS, metrics=METRICS, *, complete=False, rows=None, proxy=None) -> None:
        self.verdicts, self.complete = verdicts(given, rows), bool(complete)
        self.wanted = registry.wanted(metrics, ks)
        if odd := [each.name for each, _ in self.wanted if each.name != "coverage" and not _is_mean(each)]:
            rule = "must be 'coverage' or fractions that are means over rows: "
            rule += ", ".join(each.name for each in registry.METRICS.values() if _is_mean(each))
            raise ArgumentError("metrics", rule, odd, "the complete truth of a few rows does not tell others")
        self.ks = np.unique(np.concatenate([at for _, at in self.wanted]))
        self._asked = [(each, int(np.searchsorted(self.ks, k)), k) for each, at in self.wanted for k in at.tolist()]
        self._means = [metric for metric, _ in self.wanted if metric.fold == "rows"]
        self._columns = sorted({column for metric in self._means for column in metric.columns}) or [kernel.HITS]
        self._covers = any(metric.name == "coverage" for metric, _ in self.wanted)
        self._unjudged: list[tuple[int, str, int]] = []  # row, what of it, how many like it
        models, first = named_models(top), None
        for name, each in models.items():
            block = Block(Y if first is None else first.truth, each, int(self.ks[-1]))
            if first is None:
                first, self._truth, self.n_labels, self.n_rows = block, block.truth, block.n_labels, block.n_rows
                self._check_rows()
                self._completed = as_truth(_completed(self.verdicts, block.truth))
                cheap = [] if proxy is None else _cheap_truths(block.truth, proxy)
                self._models = {}
            self._models[name] = self._model(block, cheap)
        hits, sizes = np.ascontiguousarray(first.found.T).sum(axis=0), self._truth.sizes.astype(np.int64)
        self._looks = hits, sizes

    def _check_rows(self) -> None:
        said = self.verdicts
        if (odd := said.labels >= self.n_labels).any():
            at = int(np.argmax(odd))
            got = f"label {said.labels[at]} in row {said.rows[at]}"
            raise ArgumentError("verdicts", f"must be on labels that exist, below {self.n_labels}", got)
        if said.drawn.size and said.drawn[-1] >= self.n_rows:
            got = f"row {said.drawn[-1]}"
            raise ArgumentError("verdicts", f"must be on rows that exist, below {self.n_rows}", got)

    def _model(self, block: Block, cheap: list[Truth]) -> _Model:
        sums, here = RowSums(self.ks, self._columns), self.verdicts.drawn
        sums.add(block)
        labels = LabelCounts(block.n_labels, self.ks) if self._covers else None
        if labels is not None:
            labels.add(block)
        folds = [RowSums(self.ks, self._columns) for _ in cheap]
        for truth, fold in zip(cheap, folds, strict=True):
            fold.add(Block(truth, block.stored, int(self.ks[-1])))
        top = TopK(block.ids, block.scores, block.n_labels).rows(here)
        truths = as_truth(_rows_of(block.truth, here)), self._completed
        hit, right = (truth.hits(top.ids) for truth in truths)
        said = _in_verdicts(self.verdicts, here, top.ids, self.n_labels)
        unknown = np.argwhere(~(said | hit | (top.ids < 0) | self.complete))
        for line, place in unknown[:1].tolist():
            got = f"none on label {top.ids[line, place]} at place {place + 1} of row {here[line]}"
            self._unjudged.append((int(here[line]), got, len(unknown)))
        line, place = np.nonzero(right)
        places = np.column_stack([here[line], top.ids[line, place], place]).astype(np.int64)
        values = []
        for truth in (*truths, *(as_truth(_rows_of(each, here)) for each in cheap)):
            values.append({})
            if here.size and self._means:
                rows = Rows(Block(truth, top, int(self.ks[-1])), self.ks, self._means, Options())
                for metric in self._means:
                    each = [rows.units(metric.name, i, "all")[0] for i in range(self.ks.size)]
                    values[-1][metric.name] = np.stack(each, axis=1)
        at = {key: sum(one[key] for one in values[2:]) / len(cheap) for key in values[0]} if cheap else {}
        rejected = int(np.count_nonzero(said & hit & ~right)), int(np.count_nonzero(said & hit))
        of_rows = {"observed": values[0], "judged": values[1], "cheap": at}
        return _Model(sums, labels, folds, of_rows, rejected, places[np.lexsort((places[:, 1], places[:, 0]))])

    def estimate(
        self, *, method: str = "ppi++", target: str = "these rows", confidence_level: float = 0.95
    ) -> pd.DataFrame:
        """What :func:`estimate` returns; method, target and confidence_level as there."""
        unnamed = [*self._models] == [""]
        sides = {() if unnamed else (name,): [(1.0, name)] for name in self._models}
        return self._table(sides, method, target, confidence_level)

    def compare(
        self,
        *,
        against: str | None = None,
        method: str = "ppi++",
        target: str = "these rows",
        confidence_level: float = 0.95,
    ) -> pd.DataFrame:
        """What :func:`compare` returns; method, target and confidence_level as there."""
        names = [*self._models]
        if len(names) < 2:
            raise ArgumentError("models", "must be two or more to be compared", f"only {names}")
        pairs = list(itertools.combinations(names, 2))
        if against is not None:
            pairs = [(name, against) for name in names if name != one_of("against", against, names)]
        return self._table(
            {pair: [(1.0, pair[0]), (-1.0, pair[1])] for pair in pairs}, method, target, confidence_level
        )

    def _table(self, sides: dict, method: str, target: str, confidence_level: float) -> pd.DataFrame:
        import pandas as pd

        how = method, target, confidence_level
        self._check(*how)
        found = [
            (metric.name, k, names, self._value(metric, i, each, *how))
            for metric, i, k in self._asked
            for names, each in sides.items()
        ]
        weights = ["proxy weight"] * self._with_proxy
        if len(next(iter(sides))) == 2:
            columns = ["metric", "k", "left", "right"]
            rows = [(metric, k, *names, *values) for metric, k, names, values in found]
        else:  # a model's metrics one after the other
            columns = ["model", "metric", "k"][1 - len(next(iter(sides))) :]
            rows = [
                (*names, metric, k, *values) for side in sides for metric, k, names, values in found if names == side
            ]
        table = pd.DataFrame(rows, columns=[*columns, *_COLUMNS, *weights])
        table.attrs["confidence_level"] = confidence_level
        return table

    @property
    def _with_proxy(self) -> bool:
        return any(model.cheap for model in self._models.values())

    def _check(self, method: str, target: str, confidence_level: float) -> None:
        one_of("method", method, _METHODS)
        one_of("target", target, _TARGETS)
        real_number("confidence_level", confidence_level, above=0, below=1)
        drawn = self.verdicts.drawn
        if drawn.size < 3:
            do = f"a row counts when none of its lines is blank; judge {FEW} rows or more, in the order of the sheet"
            raise ArgumentError("verdicts", "must be on 3 rows or more", f"{drawn.size}", do)
        for name, columns in ((metric.name, {*metric.columns}) for metric, _ in self.wanted):
            if not (self.complete or columns <= _OF_HITS):
                rule = "must be decided by the verdicts, and this one needs to know all labels of a drawn row"
                do = "let judges name every relevant label of the drawn rows and say complete=True; or ask for P"
                raise ArgumentError("metrics", rule, repr(name), do)
        if self._unjudged:
            _, got, _ = min(self._unjudged)
            do = f"{sum(each[2] for each in self._unjudged)} are missing: judge them, or ask for a smaller k. To leave out "
            do += "drawn rows would make the rest no random choice"
            raise ArgumentError("verdicts", f"must be on a drawn row's first {self.ks[-1]} predictions", got, do)
        if self._with_proxy and method == "ppi":
            raise ArgumentError("method", "must be 'ppi++' with a proxy, which finds its weight", repr(method))
        if self._covers and target != "these rows":
            rule = "must be 'these rows' for coverage, which grows with the number of rows"
            raise ArgumentError("target", rule, repr(target))
        for text in self.doubts():
            warnings.warn(text, JudgedWarning, stacklevel=4)

    def doubts(self) -> list[str]:
        """Why an interval may not hold, as far as the judged rows tell: a sentence each, with what to do."""
        n, n_rows, found = self.verdicts.drawn.size, self.n_rows, []
        if n < FEW:
            found.append(f"only {n} rows are judged: below {FEW} intervals hold less often than they say. Judge more")
        found += self._unlike(n, n_rows)
        no, asked = next(iter(self._models.values())).rejected
        if asked >= FEW and no > _ERRS * asked:
            text = f"judges reject {no} of {asked} observed labels. "
            found.append(text + "Either the observed truth is wrong or the judges err: look at some of them together")
        both = agreement(self.verdicts)
        for line in both.itertuples() if len(both) else ():
            if line.pairs < FEW or line.agree >= 1.0 - 2.0 * _ERRS:
                continue
            text = f"judges {line.judge!r} and {line.other!r} agree on {100 * line.agree:.0f} % of {line.pairs} pairs. "
            text += "No interval covers wrong verdicts: if one wrong prediction in ten is called right, P@k rises by a tenth "
            found.append(text + "of its distance from 1. Settle the pairs in dispute")
        return found

    def _unlike(self, n: int, n_rows: int) -> list[str]:
        """In what the drawn rows are unlike all rows."""
        if n < 2 or n == n_rows:
            return []
        sums, squares = (np.array([power(each) for each in self._looks]) for power in (np.sum, lambda x: (x * x).sum()))
        means = (sums / n_rows).tolist()
        variances = np.maximum(squares / n_rows - np.square(means), 0.0).tolist()
        looks, middle = np.column_stack(self._looks)[self.verdicts.drawn], (n_rows - 1) / 2.0
        number = self.verdicts.drawn.astype(np.float64)
        n2 = float(n_rows) * n_rows
        even = (n2 - 1.0) / 12.0  # the variance of all row numbers
        of = (  # what it is, its values, its mean and variance over all rows
            (f"right predictions among the first {self.ks[-1]}", looks[:, 0], means[0], variances[0]),
            ("observed labels", looks[:, 1], means[1], variances[1]),
            ("row number", number, middle, even),
            ("squared distance from the middle", (number - middle) ** 2, even, even * (n2 - 4.0) / 15.0),
        )
        found = []
        for name, values, mean, variance in of:
            error = math.sqrt(variance * (1.0 - n / n_rows) / n)
            gap = math.fsum(values.tolist()) / n - mean
            p = 2.0 * float(distributions.normal(-abs(gap) / error)) if error > 0 else 1.0
            if p * len(of) < _DOUBT:
                text = f"the judged rows do not look drawn at random: the mean {name} is {mean + gap:.4g} among them, "
                text += f"{mean:.4g} among all (p = {p:.1g}), so the estimate is about rows like these. Draw rows with "
                found.append(text + "xc.judged.sample, judge every one of them, and give only these")
        return found

    def _value(self, metric, i: int, sides: list, method: str, target: str, confidence_level: float) -> tuple:
        """observed, value, stderr, low, high, judged, weight: of a model, or of the gap between two."""
        if metric.fold != "rows":
            return self._coverage(i, sides, confidence_level)
        observed = sum(sign * float(metric.formula(self._models[model].sums)[i]) for sign, model in sides)
        f, y = (self._gap(sides, what, metric.name, i) for what in ("observed", "judged"))
        if self._with_proxy:
            found = self._regressed(metric, i, sides, observed, f, y, method, target, confidence_level)
        else:
            given = observed, f, y, self.n_rows, method, target, confidence_level, float(len(sides)), len(sides) == 1
            found = estimated(*given)
        value, error, low, high, *weights = found
        least = 0.0 if len(sides) == 1 else -1.0
        return observed, value, error, max(low, least), min(high, 1.0), f.size, *weights

    def _gap(self, sides: list, what: str, metric: str, i: int) -> np.ndarray:
        """(n,) the values of the judged rows of a model, or one model's less the other's."""
        return sum(sign * self._models[model].values[what][metric][:, i] for sign, model in sides)

    def _regressed(self, metric, i: int, sides: list, observed: float, f, y, method, target, confidence_level) -> tuple:
        """As :func:`estimated`, on what is observed and on the cheap verdicts; with a weight for each."""
        cheap, mean = self._gap(sides, "cheap", metric.name, i), 0.0
        for sign, model in sides:
            each = [float(metric.formula(fold)[i]) for fold in self._models[model].cheap]
            mean += sign * math.fsum(each) / len(each)
        known, columns = ([observed, mean], [f, cheap]) if method == "ppi++" else ([], [])
        F = np.array(columns).reshape(-1, f.size).T
        how = confidence_level, float(len(sides)), len(sides) == 1, target == "fresh rows"
        value, error, low, high, weights = regressed(np.array(known), F, y, self.n_rows, *how)
        return value, error, low, high, *(weights if known else [0.0, 0.0])

    def _coverage(self, i: int, sides: list, confidence_level: float) -> tuple:
        """As :meth:`_value`: the ends are those of two sums over rows that enclose what is not known."""
        drawn, N, k = self.verdicts.drawn, self.n_rows, int(self.ks[i])
        observed = floor = 0.0
        least, most, ceiling = np.zeros(drawn.size), np.zeros(drawn.size), 0.0
        for sign, model in sides:
            labels, right = self._models[model].labels, self._models[model].right
            predicted, hit = labels.first_ks()
            in_rows, open_labels = labels.predicted(right[:, 1]), (predicted <= i) & (hit > i)
            kept = (right[:, 2] < k) & open_labels[right[:, 1]]
            right = right[kept]
            line = np.searchsorted(drawn, right[:, 0])
            each = np.bincount(line, minlength=drawn.size).astype(np.float64)
            shared = np.bincount(line, 1.0 / in_rows[i, kept], minlength=drawn.size)
            observed += sign * np.count_nonzero(hit <= i)
            ends = shared, each, np.unique(right[:, 1]).size, np.count_nonzero(open_labels)
            few, many, found, all_open = ends if sign > 0 else (-ends[1], -ends[0], -ends[3], -ends[2])
            least, most, floor, ceiling = least + few, most + many, floor + found, ceiling + all_open
        how = "judged only", "these rows", confidence_level, float(k * len(sides))
        first, last = (estimated(0.0, np.zeros(drawn.size), each, N, *how) for each in (least, most))
        known = max(N * first[0], floor), min(N * last[0], ceiling)
        found = sum(known) / 2.0, np.nan, max(N * first[2], floor), min(N * last[3], ceiling)
        shares = (observed / self.n_labels, *((observed + np.array(found)) / self.n_labels).tolist())
        return *shares, drawn.size, *[np.nan] * (1 + self._with_proxy)


_COLUMNS = ("observed", "value", "stderr", "low", "high", "judged", "weight")


def _completed(said: Verdicts, truth: Truth) -> sparse.csr_matrix:
    """The truth of the drawn rows: what is judged counts as judged, the rest as observed."""
    line = np.searchsorted(said.drawn, said.rows)
    own = _rows_of(truth, said.drawn).tocoo()
    keys, judged = own.row.astype(np.int64) * truth.n_labels + own.col, line * truth.n_labels + said.labels
    keys = np.setdiff1d(np.union1d(keys, judged[said.right]), judged[~said.right])
    return sparse.csr_matrix((np.ones(keys.size), np.divmod(keys, truth.n_labels)), shape=own.shape)


def _in_verdicts(said: Verdicts, rows: np.ndarray, ids: np.ndarray, n_labels: int) -> np.ndarray:
    """(n, k) bool: which predictions of these rows have a verdict."""
    if said.rows.size == 0:
        return np.zeros(ids.shape, np.bool_)
    keys = said.rows * n_labels + said.labels
    wanted = rows[:, None] * n_labels + ids
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return (keys[at] == wanted) & (ids >= 0)


def _rows_of(truth: Truth, rows: np.ndarray) -> sparse.csr_matrix:
    """Some rows of a truth, without a copy of the others."""
    sizes = truth.sizes[rows]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    at = np.repeat(truth.indptr[rows].astype(np.int64) - indptr[:-1], sizes) + np.arange(indptr[-1])
    return sparse.csr_matrix((np.ones(at.size), truth.indices[at], indptr), shape=(rows.size, truth.n_labels))


def _cheap_truths(truth: Truth, proxy) -> list[Truth]:
    """At each level, the observed labels and those that the cheap verdicts call right; of yes and no there is one level."""
    given = _cheap_matrix(proxy, (truth.n_rows, truth.n_labels))
    levels = 1 if np.isin(given.data, (0, 1)).all() else LEVELS
    row, found = np.repeat(np.arange(truth.n_rows, dtype=np.int64), np.diff(given.indptr)), []
    own = np.repeat(np.arange(truth.n_rows, dtype=np.int64), truth.sizes) * truth.n_labels + truth.indices
    for level in range(levels):
        right = given.data >= (2 * level + 1) / (2 * levels)
        keys = np.union1d(own, row[right] * truth.n_labels + given.indices[right])
        at = np.divmod(keys, truth.n_labels)
        found.append(as_truth(sparse.csr_matrix((np.ones(keys.size, np.float32), at), shape=given.shape)))
    return found


def _cheap_matrix(proxy, shape: tuple[int, int]) -> sparse.csr_matrix:
    """Cheap verdicts as a matrix of numbers from 0 to 1."""
    import pandas as pd

    if isinstance(proxy, TopK):
        proxy = proxy.to_csr()
    if isinstance(proxy, pd.DataFrame):
        if not {"row", "label", "verdict"} <= {*proxy.columns}:
            raise ArgumentError("proxy", "must have the columns row, label, verdict", [*proxy.columns])
        proxy = proxy[proxy["label"] != DRAWN]
        row, label = (proxy[name].to_numpy(np.int64) for name in ("row", "label"))
        if ((row < 0) | (row >= shape[0]) | (label < 0) | (label >= shape[1])).any():
            raise ArgumentError("proxy", f"must be on rows below {shape[0]} and labels below {shape[1]}", "others")
        proxy = sparse.csr_matrix((proxy["verdict"].to_numpy(np.float64), (row, label)), shape=shape)
    given = sparse.csr_matrix(proxy) if not sparse.issparse(proxy) else proxy.tocsr()
    if given.shape != shape:
        rule = f"must have a place for each of {shape[0]} rows and {shape[1]} labels"
        raise ArgumentError("proxy", rule, given.shape)
    if not ((given.data >= 0) & (given.data <= 1)).all():
        do = "map scores first: xcrepro.calibrate; what is left out counts as 0"
        raise ArgumentError("proxy", "must hold numbers from 0 (wrong) to 1 (right)", "others", do)
    return given


def _is_mean(metric: registry.Metric) -> bool:
    return metric.fold == "rows" and metric.averages == "rows" and metric.unit == "fraction" and not metric.needs


def estimate(Y, top, given, ks=KS, metrics=METRICS, *, complete=False, rows=None, proxy=None, **how) -> pd.DataFrame:
    """Metrics on the complete truth, from an incomplete one and verdicts on the predictions of a few rows drawn at random.

    Parameters
    ----------
    Y, top
        The observed truth and predictions, as for :func:`xcrepro.evaluate`; ``top`` may be a mapping of models.
    given
        Verdicts, as for :func:`xcrepro.judged.verdicts`. Of a drawn row each of the first k predictions needs one, but for
        labels that are observed, which count as right unless a judge says no.
    ks : int or sequence of int
    metrics : str or sequence of str
    complete : bool
        As for :class:`Judged`.
    rows : array_like of int, optional
        The rows drawn, as for :func:`xcrepro.judged.verdicts`.
    proxy : sparse matrix or array_like of shape (n, L), DataFrame, or TopK, optional
        Cheap verdicts on all predictions of all rows: a language model's, a second annotator's, a score. Numbers from 0
        (wrong) to 1 (right); what is left out is 0. A DataFrame has the columns row, label, verdict. The metric on the
        observed labels and those that it calls right becomes a second predictor beside the one on the observed labels, in
        one regression. However wrong or flattering it is, the interval holds as often: only its width hangs on the proxy.
    method : {"ppi++", "ppi", "judged only"}
        The weight of what is observed: found from the judged rows, 1, or 0 (the module has the formulas).
    target : {"these rows", "fresh rows"}
        What the interval is to hold: the value of this very test set, were its truth complete; or the value to be
        expected of other rows of the same kind, as the interval of :func:`xcrepro.evaluate` does.
    confidence_level : float

    Returns
    -------
    DataFrame
        [model,] metric, k; ``observed``, the value on the observed truth; ``value``, the estimate on the complete one,
        with ``stderr``, ``low`` and ``high``; ``judged``, how many rows; ``weight``; with a proxy ``proxy weight``.

        **Coverage** is no mean over rows: whether a label is covered hangs on all rows that predict it. Labels with an
        observed hit are covered, labels that are not predicted are not. For an open label, predicted in m rows and
        right in r of them though nobody recorded it, r / m <= 1 if r > 0 <= r: so the sums of r / m and of r over the
        labels enclose the number that are covered. Both are sums over rows, which the judged rows estimate; ``low`` is
        the lower end of the first's interval and ``high`` the upper end of the second's, ``value`` the middle of both
        sums, and ``stderr`` is NaN. The interval holds at least as often as it says. It does not close as more rows are
        judged, until all are, if labels are open in many rows.

    Warns
    -----
    JudgedWarning
        For fewer than 20 rows, rows that do not look drawn at random, judges who disagree or who reject observed
        labels.

    Raises
    ------
    ArgumentError
        For verdicts on rows or labels that do not exist, or that contradict each other; for a prediction of a drawn row
        without a verdict; for fewer than three rows; for a metric that these verdicts cannot tell.

    Notes
    -----
    Assumed: the rows were drawn at random, before anybody looked at them; every drawn row is judged; verdicts are
    right. The interval says nothing of wrong verdicts: if judges call one in twenty wrong predictions right, P@k rises
    by a twentieth of its distance from 1, however many rows they judge. With ``complete`` such an error counts for every
    label that a judge considers: over 150 labels it gives a row seven that it does not have, and R@k falls to less than
    half. How often 95 % intervals held is in ``docs/judged.md``: in 90 to 100 % of 150 draws for 20 to 400 rows, with 1.5
    to 60 % of the labels missing, or all of some rows.

    Examples
    --------
    A hundred rows, each with one prediction. Half of all are observed to be right, and a judge finds a third of the
    others right:

    >>> from xcrepro.core.judged import sample
    >>> Y = np.repeat([[1, 0], [0, 1]], 50, axis=0)
    >>> top = TopK.from_ids(np.zeros((100, 1), int), n_labels=2)
    >>> rows = sample(100, 30)
    >>> said = [(row, 0, int(row < 50 or row % 3 == 0)) for row in rows]
    >>> estimate(Y, top, said, ks=1).round(3)
      metric  k  observed  value  stderr    low   high  judged  weight
    0      P  1       0.5  0.679   0.054  0.568  0.803      30   0.643
    """
    return Judged(Y, top, given, ks, metrics, complete=complete, rows=rows, proxy=proxy).estimate(**how)


def compare(
    Y,
    models: Mapping[str, TopK],
    given,
    ks=KS,
    metrics=METRICS,
    *,
    against=None,
    complete=False,
    rows=None,
    proxy=None,
    **how,
) -> pd.DataFrame:
    """The gap between each two models on the complete truth; the rows are the same, so that it is surer than two intervals say.

    Parameters
    ----------
    Y, given, ks, metrics, complete, rows, proxy, how
        As for :func:`estimate`; the verdicts must be on the predictions of all models. ``how`` are method, target and
        confidence_level.
    models : mapping of str to TopK
    against : str, optional
        A model: then each other one is compared with it only, and it is always ``right``.

    Returns
    -------
    DataFrame
        metric, k, left, right; then as :func:`estimate`, of left minus right. Intervals are not corrected for their
        number.
    """
    found = Judged(Y, models, given, ks, metrics, complete=complete, rows=rows, proxy=proxy)
    return found.compare(against=against, **how)


def bounds(Y, top, given, ks=KS, metrics=METRICS, *, complete=False, rows=None) -> pd.DataFrame:
    """judged@k and the residual: how far a metric could move if everything unjudged were wrong, or right.

    Parameters
    ----------
    Y, top, given, ks, metrics, complete, rows
        As for :func:`estimate`. Here rows may be judged in part.

    Returns
    -------
    DataFrame
        [model,] metric, k; ``judged``, the share of the first k predictions that are observed or judged (judged@k);
        ``low`` and ``high``, the metric with every other prediction wrong and with every one right; ``residual``, what
        lies between them (Moffat and Zobel, 2008). For metrics that count a row's labels, such as R, labels that are
        not predicted stay as they are observed or judged.

    Examples
    --------
    >>> top = TopK.from_ids([[0, 1], [1, 2]], n_labels=3)
    >>> bounds(np.eye(3)[:2], top, [(0, 1, 0)], ks=2)
      metric  k  judged  low  high  residual
    0      P  2    0.75  0.5  0.75      0.25
    """
    import pandas as pd

    asked, found, said = Judged(Y, top, given, ks, metrics, complete=complete, rows=rows), [], verdicts(given, rows)
    truth, ks = asked._truth, asked.ks
    of_row, new = np.repeat(np.arange(truth.n_rows), truth.sizes), asked._completed.to_csr().tocoo()
    kept = ~np.isin(of_row, said.drawn)
    own = np.concatenate([of_row[kept], said.drawn[new.row]]), np.concatenate([truth.indices[kept], new.col])
    for model, each in named_models(top).items():
        block = Block(truth, each, int(ks[-1]))
        known, there = np.zeros(block.ids.shape, np.bool_), block.ids >= 0
        known[said.drawn] = _in_verdicts(said, said.drawn, block.ids[said.drawn], truth.n_labels) | asked.complete
        known = (known | block.found) & there
        share = [float(known[:, :k].sum() / there[:, :k].sum()) if there[:, :k].any() else np.nan for k in ks]
        line, place = np.nonzero(~known & there)
        folds = []
        for unjudged in (0, line.size):
            at = [
                np.concatenate(two)
                for two in zip(own, (line[:unjudged], block.ids[line, place][:unjudged]), strict=True)
            ]
            full = sparse.csr_matrix((np.ones(at[0].size), at), shape=(truth.n_rows, truth.n_labels))
            folds.append({"rows": RowSums(ks, asked._columns), "labels": LabelCounts(truth.n_labels, ks)})
            for fold in folds[-1].values():
                fold.add(Block(full, TopK(block.ids, block.scores, block.n_labels), int(ks[-1])))
            folds[-1]["labels"] = folds[-1]["labels"].hit_labels()
        for metric, i, k in asked._asked:
            ends = sorted(float(metric.formula(fold[metric.fold])[i]) for fold in folds)  # abandonment falls
            found.append((model, metric.name, k, share[i], *ends, ends[1] - ends[0]))
    table = pd.DataFrame(found, columns=["model", "metric", "k", "judged", "low", "high", "residual"])
    return table.drop(columns="model") if [*table["model"].unique()] == [""] else table
