"""Figure 3, rerun: binned macro-F1 against the SVM's and against the best there is, tested over labels and over points."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, metrics, models
from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.findings import BLOCKS, Difference, Measured, agreement, corrected, count, numbers
from xcrepro.inputs import ranked
from xcrepro.inputs.datasets import weights
from xcrepro.metrics.significance import t_p_value
from xcrepro.papers.reeval import _common as reeval
from xcrepro.papers.reeval._common import BASELINE, Loaded, Tops, others, panel_title, predict, runs
from xcrepro.predictions import TopK
from xcrepro.repro import figures
from xcrepro.truth import Truth

LEVEL = 0.01
"""Of the paper's stars."""
ATTENTION, FIXED = "Attention", "Neural"
"""Of :data:`xcrepro.papers.reeval._common.MODELS`: label by label its own weights of the words, and one vector a point."""
KEYS = ["dataset", "method", "bin"]
COLUMNS = ["dataset", "k", "method", "bin", "labels", "value", "error", "baseline", "difference", "difference's error"]
COLUMNS += ["improvement", "t", "p", "p (points)", "ceiling"]


check_parameters = reeval.check_parameters


def compute(
    loaded: Loaded, tops: Tops, ks: Sequence[int], baseline: str = BASELINE, more_than: int = 10
) -> pd.DataFrame:
    """Binned macro-F1 of each model and of the baseline: what the bars and the stars of figure 3 are made of.

    Parameters
    ----------
    loaded, tops : mapping
        Printed name -> dataset, and -> model -> predictions for its test points.
    ks : sequence of int
        One k for each dataset.
    baseline : str
        The model that the others are compared with.
    more_than : int
        Bins of so many labels or fewer are not tested.

    Returns
    -------
    DataFrame
        dataset, k, method, bin, labels; value and error (percent; its standard error from blocks of test points), baseline
        (percent); difference and difference's error (points), improvement (percent of the baseline; NaN where that is 0);
        t, p: the macro t-test over labels, two-sided, NaN where not tested; p (points): of the difference, by its error;
        ceiling (:func:`xcrepro.metrics.best_macro_f1` of the bin's labels, percent). The baseline has rows of its own, last
        of a dataset, without a comparison. The paper's bins begin at one train point; labels never trained, and bins
        without a label, are left out.
    """
    parts = []
    for title, ds, k, methods in runs(loaded, tops, ks):
        bins = labels_by_bin(ds)
        best = {b: 100 * metrics.best_macro_f1(ds.test.Y[:, labels], k) for b, labels in bins.items()}
        measured = measure(ds, methods, k)
        how = {"metrics": "binned macro-F1", "more_than": more_than, "label_counts": ds.label_counts}
        for method, top in (others(methods, baseline) | {baseline: methods[baseline]}).items():
            rows = pd.DataFrame({"dataset": title, "k": k, "method": method, "bin": list(bins)})
            rows["labels"] = [labels.size for labels in bins.values()]
            rows["value"] = [measured[b].values[method] for b in bins]
            rows["error"] = [measured[b].error(method) for b in bins]
            rows["baseline"] = [measured[b].values[baseline] for b in bins]
            if method != baseline:
                found = [measured[b].difference(method, baseline) for b in bins]
                rows["difference"] = rows["value"] - rows["baseline"]
                rows["difference's error"] = [one.error for one in found]
                rows["improvement"] = 100 * rows["difference"] / rows["baseline"].where(rows["baseline"] > 0)
                with warnings.catch_warnings():
                    # Where labels share errors is seen in the table that compares this test with that over points.
                    warnings.simplefilter("ignore", metrics.SharedErrorsWarning)
                    tests = metrics.macro_t_test(ds.test.Y, top, methods[baseline], (k,), **how)
                # One for each bin that has labels, that of labels never trained among them.
                tests = tests[-len(bins) :]
                rows["t"], rows["p"] = [one.t for one in tests], [one.p for one in tests]
                rows["p (points)"] = [one.p for one in found]
            parts.append(rows.assign(ceiling=list(best.values())))
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def measure(ds: Dataset, tops: Mapping[str, TopK], k: int) -> dict[str, Measured]:
    """Binned macro-F1 of each model with a jackknife over the test points: bin -> the numbers of all models, percent.

    Parameters
    ----------
    ds : Dataset
    tops : mapping of str to TopK
    k : int

    Returns
    -------
    dict of str to Measured
        The bins of :func:`labels_by_bin`.
    """
    bins = list(labels_by_bin(ds))

    def by_bin(Y, top: TopK) -> dict[str, float]:
        found = metrics.binned_macro_f1(Y, top, (k,), label_counts=ds.label_counts)
        return (100 * found.set_index("bin")["value"])[bins].to_dict()

    return reeval.measure(by_bin, ds.test.Y, tops)


