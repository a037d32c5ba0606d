"""The notebook's report: its values beside ``evaluate``, its figures, and what its parameters may be."""

from __future__ import annotations

import pytest

import xcrepro as xc
from xcrepro.errors import ArgumentError, DataMissing
from xcrepro.inputs import datasets
from xcrepro.papers.kit import your_model as item
from xcrepro.repro import figures


@pytest.fixture(scope="module")
def report(twin, misjudged):
    truth, tops = item.load("", twin, ["Popularity"], 0, "")
    assert truth is twin
    tops["mine"] = misjudged(twin, 10, 0.5)
    return xc.report(truth, tops, ks=(1, 5), samples=100)


def test_the_table_is_evaluate_in_percent(twin, report):
    table = item.compute(report).set_index(["model", "metric", "k"])["value"]
    tops = item.load("", twin, ["Popularity"], 0, "")[1]
    expected = xc.evaluate(twin.test.Y, tops["Popularity"], (1, 5), datasets.weights(twin), twin.label_counts)
    expected = expected.set_index(["metric", "k"])["value"]
    assert table["Popularity", "PSP", 5] == 100 * expected["PSP", 5]
    assert table["Popularity", "macro-F1 (10-99)", 5] == 100 * expected["macro-F1 (10-99)", 5]
    assert table["Popularity", "label entropy", 1] == expected["label entropy", 1]


def test_every_part_that_draws_is_held_to_its_table(report):
    parts = item.drawn_parts(report)
    assert parts == ["ranking", "pairs", "bins", "bands", "calibration", "reliability", "price"]
    for part in parts:
        figures.held(item.plot(report, part), report.drawn(part))


def test_findings_are_the_reports_sentences_and_name_who_leads(report):
    said = item.findings(report)
    assert said[0].startswith("mine leads P@1 with")
    assert said == report.sentences()


def test_saved_predictions_stand_alone_where_no_baseline_is_asked_for(twin, misjudged, tmp_path):
    misjudged(twin, 5).save(tmp_path / "mine.npz")
    assert list(item.load("", twin, [], 0, str(tmp_path))[1]) == ["mine"]
    assert list(item.load("", twin, ["Popularity"], 0, str(tmp_path))[1]) == ["mine", "Popularity"]
    assert item.pick("labels.npz", "bibtex") is None
    assert item.load("labels.npz", None, [], 0, "p.npz") == ("labels.npz", "p.npz")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"truth": "a.npz"}, ArgumentError, "parameter predictions must be given with truth"),
        ({"train_truth": "a.npz"}, DataMissing, "parameter train_truth: a.npz is not there"),
        ({"models": []}, ArgumentError, "parameter models must name one baseline"),
        ({"predictions": "nowhere"}, DataMissing, "parameter predictions"),
    ],
)
def test_parameters_are_refused_in_the_notebooks_names(change, error, words):
    values = {"size": "small", "truth": "", "train_truth": "", "predictions": "", "models": ["PLT"], "ks": [1]}
    item.check_parameters(values)
    with pytest.raises(error, match=words):
        item.check_parameters(values | change)


def test_train_truth_goes_with_truth(tmp_path):
    (tmp_path / "train.txt").write_text("1 2\n0:1\n")
    values = {"truth": "", "train_truth": str(tmp_path / "train.txt"), "predictions": "", "models": ["PLT"]}
    with pytest.raises(ArgumentError, match="parameter truth must be given with train_truth"):
        item.check_parameters(values)
