"""Tables 4 and 8: the printed points of figure 3, finds by how often a label was seen, the middle, planted findings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import xcrepro as xc
from xcrepro.data.dataset import Dataset, Split
from xcrepro.inputs import calibrated
from xcrepro.papers.calibration import table4_table8_fig13_to_16_rerun as item
from xcrepro.predictions import TopK


def test_printed_points_are_those_that_both_documents_print():
    printed = item.compute_printed()
    first = printed[printed["dataset"] == "LF-AmazonTitles-131K"]
    assert first.groupby("method")["P"].first().to_dict() == {"GalaXC": 19.49, "NGAME": 21.47, "Renee": 22.04}
    row = first[(first["method"] == "NGAME") & (first["metric"] == "ECE")].set_index("variant")["value"]
    assert row.to_dict() == {"none": 19.29, "isotonic": 0.04}
    second = printed[printed["dataset"] == "LF-WikiSeeAlso-320K"]
    assert set(second["method"]) == {"NGAME", "Renee"}
    assert set(printed["metric"]) == set(item.METRICS)


def places(ids, scores=None):
    ids = np.array(ids, np.int32)
    scores = -np.arange(ids.size, dtype=np.float32).reshape(ids.shape) if scores is None else np.array(scores, "f")
    return TopK(ids, np.where(ids < 0, -np.inf, scores).astype(np.float32), 4)


def toy_dataset():
    # Labels 0 to 3 have 1, 2, 4 and 5 train points.
    train = csr_matrix(np.arange(5)[:, None] < np.array([1, 2, 4, 5])).astype(np.float32)
    test = csr_matrix(np.array([[1, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 0]], np.float32))
    return Dataset("toy", Split(None, train), Split(None, test), 0.55, 1.5)


def test_finds_by_how_often_a_label_was_seen_by_hand():
    top = places([[0, 1, 3], [1, 2, 0], [0, -1, -1]])
    found = item.compute_tail({"toy": (toy_dataset(), {"a": top})}, k=2).set_index("train points")
    assert found["pairs"].to_dict() == {"1": 2, "2 to 4": 2, "5 and more": 1}
    assert found["a"].to_dict() == {"1": 50.0, "2 to 4": 100.0, "5 and more": 0.0}


@pytest.fixture
def sets(overconfident):
    given, top = overconfident
    ds = Dataset("toy", Split(None, given.train.Y), Split(None, given.test.Y), 0.55, 1.5)
    middle = TopK(top.ids, (0.4 + 0.2 * top.scores).astype(np.float32), top.n_labels)
    tops = {"PLT": top, "Two towers": middle}
    return {"toy": (ds, calibrated.before_after(ds, tops, (1, 3)))}, {"toy": (ds, tops)}


def test_the_middle_and_what_is_said_of_it(sets):
    states, tops = sets
    summary = item.compute_summary(states).set_index(["model", "k"])
    assert summary.loc[("Two towers", 3), "in the middle"] == 100
    scores = tops["toy"][1]["PLT"].head(3).scores
    share = 100 * ((scores >= np.float32(0.2)) & (scores <= np.float32(0.8))).mean()
    assert summary.loc[("PLT", 3), "in the middle"] == pytest.approx(share)
    precision = pd.DataFrame({"dataset": "toy", "model": ["PLT", item.BEST], "P@1": [12.34, 56.7]})
    first, *said = item.findings(states, summary.reset_index(), precision, item.compute_tail(tops, 3))
    assert first == "toy, P@1: PLT 12.3 %; true probabilities 56.7 %."
    assert said[0].startswith("toy, against PLT without them: a model that knows the labels' words has the higher P@3:")
    assert "clearly so in 0 of 1" in said[0] or "not clear" in said[0]  # the same ranking
    assert "between 0.2 and 0.8 lie 100 % of Two towers's" in said[3]
    errors = item.compute_errors(states)
    assert set(errors["metric"]) == {"ECE", "ECE corrected", "Brier", "ACE"}
    points = item.join_points(item.compute_printed(3).head(0), errors, states, 3)
    assert set(points["row"]) == {"here, toy"}
    fig = item.plot(points, 3)
    assert [ax.get_ylabel() for ax in fig.axes] == ["ECE@3, %", "Brier@3, %", "ACE@3, %"]


def test_precision_stands_between_words_alone_and_the_truth():
    ds = xc.twin("lf-amazontitles-131k", scale=0.001)
    top = TopK.from_scores(ds.test.X @ ds.label_features.T, 5)
    best = TopK.from_scores(ds.test.observed_marginals, 5)
    found = item.compute_precision({"lf": (ds, {"a": top})}).set_index("model")[["P@1", "P@3", "P@5"]]
    assert found.loc["a"].tolist() == found.loc[item.COSINE].tolist()
    assert found.loc[item.BEST].tolist() == pytest.approx(100 * xc.metrics.precision(ds.test.Y, best, (1, 3, 5)))
    own = dataclasses.replace(toy_dataset(), label_features=None)
    assert item.compute_precision({"toy": (own, {"a": places([[0, 1, 3, 2, -1]] * 3)})})["model"].tolist() == ["a"]


def test_rows_of_table_8_are_found_for_a_twin_too():
    ds = xc.twin("lf-wikiseealso-320k", scale=0.0005)
    found = item.compare_with_printed([ds])
    assert set(found["dataset"]) == {"LF-WikiSeeAlso-320K"}
    assert len(found) == 12
    assert found[found["k"] == 5].set_index("method").loc["NGAME", "ECE"] == "21.3"


def test_a_row_of_the_figure_is_headed_by_what_it_is(sets):
    ds = xc.twin("lf-wikiseealso-320k", scale=0.0005)
    states = {ds.name: (ds, {}), "toy": next(iter(sets[0].values()))}
    errors = pd.DataFrame({"dataset": [*states], "k": 5, "metric": "ECE", "value": 1.0})
    points = item.join_points(item.compute_printed(), errors, states)
    assert points["row"].unique().tolist() == [
        "printed, LF-AmazonTitles-131K",
        "printed, LF-WikiSeeAlso-320K",
        "here, synthetic twin of LF-WikiSeeAlso-320K × 0.0005",
        "here, toy",
    ]


@pytest.mark.parametrize("here", [[], ["PLT", "Neural + labels", "Two towers"], ["PLT", "Renee"]])
def test_a_method_has_one_look_in_all_rows(here):
    """A row without GalaXC, whose look would be another's then; where they can be, no two are alike in grey."""
    printed = item.compute_printed()
    printed = printed.assign(row="printed, " + printed["dataset"])
    own = pd.DataFrame({"method": here, "P": 1.0, "metric": "ECE", "variant": "none", "value": 1.0, "row": "here, toy"})
    fig = item.plot(pd.concat([printed, own]))
    drawn = {}
    for panel in fig.axes:
        for line in panel.get_lines():
            if not line.get_label().startswith("_"):
                drawn.setdefault(line.get_label(), set()).add((line.get_marker(), line.get_color()))
    assert set(drawn) == {"GalaXC", "NGAME", "Renee", *here}
    assert all(len(found) == 1 for found in drawn.values())
    assert len({look[0] for name in ("GalaXC", "NGAME", "Renee") for look in drawn[name]}) == 3