# ---------------------------------------------------------------- what can be reached, and what is hit


def labels_by_bin(ds: Dataset) -> dict[str, np.ndarray]:
    """The paper's bins of train frequency that have labels, rarest first: name -> label ids, int64."""
    which, names = metrics.labelwise.frequency_bins(ds.label_counts, ds.test.Y.shape[1])
    found = {name: np.flatnonzero(which == b) for b, name in enumerate(names)}
    return {name: labels for name, labels in found.items() if labels.size and name != "0"}


def compute_hits(loaded: Loaded, tops: Tops, ks: Sequence[int]) -> pd.DataFrame:
    """How many relevant labels each model finds in each bin: what binned macro-F1 stands on.

    Parameters
    ----------
    loaded, tops, ks
        As for :func:`xcrepro.papers.reeval._common.runs`.

    Returns
    -------
    DataFrame
        dataset, k, bin, labels, with a test point (of the labels), pairs (of a test point and a label of the bin
        relevant to it), then a column a model: how many of the pairs are among its first k. Whole numbers.
    """
    rows = []
    for title, ds, k, methods in runs(loaded, tops, ks):
        points = np.bincount(ds.test.Y.indices, minlength=ds.test.Y.shape[1])
        hits = {method: hits_by_label(ds.test.Y, top, k) for method, top in methods.items()}
        for name, labels in labels_by_bin(ds).items():
            row = {"dataset": title, "k": k, "bin": name, "labels": labels.size}
            row |= {"with a test point": int((points[labels] > 0).sum()), "pairs": int(points[labels].sum())}
            rows.append(row | {method: int(found[labels].sum()) for method, found in hits.items()})
    return pd.DataFrame(rows)


def hits_by_label(Y, top: TopK, k: int) -> np.ndarray:
    """How often each label is relevant and among the first k: int64, (L,)."""
    first = top.head(k).ids
    return np.bincount(first[Truth.of(Y).hits(np.ascontiguousarray(first))], minlength=Y.shape[1])


# ---------------------------------------------------------------- two tests


