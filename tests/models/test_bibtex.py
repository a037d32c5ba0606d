"""All models on Bibtex, against the published rows and against napkinXC; and one tree on TIBKAT."""

from __future__ import annotations

import os

import numpy as np
import pytest

import xcrepro as xc
from xcrepro.models import PLT, DiSMEC, FastXML, NeuralOneVsAll, OneVsRest, PfastreXML

# The rows are of 50 trees. Of 20 some values are lower, PSP@5 most; data/recorded has the rows of 50 on all ten splits.
TREES = 50 if os.environ.get("XCREPRO_LONG") else 20
MODELS = {
    "FastXML": FastXML(trees=TREES),
    "PfastreXML": PfastreXML(trees=TREES, A=0.55, B=1.5),
    "OneVsRest": OneVsRest(),
    "DiSMEC": DiSMEC(),
    "Parabel": PLT(loss="squared_hinge", C=1.0),
    "Neural": NeuralOneVsAll(epochs=10),
}


@pytest.fixture(scope="module")
def bibtex(real_data):
    ds = xc.load("bibtex", path=real_data("bibtex"))
    assert (ds.A, ds.B) == (0.55, 1.5)
    return ds


@pytest.fixture(scope="module")
def trained(bibtex):
    """``trained(name)``: the model and its predictions."""
    found = {}

    def get(name):
        if name not in found:
            model = MODELS[name].fit(bibtex.train.X, bibtex.train.Y)
            found[name] = model, model.predict(bibtex.test.X)
        return found[name]

    return get


def percent(ds, top):
    """Percent by (metric, k), metrics as the published tables call them."""
    inverse = xc.propensity.inverse(ds.label_counts, ds.n_train, ds.A, ds.B)
    table = xc.evaluate(ds.test.Y, top, (1, 3, 5), inverse)
    names = table.metric.map({"P": "P", "nDCG": "N", "PSP": "PSP", "PSnDCG": "PSN"})
    return 100 * table.assign(metric=names).dropna(subset="metric").set_index(["metric", "k"]).value


@pytest.mark.parametrize(
    ("name", "method", "points"),
    [
        ("FastXML", "FastXML", 1.5 if TREES == 50 else 3.3),
        ("PfastreXML", "PfastreXML", 1.5 if TREES == 50 else 2.6),
        # The repository names neither the split of ten nor the settings behind its row, and has no numbers for DiSMEC.
        ("OneVsRest", "1-vs-All", 1.5),
        ("DiSMEC", "1-vs-All", 2.0),
        ("Parabel", "Parabel", 1.5),
    ],
)
def test_the_published_row_is_near(bibtex, trained, name, method, points):
    rows = xc.published.find(dataset="Bibtex", method=method).query("metric in ('P', 'N', 'PSP', 'PSN')")
    off = percent(bibtex, trained(name)[1]) - rows.set_index(["metric", "k"]).value
    assert off.count() >= 9
    assert -points <= off.min() <= off.max() <= min(points, 2.0), off


@pytest.mark.parametrize(("trees", "ensemble", "points"), [(1, 0, 4880), (3, 3, 1500)])
def test_napkinxc_is_within_a_point(bibtex, trees, ensemble, points, tmp_path):
    """All with napkinXC's defaults; theirs on two threads gives other numbers in each run. 0 trees are no ensemble."""
    from napkinxc.models import PLT as Napkin

    peer = Napkin(str(tmp_path / "peer"), ensemble=ensemble, seed=0, threads=2)
    X, Y = bibtex.train.X[:points], bibtex.train.Y[:points]
    peer.fit(X, Y)
    theirs = xc.TopK.from_pairs(peer.predict_proba(bibtex.test.X, top_k=5), n_labels=159, k=5)
    ours = PLT(trees=trees).fit(X, Y).predict(bibtex.test.X)
    off = percent(bibtex, ours) - percent(bibtex, theirs)
    assert off.loc["P"].abs().max() <= 1.0, off


def test_jain16s_order(bibtex, trained):
    model, top = trained("PfastreXML")
    tops = top, model.pfastxml().predict(bibtex.test.X), trained("FastXML")[1]
    psp = np.array([percent(bibtex, found).loc["PSP"] for found in tops])
    assert (np.diff(psp, axis=0) < 0).all(), psp


def test_the_network_is_near_one_vs_all(bibtex, trained):
    """One-vs-all logistic regression has 62.5 / 39.2 / 28.9 on this split."""
    precision = percent(bibtex, trained("Neural")[1]).loc["P"]
    assert (precision > [60.5, 37.5, 27.5]).all(), precision
