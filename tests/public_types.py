"""What an editor knows of the public names: `make lint` checks these types with mypy, and nothing of it is run."""

# mypy: warn-unused-ignores

from typing import assert_type

import numpy as np

import xcrepro as xc
from xcrepro.models.base import Model
from xcrepro.models.twin import Twin
from xcrepro.repro.published.claims import Claims


def readme() -> None:
    ds = xc.load("tib")
    assert_type(ds, xc.Dataset)
    assert_type(ds.train, xc.Split)
    model = xc.models.PLT().fit(ds.train.X, ds.train.Y)
    assert_type(model, xc.models.PLT)
    top = model.predict(ds.test.X, 5)
    assert_type(top, xc.TopK)
    assert_type(top.scores, np.ndarray)
    xc.evaluate(ds.test.Y, top)
    xc.compare(ds.test.Y, {"mine": top, "theirs": [top, top]}, metrics=["PSP@5"])


def the_rest(scores: np.ndarray, hits: np.ndarray, counts: np.ndarray) -> None:
    assert_type(xc.twin("bibtex"), Twin)
    assert_type(xc.propensity.inverse(counts, 100), np.ndarray)
    assert_type(xc.calibrate.Isotonic().fit(scores, hits).predict(scores), np.ndarray)
    assert_type(xc.decide.top_k(scores, 3), xc.TopK)
    assert_type(xc.metrics.precision(scores, xc.TopK.from_scores(scores, 5)), np.ndarray)
    assert_type(xc.State((1, 3)).update(scores, xc.TopK.from_scores(scores, 3)), xc.State)
    assert_type(xc.models.load("model"), Model)
    assert_type(xc.claims("jain16"), Claims)
    assert_type(xc.report(scores, "predictions.npz"), xc.Report)
    assert_type(xc.metrics.aurc(scores, xc.TopK.from_scores(scores, 5)), float)


def a_slip_is_an_error() -> None:
    xc.metrics.precison  # type: ignore[attr-defined]  # noqa: B018
    xc.evaluat  # type: ignore[attr-defined]  # noqa: B018