def compute_verdicts(table: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """What the two tests say of each bar.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    level : float
        Of both tests, of each bar by itself.

    Returns
    -------
    DataFrame
        dataset, method, bin, labels, difference, then over labels and over points (texts: ``better``, ``worse``, ``-`` where
        p is not below ``level``, ``untested``), agree (``yes``, ``no``, empty where one test was not made), and both p. No
        rows of the baseline.
    """
    bars = table.loc[table["difference"].notna(), [*KEYS, "labels", "difference", "p", "p (points)"]]
    bars = bars.reset_index(drop=True)
    bars.insert(5, "over labels", _verdicts(bars["p"], bars["difference"], level))
    bars.insert(6, "over points", _verdicts(bars["p (points)"], bars["difference"], level))
    untested = (bars["over labels"] == "untested") | (bars["over points"] == "untested")
    same = np.where(bars["over labels"] == bars["over points"], "yes", "no")
    bars.insert(7, "agree", np.where(untested, "", same))
    return bars


def _verdicts(p: pd.Series, difference: pd.Series, level: float) -> np.ndarray:
    return np.select([p.isna(), ~(p < level), difference > 0], ["untested", "-", "better"], "worse")


def compute_summary(verdicts: pd.DataFrame) -> pd.DataFrame:
    """How many bars of each bin lie above and below the baseline, and for how many each test says so.

    Parameters
    ----------
    verdicts : DataFrame
        From :func:`compute_verdicts`.

    Returns
    -------
    DataFrame
        bin, bars, above, below, then for either test above and below (``labels above``, ...), tested by both, and agree (of
        those).
    """
    counted = verdicts[["bin"]].assign(bars=1, above=verdicts["difference"] > 0, below=verdicts["difference"] < 0)
    for test in ("labels", "points"):
        for side, word in (("above", "better"), ("below", "worse")):
            counted[f"{test} {side}"] = verdicts[f"over {test}"] == word
    counted["tested by both"], counted["agree"] = verdicts["agree"] != "", verdicts["agree"] == "yes"
    counts = counted.groupby("bin").sum().astype(int)
    return counts.loc[[name for name in registry.BINS if name in counts.index]].reset_index()


# ---------------------------------------------------------------- PSP, and the weight of the loss


def compute_psp(
    loaded: Loaded, tops: Tops, ks: Sequence[int], table: pd.DataFrame, baseline: str = BASELINE
) -> pd.DataFrame:
    """Appendix D's point: does a gain in PSP mean a gain on tail labels?

    Parameters
    ----------
    loaded, tops, ks
        As for :func:`xcrepro.papers.reeval._common.runs`.
    table : DataFrame
        From :func:`compute`, of the same.
    baseline : str
        One of the models.

    Returns
    -------
    DataFrame
        dataset, method, k, and differences to the baseline in points at the dataset's k: P, of twins P complete (on
        the complete truth, what PSP estimates), PSP, its error, macro-F1, rarest bin (the macro-F1 of the rarest labels) and
        its error. No rows where the baseline is alone.
    """
    parts = []
    for title, ds, k, methods in runs(loaded, tops, ks):
        if not (names := list(others(methods, baseline))):
            continue
        bars = table[table["dataset"] == title]
        rarest = bars[bars["bin"] == bars["bin"].iloc[0]].set_index("method")
        values = ranked.compare(ds, methods, ["P", "PSP", "macro-F1"], [k]).set_index("model")
        differences = (values - values.loc[baseline]).loc[names]
        differences.columns = differences.columns.str.replace(f"@{k}", "")
        inverse = weights(ds)
        psp = reeval.measure(
            lambda Y, top, k=k, inverse=inverse: {
                "PSP": 100 * metrics.psp(Y, top, (k,), inverse_propensity=inverse)[0]
            },
            ds.test.Y,
            methods,
        )["PSP"]
        at = differences.columns.get_loc("PSP") + 1
        differences.insert(at, "PSP's error", [psp.difference(name, baseline).error for name in names])
        differences["rarest bin"] = rarest["difference"]
        differences["rarest bin's error"] = rarest["difference's error"]
        differences = differences.rename_axis("method").reset_index()
        differences.insert(0, "dataset", title)
        differences.insert(2, "k", k)
        parts.append(differences)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["dataset", "method", "k"])


def compute_costs(ds: Dataset, k: int, costs: Sequence[float], seed: int = 0) -> pd.DataFrame:
    """The same one-vs-rest on the same features with other losses and other C.

    What of the tail is the model's, and what is its regularisation's?

    Parameters
    ----------
    ds : Dataset
    k : int
    costs : sequence of float
        The C.
    seed : int
        Of the trainings.

    Returns
    -------
    DataFrame
        loss, C, micro_F1, macro_F1, then binned macro-F1, a column a bin that has labels; percent at k. No rows for no
        ``costs``.
    """
    rows = []
    for loss in ("squared_hinge", "logistic"):
        for C in costs:
            top = predict(models.OneVsRest(loss=loss, C=C, seed=seed), ds)
            values = 100 * metrics.evaluate(ds.test.Y, top, (k,), metrics=["micro-F1", "macro-F1"])["value"]
            binned = metrics.binned_macro_f1(ds.test.Y, top, (k,), label_counts=ds.label_counts)
            binned = binned[(binned["bin"] != "0") & (binned["labels"] > 0)].set_index("bin")["value"]
            rows.append({"loss": loss, "C": float(C), "micro_F1": values[0], "macro_F1": values[1], **(100 * binned)})
    return pd.DataFrame(rows, columns=None if rows else ["loss", "C", "micro_F1", "macro_F1"])


