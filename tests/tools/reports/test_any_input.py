"""A report of whatever readers bring: short and empty rows, one row, one label, ties, no scores, many models, many labels."""

from __future__ import annotations

import html
import os

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random

import xcrepro as xc
from tests import naive
from tests.tools.reports.test_report import Page
from xcrepro import repro
from xcrepro.repro.engine import manifest, notebooks, rounding
from xcrepro.tools.reports import compute, figures
from xcrepro.tools.reports import report as reports

ROWS, LABELS, PLACES = 40, 24, 8
LONG = pytest.mark.skipif(not os.environ.get("XCREPRO_LONG"), reason="takes minutes: make test LONG=1")


def some(rows=ROWS, labels=LABELS, seed=0):
    """Truth and scores that know a little of it."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((rows, labels)) < 0.2).astype(np.float32)
    return csr_matrix(Y), (0.5 * rng.random((rows, labels)) + 0.4 * Y * rng.random((rows, labels))).astype(np.float32)


def cut(top: xc.TopK, kept) -> xc.TopK:
    """Only the first ``kept[row]`` places of each row."""
    absent = np.arange(top.k) >= np.asarray(kept)[:, None]
    return xc.TopK(np.where(absent, -1, top.ids), np.where(absent, -np.inf, top.scores), top.n_labels)


def inputs():
    """Name -> (truth, predictions)."""
    Y, scores = some()
    full, rng = xc.TopK.from_scores(scores, PLACES), np.random.default_rng(1)
    tied, none = np.full((ROWS, LABELS), 0.5, np.float32), cut(full, np.zeros(ROWS, int))
    bare = Y.toarray()
    bare[::3] = 0
    return {
        "ragged rows": (Y, {"a": cut(full, rng.integers(1, PLACES, ROWS)), "full": full}),
        "three places, of five": (Y, {"a": cut(full, np.full(ROWS, 3))}),
        "empty rows": (Y, {"a": cut(full, rng.integers(0, 2, ROWS) * PLACES)}),
        "one row": (Y[:1], {"a": full.rows([0]), "b": cut(full.rows([0]), [2])}),
        "one label": (Y[:, :1], {"a": cut(xc.TopK.from_scores(scores[:, :1], 1), rng.integers(0, 2, ROWS))}),
        "k above the labels": (Y[:, :3], {"a": xc.TopK.from_scores(csr_matrix(scores[:, :3]), PLACES)}),
        "all tied": (Y, {"a": xc.TopK.from_scores(tied, PLACES), "b": xc.TopK.from_scores(tied, PLACES)}),
        "no scores": (Y, {"a": xc.TopK.from_ids(full.ids, n_labels=LABELS)}),
        "half precision": (Y, {"a": xc.TopK.from_scores(scores.astype(np.float16), PLACES)}),
        "0 and 1 alone": (Y, {"a": xc.TopK.from_scores((scores > 0.3).astype(np.float32), PLACES)}),
        "a model without a prediction": (Y, {"none": none, "full": full}),
        "two others beside it": (Y, {"a": cut(full, np.full(ROWS, 2)), "none": none, "full": full}),
        "no prediction at all": (Y, {"none": none}),
        "a truth without labels": (csr_matrix(0 * bare), {"full": full}),
        "a truth with empty rows": (csr_matrix(bare), {"full": full, "a": cut(full, rng.integers(0, 4, ROWS))}),
    }


def ece_of_pairs(Y, top, k, bins=10):
    """The definition, pair by pair: only predictions that are there."""
    inside, pairs = [0.0] * bins, [*zip(*np.nonzero(top.ids[:, :k] >= 0), strict=True)]
    for place in pairs:
        score = float(top.scores[place])
        inside[min(int(score * bins), bins - 1)] += Y[place[0], top.ids[place]] - score
    return sum(map(abs, inside)) / len(pairs)


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("name", inputs())
def test_whatever_readers_bring_has_a_report_and_its_values(name):
    Y, tops = inputs()[name]
    ks = [1] if tops[next(iter(tops))].k == 1 else [1, 5]
    report = xc.report(Y, tops, train_truth=some(seed=2)[0][:, : Y.shape[1]], n_resamples=20, ks=ks)
    assert [said for said in report.warnings if "is not whole" in said] == []
    for part in {"pairs", "t_tests", "won_and_lost"} & set(report.parts):  # who predicts nothing does not lose
        assert not {"none"} & {*report.frame(part)["left"], *report.frame(part)["right"]}
    table = report.frame().set_index(["model", "metric", "k"])["value"]
    truth, dense = [set(row.indices.tolist()) for row in Y], Y.toarray()
    for model, top in tops.items():
        ranked = [[label for label in row if label >= 0] for row in top.ids.tolist()]
        for k in ks:
            assert table[model, "P", k] == pytest.approx(naive.precision(truth, ranked, k), abs=1e-12)
            assert table[model, "nDCG", k] == pytest.approx(naive.ndcg(truth, ranked, k), abs=1e-12)
        if np.isfinite(top.scores[top.ids >= 0]).any() and name != "no scores":
            errors = report.frame("calibration").query("model == @model and metric == 'ECE' and state == 'before'")
            known = errors.set_index("k")["value"]
            assert known[ks[-1]] == pytest.approx(ece_of_pairs(dense, top, ks[-1]), abs=1e-6)
    Page(report.to_html())


@LONG
def test_six_hundred_thousand_labels():
    rng, labels = np.random.default_rng(4), 600_000
    Y = random(2_000, labels, 5e-6, format="csr", dtype=np.float32, random_state=rng)
    Y.data[:] = 1
    scores = random(2_000, labels, 2e-5, format="csr", dtype=np.float32, random_state=rng)
    report = xc.report(Y, {"a": xc.TopK.from_scores(scores + 0.05 * Y, 10)}, train_truth=Y, n_resamples=20)
    assert [said for said in report.warnings if "is not whole" in said] == []
    assert {"ranking", "bands", "calibration"} <= set(report.parts)


# ---------------------------------------------------------------- what fails is said in its place


def broken(*args, **named):
    raise ZeroDivisionError("planted")


def test_a_part_that_fails_is_said_in_its_place_and_the_rest_is_there(monkeypatch, no_figures, tmp_path, capsys):
    monkeypatch.setattr(compute, "bins", broken)
    monkeypatch.setattr(compute, "calibration", broken)
    monkeypatch.setattr(figures, "standing", broken)
    Y, scores = some()
    report = xc.report(Y, xc.TopK.from_scores(scores, PLACES), train_truth=Y, n_resamples=20, price=False)
    assert not {"bins", "calibration"} & set(report.parts)
    assert {"ranking", "labelwise", "coverage", "bands", "gaps"} <= set(report.parts)
    said = {one.partition("' is")[0].strip("'"): one for one in report.warnings if "is not whole" in one}
    assert {"Ranking", "Rare labels", "Are scores probabilities?", "The picture", "The first screen"} <= {*said}
    assert all(one.endswith("ZeroDivisionError: planted.") for one in said.values())
    assert report.sentences("first")[0].startswith("P@1 of model is")
    Page(report.to_html())
    page = html.unescape(report.to_html())
    for name, title in (("bins", "Rare labels"), ("calibration", "Are scores probabilities?")):
        assert said[title] in page.partition(f'<section id="{name}">')[2].partition("</section>")[0]
    assert "Traceback" not in page


def test_what_no_report_can_be_without_fails_with_the_first_error(monkeypatch, no_figures):
    monkeypatch.setattr(compute, "metrics_and_pairs", broken)
    Y, scores = some()
    with pytest.raises(ZeroDivisionError):
        xc.report(Y, xc.TopK.from_scores(scores, PLACES), n_resamples=20)


def test_a_folder_that_is_refused_is_refused_before_the_work(monkeypatch, no_figures, tmp_path):
    Y, scores = some()
    top = xc.TopK.from_scores(scores, PLACES)
    xc.report(Y, top, ks=1, n_resamples=20, price=False, out=tmp_path / "out")
    monkeypatch.setattr(reports, "make", broken)
    with pytest.raises(xc.errors.ArgumentError, match="other input"):
        xc.report(Y, top.head(3), ks=1, n_resamples=20, price=False, out=tmp_path / "out")
    with pytest.raises(ZeroDivisionError):
        xc.report(Y, top.head(3), ks=1, n_resamples=20, price=False, out=tmp_path / "out", force=True)


def test_a_difference_by_hand_ends_the_committed_run_alone(capsys):
    entry = manifest.load()["kit/your_predictions"]
    committed = notebooks.parameters(entry.notebook)
    with pytest.raises(rounding.Disagreement):
        repro.item("kit/your_predictions", committed).equal("x", by_hand=1.0, call=2.0)
    repro.item("kit/your_predictions", committed | {"seed": 3}).equal("x", by_hand=1.0, call=2.0)
    assert "by hand 1, call 2" in capsys.readouterr().out
