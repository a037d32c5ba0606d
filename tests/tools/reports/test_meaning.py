"""What a report tells: each sentence computed a second time with plain loops, each legend and axis held to what is drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.repro.drawing import figures, looks
from xcrepro.tools.reports import compute, sentences
from xcrepro.tools.reports import figures as drawing
from xcrepro.tools.reports.given import collect

K = 5


@pytest.fixture(scope="module")
def hits(small):
    """Model -> whether each place of its first five is a hit, (120, 5)."""
    Y = small.Y.toarray() > 0
    return {model: np.take_along_axis(Y, top.ids[:, :K], axis=1) for model, top in small.tops.items()}


@pytest.fixture(scope="module")
def counts(small):
    return np.asarray((small.train > 0).sum(axis=0)).ravel()


@pytest.fixture(scope="module")
def drawn(made):
    """Part -> its figure and the table behind it, as the notebook draws them."""
    look, shown = (
        looks.distinct(made.about["models"]),
        [("P", 1), *((name, K) for name in ("P", "nDCG", "PSP", "coverage"))],
    )

    def percent(name: str, *columns: str) -> pd.DataFrame:
        return drawing.in_percent(made.frame(name), columns)

    tables = {
        "ranking": percent("metrics", "value", "low", "high"),
        "pairs": percent("pairs", "value", "low", "high"),
        "bins": percent("bins", "value", "low", "high", "ceiling"),
        "bands": percent("bands", "P", "PSP"),
        "calibration": percent("calibration", "value", "low", "high").query("metric == 'ECE'"),
        "reliability": made.frame("reliability"),
        "price": percent("price", "P", "P low", "P high", "Cov", "Cov low", "Cov high"),
    }
    draw = {
        "ranking": lambda table: drawing.metrics(table, look, shown),
        "pairs": lambda table: drawing.pairs(table, shown),
        "bins": lambda table: drawing.bins(table, look, K),
        "bands": lambda table: drawing.bands(table, K),
        "calibration": lambda table: drawing.calibration(table, look),
        "reliability": lambda table: drawing.reliability(table, look, K),
        "price": lambda table: drawing.price(table, look),
    }
    return {name: (draw[name](table), table) for name, table in tables.items()}


def test_figures_show_the_numbers_of_their_tables_alone(drawn):
    for fig, table in drawn.values():
        figures.held(fig, table)  # raises DrawingFault otherwise
        with pytest.raises(figures.DrawingFault):
            figures.held(fig, table.iloc[:1])


def said(made, part: str) -> str:
    return " ".join(made.sentences(part))


def marks(ax) -> dict[str, list]:
    """Label -> the lines with a marker that are drawn under it."""
    found = {}
    for line in ax.lines:
        if line.get_marker() not in ("None", None, ""):
            found.setdefault(line.get_label(), []).append(line)
    return found


def visible(fig) -> list:
    return [ax for ax in fig.axes if ax.get_visible()]


def hollow(line) -> bool:
    return line.get_markerfacecolor() == "#ffffff"


# ---------------------------------------------------------------- sentences


def test_the_leader_is_the_model_with_more_hits(made, hits):
    shares = {model: 100 * found.mean() for model, found in hits.items()}
    best, other = sorted(shares, key=shares.get, reverse=True)
    text = next(one for one in made.sentences("ranking") if f" P@{K}" in one)
    assert text.startswith((f"{best} leads", "No clear leader"))
    assert f"{shares[best]:.1f} %" in text
    assert f"{shares[best] - shares[other]:.1f} points" in text
    assert f"above {other}" in text


def test_hits_are_counted_in_the_band_of_their_labels(made, small, hits, counts):
    bands = {"0": (0, 0), "1-9": (1, 9), "10-99": (10, 99), "100-999": (100, 999)}
    for model, found in hits.items():
        of = counts[small.tops[model].ids[:, :K][found]]
        each = {name: int(((of >= low) & (of <= high)).sum()) for name, (low, high) in bands.items()}
        assert sum(each.values()) == found.sum()
        most = max(each, key=each.get)
        rare = (each["0"] + each["1-9"]) / found.sum()
        assert f"{model} {each[most] / found.sum():.0%} in {most}, {rare:.1%} in labels" in said(made, "bands")


@pytest.mark.parametrize(("chance", "words"), [(0.9, "1 too high, 0 too low"), (0.1, "0 too high, 1 too low")])
def test_scores_above_the_share_of_hits_are_too_high(chance, words):
    """Half of the predictions are right."""
    Y = np.arange(400)[:, None] % 2 == np.arange(2)
    top = xc.TopK.from_ids(np.zeros((400, 1), int), np.full((400, 1), chance), n_labels=2)
    _, diagrams = compute.calibration(collect(Y.astype(float), top), [1], samples=20)
    assert f"model: of 1 bins {words}" in sentences.reliability(diagrams, 1)


def test_the_bins_that_are_off_are_those_outside_chance(made):
    table = made.frame("reliability").query("state == 'before' and count > 0")
    for model, rows in table.groupby("model"):
        high = sum(row.accuracy < row.low for row in rows.itertuples())
        low = sum(row.accuracy > row.high for row in rows.itertuples())
        assert f"{model}: of {len(rows)} bins {high} too high, {low} too low" in said(made, "reliability")


def test_the_price_is_of_coverage_alone(made, small, hits):
    Y = small.Y.toarray() > 0

    def of(ids) -> tuple[float, float]:
        right = [(row, label) for row, line in enumerate(ids) for label in line if Y[row, label]]
        return 100 * len(right) / (K * len(Y)), 100 * len({label for _, label in right}) / Y.shape[1]

    for model, top in small.tops.items():
        before, after = (of(xc.decide.greedy_coverage(top.to_csr(), K, beta).ids) for beta in (np.inf, 0.0))
        assert before[0] == pytest.approx(100 * hits[model].mean())
        coverage, precision = after[1] - before[1], after[0] - before[0]
        expected = (sentences.number(one / 100, "P", sign=True) for one in (coverage, precision))
        text = "{} {} points of coverage, {} points of precision".format(model, *expected)
        assert text in said(made, "price")


def test_a_beta_that_costs_nothing_is_named():
    rows = {np.inf: (0.5, 0.2), 1.0: (0.48, 0.3), 0.25: (0.52, 0.4), 0.0625: (0.51, 0.5), 0.0: (0.4, 0.6)}
    rows = [("a", beta, K, *both) for beta, both in rows.items()]
    text = sentences.price(pd.DataFrame(rows, columns=["model", "beta", "k", "P", "Cov"]))
    assert "a +40.0 points of coverage, -10.0 points of precision (with beta = 0.25 both rise)." in text


def test_labels_and_points_with_more_hits_are_the_first_models(made, small, hits):
    d = hits["good"].sum(axis=1) - hits["bad"].sum(axis=1)
    of = {m: np.bincount(small.tops[m].ids[:, :K][found], minlength=30) for m, found in hits.items()}
    e = (of["good"] - of["bad"])[np.asarray((small.Y > 0).sum(axis=0)).ravel() > 0]
    labels, points = (f"{(x != 0).sum()} {{}} ({(x > 0).sum()} to {(x < 0).sum()})" for x in (e, d))
    text = f"good and bad on {labels.format('labels')} and {points.format('points')}."
    assert said(made, "differences").endswith(text)


def test_a_difference_has_the_other_sign_seen_from_the_other_model(made):
    row = made.frame("pairs").query("metric == 'P' and k == @K").iloc[0]
    one, other = (sentences.against(made.frame("pairs"), row[side], "P", K).iloc[0] for side in ("left", "right"))
    assert (one["other"], other["other"]) == (row["right"], row["left"])
    assert (one["value"], one["low"], one["high"]) == (-other["value"], -other["high"], -other["low"])
    assert one["value"] == row["value"]


def test_clear_comparisons_are_counted(made):
    pairs = made.frame("pairs")
    clear = [row for row in pairs.to_dict("records") if row["p"] < 0.05]
    assert f"Of {len(pairs)} comparisons (one pair of models, each metric and k), {len(clear)} are clear" in said(
        made, "pairs"
    )


def test_the_best_share_of_a_bins_ceiling_is_the_larger_one(made):
    bins = made.frame("bins").query("k == @K")
    for name in bins["bin"].unique():
        shares = {row.model: row.value / row.ceiling for row in bins.itertuples() if row.bin == name and row.ceiling}
        if shares and max(shares.values()):
            best = max(shares, key=shares.get)
            assert f"{name}: {best} with {shares[best]:.0%}" in said(made, "bins")


@pytest.mark.parametrize(("difference", "first"), [(0.2, "a over b"), (-0.2, "b over a")])
def test_the_t_test_names_the_better_model_first(difference, first):
    row = {"left": "a", "right": "b", "metric": "macro-F1", "k": K, "value": difference, "p": 0.001}
    assert sentences.t_tests(pd.DataFrame([row | {"shared": 1.0}]), K) == (
        f"Macro-F1@{K} over labels: clear for {first}."
    )


# ---------------------------------------------------------------- figures


@pytest.mark.parametrize("part", ["ranking", "pairs"])
def test_panels_and_rows_are_named_as_their_marks(drawn, made, part):
    """A panel's title is the metric of its marks, a row's name the model of its own; filled where clear."""
    fig, table = drawn[part]
    side = "model" if part == "ranking" else "left"
    axes = visible(fig)
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    assert len({ax.get_title() for ax in axes}) == len(axes) > 3
    for ax in axes:
        metric, k = ax.get_title().split("@")
        own = table[(table["metric"] == metric) & (table["k"] == int(k))]
        lines = list(itertools.chain(*marks(ax).values()))
        assert len(lines) == len(own) == len(names)
        for line in lines:
            name = names[int(line.get_ydata()[0])].split(" - ")
            row = own[own[side] == name[0]].iloc[0]
            assert line.get_xdata()[0] == row["value"]
            if part == "pairs":
                assert row["right"] == name[1]
                assert hollow(line) == (not row["p"] < 0.05)
        ends = sorted(tuple(path[:, 0]) for one in ax.collections for path in one.get_segments())
        assert ends == sorted(own[["low", "high"]].itertuples(index=False, name=None))


def test_a_bar_is_its_models_and_its_bins(drawn):
    fig, table = drawn["bins"]
    ax = visible(fig)[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("train points of the label", f"macro-F1@{K}, %")
    table = table[table["k"] == K].set_index(["model", "bin"])
    names = [label.get_text().partition("\n")[0] for label in ax.get_xticklabels()]
    colours = {bars.get_label(): bars.patches[0].get_facecolor() for bars in ax.containers}
    for bars in ax.containers:
        for bar in bars:
            at = round(bar.get_x() + bar.get_width() / 2)
            assert bar.get_height() == table.loc[(bars.get_label(), names[at]), "value"]
    legend = fig.legends[0]
    for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
        assert handle.get_facecolor() == colours[text.get_text()]
    ceilings = {names[round(np.mean(line.get_xdata()))]: line.get_ydata()[0] for line in ax.lines}
    assert ceilings == {name: table.xs(name, level="bin")["ceiling"].iloc[0] for name in names}


def test_a_band_has_its_name_its_length_and_its_axis(drawn):
    fig, table = drawn["bands"]
    axes = visible(fig)
    models = [label.get_text() for label in axes[0].get_yticklabels()]
    assert [ax.get_xlabel() for ax in axes] == [f"P@{K}, %", f"PSP@{K}, %"]
    for ax, metric in zip(axes, ("P", "PSP"), strict=True):
        own = table.set_index(["model", "band"])[metric]
        for bars in ax.containers:
            for bar in bars:
                model = models[round(bar.get_y() + bar.get_height() / 2)]
                assert bar.get_width() == pytest.approx(own[model, bars.get_label()])
    legend = fig.legends[0]
    assert legend.get_title().get_text() == "train points of the label"
    shades = {bars.get_label(): bars.patches[0].get_alpha() for bars in axes[0].containers}
    assert {
        t.get_text(): h.get_alpha() for t, h in zip(legend.get_texts(), legend.legend_handles, strict=True)
    } == shades


def filled(table, model, state):
    """The bins that are drawn: those with 20 pairs, or where none has as many the fullest."""
    own = table[(table["model"] == model) & (table["state"] == state)]
    return own[own["count"] >= min(20, own["count"].max())]


def test_reliability_is_filled_before_and_hollow_after(drawn, small):
    fig, table = drawn["reliability"]
    named = {
        text.get_text(): mark
        for legend in fig.legends
        for text, mark in zip(legend.get_texts(), legend.legend_handles, strict=True)
    }
    before, after, chance = named
    assert before.startswith("before")
    assert after.startswith("after")
    assert "chance" in chance
    assert named[before].get_markerfacecolor() != named[after].get_markerfacecolor() == looks.WHITE
    for ax in visible(fig):
        assert (ax.get_xlabel(), ax.get_title()) == ("mean score", ax.get_title())
        for state, [line] in marks(ax).items():
            own = filled(table, ax.get_title(), state)
            assert line.get_linestyle() == "None"
            assert line.get_xdata().tolist() == own["confidence"].tolist()
            assert line.get_ydata().tolist() == own["accuracy"].tolist()
            assert hollow(line) == (state == "after")
        chance = [one for one in ax.collections if one.get_label() == "_guide chance"]
        own = filled(table, ax.get_title(), "before")
        assert [tuple(path[:, 1]) for path in chance[0].get_segments()] == list(
            zip(own["low"], own["high"], strict=True)
        )
    assert visible(fig)[0].get_ylabel() == "share of hits"
    # The mean of the scores, from the scores: what lies along the axis of scores are scores.
    scores = small.good.scores[:, :K].astype(float)
    own = table.query("model == 'good' and state == 'before'")
    assert (own["confidence"] * own["count"]).sum() == pytest.approx(scores.sum())


def test_calibration_is_filled_before_and_hollow_after(drawn):
    fig, table = drawn["calibration"]
    ax = visible(fig)[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("k", "ECE@k, %")
    assert "filled: before, hollow: after" in fig.get_suptitle()
    lines = list(itertools.chain(*marks(ax).values()))
    colours = {line.get_color(): line.get_label() for line in lines if not hollow(line)}
    assert len(lines) == 2 * len(colours) == 4
    for line in lines:
        state = "after" if hollow(line) else "before"
        own = table[(table["model"] == colours[line.get_color()]) & (table["state"] == state)].sort_values("k")
        assert line.get_xdata().tolist() == own["k"].tolist()
        assert line.get_ydata().tolist() == own["value"].tolist()


def test_the_price_has_coverage_along_and_precision_up(drawn):
    fig, table = drawn["price"]
    ax = visible(fig)[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == (f"coverage@{K}, %", f"P@{K}, %")
    for model, [line] in marks(ax).items():
        own = table[table["model"] == model]
        assert own["beta"].tolist() == [*compute.BETAS]
        assert line.get_xdata().tolist() == own["Cov"].tolist()
        assert line.get_ydata().tolist() == own["P"].tolist()


def test_ranks_stand_beside_their_models():
    placed = pd.DataFrame({"model": ["a", "b"], "x": [1.0, 2.0], "y": [1.0, 2.0], "mean rank": [1.0, 2.0]})
    look = looks.distinct(["a", "b"])
    ax = drawing.ranks(placed, look, "P@5").axes[0]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert {names[int(one.get_ydata()[0])]: one.get_xdata()[0] for [one] in marks_apart(ax)} == {"a": 1.0, "b": 2.0}
    assert ax.get_xlabel() == "mean rank in P@5 over 2 datasets (1 is best)"


def marks_apart(ax) -> list[list]:
    return [[line] for lines in marks(ax).values() for line in lines]