# ---------------------------------------------------------------- findings


def findings(table: pd.DataFrame, psp: pd.DataFrame, baseline: str = BASELINE) -> list[str]:
    """What came out, each sentence with its test.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    psp : DataFrame
        From :func:`compute_psp`.
    baseline : str
        As given to both.

    Returns
    -------
    list of str
    """
    said = [_near_the_ceiling(table)]
    bars = table[table["difference"].notna()]
    if bars.empty:
        return said
    rarest = bars["bin"] == bars.groupby("dataset")["bin"].transform("first")
    found = _corrected(bars, "difference", baseline)
    for which, words in ((rarest, "rarest labels"), (~rarest, "more frequent labels")):
        if names := ", ".join(bars.loc[which, "bin"].unique()):
            words += f" ({names} train points)"
        chosen = [one for one, wanted in zip(found, which, strict=True) if wanted]
        said.append(f"{count(chosen, f'On the {words} a model is above {baseline}')}.")
    tested = bars["p"].dropna()
    stars, held = (tested < LEVEL).sum(), sum(p < LEVEL for p in metrics.holm(tested)) if len(tested) else 0
    if len(tested):
        said.append(
            f"The macro t-test has p < {LEVEL:g} for {stars} of {len(tested)} bars, each by itself, and for {held} after "
            f"Holm's correction."
        )
    verdicts = compute_verdicts(table)["agree"].value_counts()
    both = verdicts.get("yes", 0) + verdicts.get("no", 0)
    if both:
        said.append(
            f"Over labels and over points the two tests say the same of {verdicts.get('yes', 0)} of the {both} bars that "
            f"both can test."
        )
    if len(psp):
        one, other = _corrected(psp, "PSP", baseline), _corrected(psp, "rarest bin", baseline)
        pairs = list(zip(one, other, strict=True))
        against = [a.left for a, b in pairs if a.verdict == "above" and b.verdict == "below"]
        alike = sum(a.clear and a.verdict == b.verdict for a, b in pairs)
        said.append(
            f"PSP is clearly above {baseline}'s while the rarest labels are clearly worse, as the paper reports of some "
            f"transformers: {len(against)} of {len(pairs)} comparisons; the two agree clearly in {alike}."
        )
    return said


def findings_recorded(table: pd.DataFrame, recorded: Mapping[str, pd.DataFrame], baseline: str = BASELINE) -> list[str]:
    """Whether real data say the same of the rarest labels that each dataset has.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    recorded : mapping of str to DataFrame
        Dataset -> its :func:`check`, as recorded; with :data:`BASELINE` as the baseline.
    baseline : str
        As given to ``compute``.

    Returns
    -------
    list of str
        Of :func:`xcrepro.findings.agreement`; none for another baseline.
    """
    if baseline != BASELINE:
        return []
    bars = table[table["difference"].notna()]
    rarest = {name: part[part["bin"] == part["bin"].iloc[0]] for name, part in recorded.items()}
    values = numbers(rarest, "method", "value")
    for name, part in rarest.items():
        values[name][baseline] = part["baseline"].iloc[0]
    here = bars[bars["bin"] == bars.groupby("dataset")["bin"].transform("first")]
    return [agreement(_corrected(here, "difference", baseline), values, "binned macro-F1 of the rarest labels")]


def findings_attention(loaded: Loaded, tops: Tops, ks: Sequence[int], baseline: str = BASELINE) -> list[str]:
    """Does attention of each label's own help on rare labels, as the paper says of AttentionXML?

    Parameters
    ----------
    loaded, tops, ks
        As for :func:`xcrepro.papers.reeval._common.runs`.
    baseline : str
        The model that the paper's claim compares with. :data:`ATTENTION`'s other comparison is with :data:`FIXED`.

    Returns
    -------
    list of str
        A sentence a comparison, the differences of all datasets corrected together; none where a model is not there.
    """
    rarest = {}
    for title, ds, k, methods in runs(loaded, tops, ks):
        chosen = {name: methods[name] for name in (ATTENTION, FIXED, baseline) if name in methods}
        rarest[title] = next(iter(measure(ds, chosen, k).values()))
    said = []
    for other, why in (
        (baseline, "the paper has AttentionXML so on two of three datasets"),
        (FIXED, "one vector a point"),
    ):
        there = [title for title, found in rarest.items() if {ATTENTION, other} <= found.values.keys()]
        if other == ATTENTION or not there:
            continue
        found = corrected(rarest[title].difference(ATTENTION, other) for title in there)
        each = "; ".join(f"{title} {one.value:+.1f} ± {one.error:.1f}" for title, one in zip(there, found, strict=True))
        claim = f"On the rarest labels {ATTENTION} is above {other} ({why})"
        said.append(f"{count(found, claim)}; points: {each}.")
    return said


