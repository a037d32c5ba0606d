"""What a report tells: each sentence computed a second time with plain loops, each legend and axis held to what is drawn."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.repro.drawing import figures, looks
from xcrepro.tools.reports import compute, sentences
from xcrepro.tools.reports import figures as drawing
from xcrepro.tools.reports.asked import Asked
from xcrepro.tools.reports.given import collect
from xcrepro.tools.reports.measured import Measured

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
def measured(small):
    asked = Asked(collect(small.Y, small.tops, train_truth=small.train), samples=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", xc.errors.DataWarning)
        m = Measured(asked)
        m.diagrams, m.prices  # noqa: B018  while it is quiet
        return m


@pytest.fixture(scope="module")
def drawn(made, measured):
    """Part -> its figure and the table behind it, as the report draws them."""
    look = looks.distinct(made.about["models"])

    def percent(name: str, *columns: str) -> pd.DataFrame:
        return drawing.in_percent(made.frame(name), columns)

    tables = {
        "bins": percent("bins", "value", "low", "high", "ceiling"),
        "bands": percent("bands", "P", "PSP"),
        "calibration": made.frame("reliability"),
        "price": percent("price", "P", "P low", "P high", "Cov", "Cov low", "Cov high"),
    }
    draw = {
        "bins": lambda table: drawing.bins(table, look, K),
        "bands": lambda table: drawing.bands(table, K),
        "calibration": lambda table: drawing.reliability(table, look, K),
        "price": lambda table: drawing.price(table, look),
    }
    found = {name: (draw[name](table), table) for name, table in tables.items()}
    return found | {"standing": drawing.standing(measured), "apart": drawing.apart(measured)}


def test_figures_show_the_numbers_of_their_tables_alone(drawn):
    for fig, table in drawn.values():
        figures.held(fig, table)  # raises DrawingFault otherwise
        with pytest.raises(figures.DrawingFault):
            figures.held(fig, table.iloc[:1])


def said(made, part: str) -> str:
    return " ".join([made.parts[part]["heading"], *made.sentences(part)])


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


def test_the_leader_is_the_model_with_more_hits(made, small, hits):
    shares = {model: 100 * found.mean() for model, found in hits.items()}
    best, other = sorted(shares, key=shares.get, reverse=True)
    pairs = xc.compare(small.Y, small.tops, ["P"], (K,), samples=60).assign(p=1.0)
    text = sentences.leader(made.frame(), pairs, "P", K)
    assert text.startswith("No clear leader")
    assert sentences.leader(made.frame(), pairs.assign(p=0.01), "P", K).startswith(f"{best} leads")
    assert f"{shares[best]:.1f} %" in text
    assert f"{shares[best] - shares[other]:.1f} points" in text
    assert f"above {other}" in text


def test_hits_are_counted_in_the_band_of_their_labels(made, small, hits, counts):
    for model, found in hits.items():
        of = counts[small.tops[model].ids[:, :K][found]]
        relevant = counts[small.Y.indices]
        both = (f"{100 * (one < 10).mean():.0f} %" for one in (of, relevant))
        said = f"{next(both)} of the hits of {model}, and {next(both)} of what is relevant, are on labels"
        assert sentences.bands(made.frame("bands"), model).startswith(said)


@pytest.mark.parametrize(("chance", "words"), [(0.9, "1 are too high, 0 too low"), (0.1, "0 are too high, 1 too low")])
def test_scores_above_the_share_of_hits_are_too_high(chance, words):
    """Half of the predictions are right."""
    Y = np.arange(400)[:, None] % 2 == np.arange(2)
    top = xc.TopK.from_ids(np.zeros((400, 1), int), np.full((400, 1), chance), n_labels=2)
    _, diagrams = compute.calibration(collect(Y.astype(float), top), [1], samples=20)
    assert f"of the 1 bins of model {words}" in sentences.reliability(diagrams, "model")


def test_the_bins_that_are_off_are_those_outside_chance(made):
    table = made.frame("reliability").query("state == 'before' and count > 0")
    for model, rows in table.groupby("model"):
        high = sum(row.accuracy < row.low for row in rows.itertuples())
        low = sum(row.accuracy > row.high for row in rows.itertuples())
        words = f"of the {len(rows)} bins of {model} {high} are too high, {low} too low."
        assert sentences.reliability(table, model).endswith(words)


def test_the_price_is_of_coverage_alone(made, small, hits):
    Y = small.Y.toarray() > 0

    def of(ids) -> tuple[float, float]:
        right = [(row, label) for row, line in enumerate(ids) for label in line if Y[row, label]]
        return 100 * len(right) / (K * len(Y)), 100 * len({label for _, label in right}) / Y.shape[1]

    for model, top in small.tops.items():
        table = made.frame("price").query("model == @model")
        rise = table[(table["P"] > table["P"].iloc[0]) & (table["Cov"] > table["Cov"].iloc[0])]
        beta = 0.0 if not len(rise) else rise.loc[rise["Cov"].idxmax(), "beta"]
        before, after = (of(xc.decide.greedy_coverage(top.to_csr(), K, one).ids) for one in (np.inf, beta))
        assert before[0] == pytest.approx(100 * hits[model].mean())
        coverage, precision = after[1] - before[1], after[0] - before[0]
        expected = (sentences.number(one / 100, "P", sign=True) for one in (coverage, precision))
        text = "(beta = {:g}): {} points of coverage, {} points of precision".format(beta, *expected)
        assert text in sentences.price(made.frame("price"), model)


def test_a_beta_that_costs_nothing_is_named():
    rows = {np.inf: (0.5, 0.2), 1.0: (0.48, 0.3), 0.25: (0.52, 0.4), 0.0625: (0.51, 0.5), 0.0: (0.4, 0.6)}
    rows = [("a", beta, K, *both) for beta, both in rows.items()]
    table = pd.DataFrame(rows, columns=["model", "beta", "k", "P", "Cov"])
    assert sentences.price(table, "a").endswith("(beta = 0.0625): +30.0 points of coverage, +1.0 points of precision")
    none = table[~table["beta"].isin([0.25, 0.0625])]
    assert sentences.price(none, "a").endswith("(beta = 0): +40.0 points of coverage, -10.0 points of precision")


def test_labels_and_points_with_more_hits_are_the_first_models(made, small, hits):
    d = hits["good"].sum(axis=1) - hits["bad"].sum(axis=1)
    of = {m: np.bincount(small.tops[m].ids[:, :K][found], minlength=30) for m, found in hits.items()}
    e = (of["good"] - of["bad"])[np.asarray((small.Y > 0).sum(axis=0)).ravel() > 0]
    points, labels = (f"{(x > 0).sum()} {{}} and fewer on {(x < 0).sum()}" for x in (d, e))
    text = f"good has more hits than bad on {points.format('points')}; on {labels.format('labels')}"
    assert said(made, "differences") == text


def test_a_difference_has_the_other_sign_seen_from_the_other_model(made):
    row = made.frame("pairs").query("metric == 'PSP' and k == @K").iloc[0]
    one, other = (sentences.against(made.frame("pairs"), row[side], "PSP", K).iloc[0] for side in ("left", "right"))
    assert (one["other"], other["other"]) == (row["right"], row["left"])
    assert (one["value"], one["low"], one["high"]) == (-other["value"], -other["high"], -other["low"])
    assert one["value"] == row["value"]


def test_clear_comparisons_are_counted(made):
    pairs = made.frame("pairs")
    clear = [row for row in pairs.to_dict("records") if row["p"] < 0.05]
    assert said(made, "pairs").startswith(f"{len(clear)} of {len(pairs)} differences are more than chance (one pair")


def test_the_worst_share_of_a_bins_ceiling_is_the_smallest_one(made):
    bins = made.frame("bins").query("k == @K and model == 'good' and bin != '0' and ceiling > 0")
    shares = {row.bin: row.value / row.ceiling for row in bins.itertuples()}
    name = min(shares, key=shares.get)
    assert f"On labels with {name} training points good reaches {100 * shares[name]:.0f} %" in said(made, "bins")


@pytest.mark.parametrize(("difference", "first"), [(0.2, "a over b"), (-0.2, "b over a")])
def test_the_t_test_names_the_better_model_first(difference, first):
    row = {"left": "a", "right": "b", "metric": "macro-F1", "k": K, "value": difference, "p": 0.001}
    assert sentences.t_tests(pd.DataFrame([row | {"shared": 1.0}]), K) == (
        f"Macro-F1@{K} over labels: clear for {first}"
    )


# ---------------------------------------------------------------- figures


def test_a_row_of_the_overview_is_its_metric_and_a_mark_its_model(drawn, measured, small):
    """Values of both models, and what the other has less than the leader, filled where they may be the best, or are clear."""
    value = measured.values.set_index(["metric", "k", "model"])
    for part in ("standing", "apart"):
        ax = visible(drawn[part][0])[0]
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert names == ["P@1", "nDCG@5", "PSP@5", "macro-F1@5", "ECE@5"]
        colours = {look.colour: model for model, look in measured.look.items()}
        lines = [line for found in marks(ax).values() for line in found]
        assert len(lines) == (10 if part == "standing" else 5)
        for line in lines:
            metric, k = names[round(line.get_ydata()[0])].split("@")
            model = colours[line.get_color()]
            own = value.loc[(metric, int(k), model), "value"]
            pair = measured.pairs[(measured.pairs["metric"] == metric) & (measured.pairs["k"] == int(k))].iloc[0]
            clear, sign = pair["p"] < 0.05, -1 if metric == "ECE" else 1
            if part == "standing":
                best = sentences.best_of(measured.values, metric, int(k))
                assert hollow(line) == (clear and model != best)
            else:
                assert model == "bad"
                own = sign * (own - value.loc[(metric, int(k), "good"), "value"])
                assert hollow(line) == (not clear)
            assert line.get_xdata()[0] == pytest.approx(100 * own)


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
    fig, table = drawn["calibration"]
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
