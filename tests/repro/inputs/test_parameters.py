"""Parameters that no run could use are refused before anything runs, in the notebook's own names."""

from __future__ import annotations

import pytest

from tests.refused import refused
from xcrepro.core.errors import DataMissing, XCError
from xcrepro.repro.inputs import parameters

USABLE = {
    "dataset": "synthetic bibtex",
    "names": ["tib", "synthetic eurlex-4k"],
    "scales": [0.2, 1],
    "scale": 0.5,
    "seed": 3,
    "k": 5,
    "ks": [5, 5],
    "models": ["PLT", "Popularity"],
    "model": "PLT",
    "folder": "",
    "predictions": "",
    "split": None,
    "A": None,
    "B": 1.5,
    "draws": 100,
}


def test_what_can_be_used_passes():
    parameters.check(USABLE)
    parameters.check(USABLE | {"scales": [], "models": [], "split": "mean", "unknown": object()})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("dataset", "bibtecks", "bibtex"),
        ("dataset", "synthetic bibtecks", "bibtex"),
        ("names", ["tib", "no such"], "no such"),
        ("names", [], "something"),
        ("names", ["tib", "tib"], "nothing twice"),
        ("scales", [0.2], "names, 2"),
        ("scales", [0.2, 0], "above 0"),
        ("ks", [1, 3, 5], "names, 2"),
        ("ks", [0, 5], "1 to 100"),
        ("scale", 1.5, "at most 1"),
        ("shares", [0.1, 1.0], "below 1"),
        ("percents", [7.5, 101.0], "at most 100"),
        ("shares", [], "something"),
        ("curves", [0.0], "above 0"),
        ("curves", [0.5, 0.5], "nothing twice"),
        ("seed", -1, "0 or more"),
        ("k", 0, "1 to 100"),
        ("k", 101, "1 to 100"),
        ("models", ["PTL"], "PLT"),
        ("models", ["PLT", "PLT"], "nothing twice"),
        ("model", "", "must be"),
        ("folder", "no/such/folder", "no folder"),
        ("predictions", "no/such/file.npz", "is not there"),
        ("split", -1, "0 or more"),
        ("split", "first", "whole number"),
        ("A", 0.0, "above 0"),
        ("B", -0.1, "at least 0"),
        ("draws", 1, "2 or more"),
    ],
)
def test_what_cannot_is_named(name, value, said):
    with pytest.raises(XCError, match=said) as error:
        parameters.check(USABLE | {name: value})
    assert name in str(error.value) or name in ("dataset", "names")


def test_with_a_folder_any_name_is_the_readers_own(tmp_path):
    parameters.check({"dataset": "my data", "folder": str(tmp_path)})
    with pytest.raises(XCError, match="subfolder"):
        parameters.check({"names": ["my-data"], "folder": str(tmp_path)})


def test_names_of_what_is_only_drawn_need_no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("XCREPRO_DATA", str(tmp_path))
    parameters.check({"names": ["eurlex-4k", "bibtex"]})
    with pytest.raises(DataMissing):
        parameters.check({"names": ["eurlex-4k"], "folder": ""})
    with refused("name"):
        parameters.check({"names": ["nothing"]})