def _corrected(table: pd.DataFrame, column: str, baseline: str) -> list[Difference]:
    """The differences of a column of a table, with its errors, corrected together."""
    dof = BLOCKS - 1
    found = []
    for method, value, error in zip(table["method"], table[column], table[f"{column}'s error"], strict=True):
        p = t_p_value(value / error, dof) if error > 0 else float(value == 0) if error == 0 else np.nan
        found.append(Difference(method, baseline, float(value), float(error), dof, float(p)))
    return corrected(found)


def _near_the_ceiling(table: pd.DataFrame) -> str:
    """How much of what can be reached the best model has in the rarest and the most frequent bin of each dataset."""
    texts = []
    for dataset, part in table.groupby("dataset", sort=False):
        best = part.groupby("bin", sort=False).agg(value=("value", "max"), ceiling=("ceiling", "first"))
        share = (best["value"] / best["ceiling"].where(best["ceiling"] > 0)).dropna()
        if len(share):
            ends = [f"{100 * share[name]:.0f} % ({name} train points)" for name in dict.fromkeys(share.index[[0, -1]])]
            texts.append(f"{dataset} {' and '.join(ends)}")
    return f"The highest binned macro-F1, as a share of its ceiling: {'; '.join(texts)}."


def findings_costs(table: pd.DataFrame, title: str) -> list[str]:
    """What the loss and C move, as counts of what is shown.

    Parameters
    ----------
    table : DataFrame
        From :func:`compute_costs`.
    title : str
        The dataset.

    Returns
    -------
    list of str
        None for a table without rows.
    """
    said = []
    for loss, part in table.groupby("loss", sort=False):
        low, high = part.loc[part["macro_F1"].idxmin()], part.loc[part["macro_F1"].idxmax()]
        if len(part) > 1:
            words = f"{low['macro_F1']:.1f} (C = {low['C']:g}) to {high['macro_F1']:.1f} (C = {high['C']:g})"
            said.append(f"{title}, {loss.replace('_', ' ')}: macro-F1 from {words}.")
    return said


# ---------------------------------------------------------------- the figure


def plot(table: pd.DataFrame, baseline: str = BASELINE, twin: bool = True, level: float = LEVEL, ax=None) -> Figure:
    """Figure 3: above, relative improvement over the baseline by bin, starred by the macro t-test; below, the values.

    Below, a bar across each bin is its ceiling: no predictions whatever have more (:func:`xcrepro.metrics.best_macro_f1`).

    Parameters
    ----------
    table : DataFrame
        From :func:`compute`.
    baseline : str
        As given to it.
    twin : bool
        Whether the values are of twins; panels are named so.
    level : float
        A star stands where p is below it.
    ax : array of Axes, shape (2, datasets), optional
        (1, datasets) where the baseline is alone: there is no improvement to draw.
    """
    names, compared = table["dataset"].unique(), table["difference"].notna()
    methods = table.loc[compared, "method"].unique()
    width = looks.WIDE if len(names) > 1 else looks.NARROW
    rows = 2 if len(methods) else 1
    shape = {"nrows": rows, "ncols": len(names), "squeeze": False, "sharex": "col", "sharey": "row"}
    with figures.new(width, 0.6 + 2.5 * rows, ax=ax, **shape) as (fig, axes):
        for title, panels in zip(names, axes.T, strict=True):
            part = table[table["dataset"] == title]
            bins = part.drop_duplicates("bin").set_index("bin")
            if len(methods):
                _draw_improvements(panels[0], part[part["difference"].notna()], bins.index, methods, baseline, level)
            _draw_values(panels[-1], part, bins, [baseline, *methods])
            panels[0].set_title(panel_title(title, part["k"].iloc[0], twin), loc="left")
            panels[-1].set_xticks(range(len(bins)), [f"{name}\n{n:,} labels" for name, n in bins["labels"].items()])
        if len(methods):
            axes[0, 0].set_ylabel(f"change from\n{baseline}'s, %")
        if (table["p"] < level).any():
            star = {"marker": "$*$", "color": looks.INK, "linestyle": "none"}
            axes[0, -1].plot([], [], label=f"macro t-test, p < {level:g}", **star)
        axes[-1, 0].set_ylabel("binned macro-F1@k, %")
        axes[-1, len(names) // 2].set_xlabel("training points that carry the label")
        looks.legend(fig, ncols=4 if len(names) > 1 else 3)
        what = f"change from {baseline}'s above, value below" if len(methods) else "value"
        end = (
            "; whiskers: two standard errors"
            if len(names) > 1 or not len(methods)
            else "\nWhiskers: two standard errors"
        )
        looks.title(fig, f"Binned macro-F1: {what}{end}")
    return fig


def _draw_improvements(panel, part: pd.DataFrame, bins: pd.Index, methods, baseline: str, level: float) -> None:
    width, small = 0.8 / len(methods), {"ha": "center", "fontsize": looks.TINY, "color": "0.35"}
    for m, (method, look) in enumerate(looks.distinct(methods).items()):
        mine = part[part["method"] == method].set_index("bin").reindex(bins)
        place = np.arange(len(mine)) + (m - (len(methods) - 1) / 2) * width
        panel.bar(place, mine["improvement"], width, label=method, **look.bar())
        for x, y, p in zip(place, mine["improvement"], mine["p"], strict=True):
            if p < level and np.isfinite(y):
                up, va = (2, "baseline") if y > 0 else (-3, "top")
                panel.annotate("*", (x, y), (0, up), textcoords="offset points", ha="center", va=va)
    figures.draws(panel, y="improvement")
    for b, (_, here) in enumerate(part.groupby("bin", sort=False)):
        note = "" if here["p"].notna().any() else "not tested"
        note = f"{baseline}: 0" if here["improvement"].isna().all() else note
        # On the side of 0 where the panel has room.
        low, high = here["improvement"].min(), here["improvement"].max()
        y, up, va = (low, -4, "top") if low < 0 and not high > -low else (max(high, 0) if high > 0 else 0, 4, "bottom")
        panel.annotate(note, (b, y), (0, up), textcoords="offset points", va=va, **small)
    panel.axhline(0, color=looks.INK, linewidth=0.8)
    panel.grid(axis="x", visible=False)
    panel.margins(y=0.12)


def _draw_values(panel, part: pd.DataFrame, bins: pd.DataFrame, methods: Sequence[str]) -> None:
    width = 0.8 / len(methods)
    whiskers = {"ecolor": "0.45", "elinewidth": 1, "capsize": min(2.0, 8 * width)}
    for m, (method, look) in enumerate(looks.distinct(methods).items()):
        mine = part[part["method"] == method].set_index("bin").reindex(bins.index)
        place = np.arange(len(bins)) + (m - (len(methods) - 1) / 2) * width
        bar = look.bar() | {"label": method, "yerr": 2 * mine["error"], "error_kw": whiskers}
        panel.bar(place, mine["value"], width, **bar)
    for b, ceiling in enumerate(bins["ceiling"]):
        line = {
            "color": looks.RUST,
            "linestyle": "-",
            "marker": "",
            "linewidth": 2,
            "label": "ceiling: no predictions have more",
        }
        panel.plot([b - 0.42, b + 0.42], [ceiling, ceiling], **line)
        looks.name(panel, f"{ceiling:.1f}", (b, ceiling), (0, 3), ha="center")
    figures.draws(panel, y=("value", "ceiling"))
    panel.grid(axis="x", visible=False)
    panel.margins(y=0.12)
    panel.set_ylim(bottom=0)
