"""The baselines of all items, each trained once per dataset and seed, and what a reader puts in their place."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from xcrepro import models
from xcrepro.core import plugins
from xcrepro.core.data.dataset import Dataset
from xcrepro.core.errors import ArgumentError, DataError
from xcrepro.core.predictions import TopK, read_calibration_npz
from xcrepro.core.truth import Truth, as_truth
from xcrepro.repro.inputs import reciprocal, trained

PLACES = 100
"""Labels per point among which rules choose, and as many as k may be."""
UNFILTERED = ", unfiltered"
"""Behind a name: its predictions with the pairs that may not be predicted."""
SHOWN = 5
"""Labels per point that most tables read."""

# Called with the dataset (for its propensities' A and B) and the seed.
RECIPES: dict[str, Callable[[Dataset, int], models.Model]] = {
    "Popularity": lambda ds, seed: models.Popularity(),
    "1-vs-All": lambda ds, seed: models.OneVsRest(seed=seed),
    "DiSMEC": lambda ds, seed: models.DiSMEC(seed=seed),
    "PLT": lambda ds, seed: models.PLT(seed=seed),
    "FastXML": lambda ds, seed: models.FastXML(seed=seed),
    "PfastXML": lambda ds, seed: models.PfastXML(A=ds.A, B=ds.B, seed=seed),
    "PfastreXML": lambda ds, seed: models.PfastreXML(A=ds.A, B=ds.B, seed=seed),
    "Neural": lambda ds, seed: models.NeuralOneVsAll(seed=seed),
}
LOSSES = {"BCE": "bce", "squared hinge": "squared_hinge", "focal": "focal", "asymmetric": "asymmetric"}
# For the items that ask for them by name: other settings of the above, and what takes longest to train.
VARIANTS: dict[str, Callable[[Dataset, int], models.Model]] = {
    "Parabel": lambda ds, seed: models.PLT(loss="squared_hinge", C=1.0, seed=seed),
    "Attention": lambda ds, seed: models.LabelAttention(seed=seed),
}
# What the documents' older tables compare with.
CLASSICS: dict[str, Callable[[Dataset, int], models.Model]] = {
    "SLEEC": lambda ds, seed: models.SLEEC(seed=seed),
    "LEML": lambda ds, seed: models.LEML(seed=seed),
    "WSABIE": lambda ds, seed: models.WSABIE(seed=seed),
    "CPLST": lambda ds, seed: models.CPLST(seed=seed),
    "CS": lambda ds, seed: models.CS(seed=seed),
    "ML-CSSP": lambda ds, seed: models.MLCSSP(seed=seed),
    "LPSR": lambda ds, seed: models.LPSR(seed=seed),
    "kNN": lambda ds, seed: models.KNN(),
    "PD-Sparse": lambda ds, seed: models.PDSparse(seed=seed),
    "ProXML": lambda ds, seed: models.ProXML(),
}
VARIANTS |= CLASSICS
# Of data whose labels have words of their own: two towers, and others that see each label's words as one more train point.
TWO_TOWERS = {"Two towers": "classifiers", "Two towers, encoder": "encoder"}
for _name, _output in TWO_TOWERS.items():
    VARIANTS[_name] = lambda ds, seed, output=_output: models.TwoTowers(output=output, seed=seed)
GRAPH, SOFT, HARD = "Two towers + graph", "Neural + soft labels", "Neural + hard labels"
VARIANTS[GRAPH] = lambda ds, seed: models.GraphTowers(seed=seed)
VARIANTS[SOFT] = lambda ds, seed: models.ClusterNetwork("none", soft=1.0, epochs=6, seed=seed)
# What SOFT is compared with.
VARIANTS[HARD] = lambda ds, seed: models.ClusterNetwork("none", soft=0.0, epochs=6, seed=seed)
READERS = (*TWO_TOWERS, GRAPH, SOFT, HARD)  # whose fit takes the labels' words
# A network with clusters of labels, in place of LightXML, CascadeXML and ELIAS.
CLUSTERED = {
    "random": ("random", 1),
    "k-means": ("k-means", 1),
    "two levels": ("k-means", 2),
    "learned": ("learned", 1),
}
for _name, _of in CLUSTERED.items():
    VARIANTS[f"Clusters, {_name}"] = lambda ds, seed, of=_of: models.ClusterNetwork(of[0], levels=of[1], seed=seed)
AS_POINTS = " + labels"
VARIANTS[f"PLT{AS_POINTS}"] = lambda ds, seed: models.PLT(seed=seed)
_AS_POINTS = {"dim": 64, "epochs": 6, "learning_rate": 0.006}
VARIANTS[f"Neural{AS_POINTS}"] = lambda ds, seed: models.NeuralOneVsAll(**_AS_POINTS, seed=seed)
for _name, _loss in LOSSES.items():
    VARIANTS[f"Neural, {_name}"] = lambda ds, seed, loss=_loss: models.NeuralOneVsAll(loss=loss, seed=seed)


def recipe(name: str, ds: Dataset, seed: int = 0) -> models.Model:
    """The unfitted model behind a name of :data:`RECIPES` or :data:`VARIANTS`; the dataset gives its propensities' A and B."""
    known = RECIPES | VARIANTS
    if plain(name) not in known:
        raise ArgumentError("names", f"must be baselines: {', '.join(known)}", repr(name))
    return known[plain(name)](ds, seed)


def plain(name: str) -> str:
    """A baseline's name, of ``"PLT, unfiltered"`` as well."""
    return name.removesuffix(UNFILTERED)


def training(name: str, ds: Dataset, seed: int = 0) -> trained.Training:
    """The training of one baseline (:func:`recipe`) on the train split of a dataset, shared by all who ask."""
    name = plain(name)
    model, X, Y = recipe(name, ds, seed), ds.train.X, ds.train.Y
    if not needs_label_features(name):
        return trained.training(model, X, Y, of=ds.name)
    if ds.label_features is None:
        rule = "must be of baselines that do without words of the labels, which this dataset does not have"
        raise ArgumentError("names", rule, repr(name), "take a dataset of the group label-features, or leave it out")
    if name in READERS:
        return trained.training(model, X, Y, of=ds.name, label_features=ds.label_features)
    as_points = sparse.identity(Y.shape[1], np.float32, "csr")
    parts = (X, ds.label_features), (Y, as_points)
    return trained.training(model, *(sparse.vstack(part, format="csr") for part in parts), of=ds.name)


def needs_label_features(name: str) -> bool:
    """Whether a baseline, such as "Two towers", is trained on words of the labels."""
    return plain(name) in READERS or plain(name).endswith(AS_POINTS)


def predictions(
    ds: Dataset, names: Sequence[str] | None = None, seed: int = 0, given: str = "", places: int = SHOWN, least: int = 1
) -> dict[str, TopK]:
    """Model -> the ``places`` best labels of each test point: saved predictions first, then the baselines (by default all).

    If the dataset has pairs that may not be predicted (``ds.excluded``), they are taken out; ``"PLT, unfiltered"`` among the
    names is the same model with them.

    ``given`` is a file or folder of saved predictions (:func:`saved`). A baseline of the same name is left out, and all
    of them if the dataset has no features to train on. ``least`` is how many models the item compares; fewer are refused.
    """
    more = places + (reciprocal.most(ds.excluded) if ds.excluded else 0)
    found = saved(given, ds, more) if given else {}
    wanted = [name for name in (RECIPES if names is None else names) if name not in found]
    for name in wanted:
        if plain(name) not in found:
            recipe(name, ds, seed)  # refused before anything is trained
        if name != plain(name) and not ds.excluded:
            rule = "must be of a dataset that has pairs that may not be predicted"
            raise ArgumentError("names", rule, repr(name), f"take {plain(name)!r}")
    for name in wanted if not (given and ds.train.X is None) else ():
        of = plain(name)
        found[name] = found[of] if of in found else training(name, ds, seed).predictions(ds.test.X, more)
    if len(found) < least:
        rule = f"must be {least} model{'s' if least > 1 else ''} or more for this item"
        raise ArgumentError("models", rule, list(found) or "none", "name more in models, or give predictions")
    for name in (name for name in found if ds.excluded and name == plain(name)):
        found[name] = reciprocal.without(found[name], ds.excluded)
    return {name: top.head(places) for name, top in found.items()}


def predicted(ds: Dataset, one: trained.Training, places: int = SHOWN) -> TopK:
    """The ``places`` best labels of each test point by a notebook's own training, without the pairs that may not be predicted
    (``ds.excluded``), as in :func:`predictions`."""
    if not ds.excluded:
        return one.predictions(ds.test.X, places)
    more = one.predictions(ds.test.X, places + reciprocal.most(ds.excluded))
    return reciprocal.without(more, ds.excluded).head(places)


# ---------------------------------------------------------------- anybody's predictions


def saved(path: str, ds: Dataset, places: int = PLACES) -> dict[str, TopK]:
    """Saved predictions for the test points of a dataset, by file name without its ending; a folder gives all its files.

    Any format of :mod:`xcrepro.tools.formats` is read. Labels are ids, or names of the dataset's; rows are numbers from 0, or
    in order. A UserWarning names each sign that they do not belong to these test points
    (:func:`xcrepro.diagnose.check`).
    """
    truth, formats = as_truth(ds.test.Y), plugins.find("xcrepro.repro.inputs", "formats")
    return {
        name: _warned(file, _check_shape(file, _read(file, ds, truth, places), truth), ds)
        for name, file in formats.model_files(path).items()
    }


def _read(file: Path, ds: Dataset, truth: Truth, places: int) -> TopK:
    formats = plugins.find("xcrepro.repro.inputs", "formats")
    format = formats.detect(file)
    if format.name == "calibration":
        return _read_calibration(file, truth)
    names = {"label_names": ds.label_names} if ds.label_names else {"n_labels": truth.n_labels}
    return formats.read_predictions(file, format.name, places, n_rows=truth.n_rows, **names)


def _read_calibration(file: Path, truth: Truth) -> TopK:
    top, Y = read_calibration_npz(file, truth.n_labels)
    other = (truth.to_csr() != Y).nonzero()[0] if len(top) == truth.n_rows else np.empty(0)
    if other.size:
        found = f"other labels for test row {other.min()} than the dataset has"
        do = "Write the file from this dataset's test split"
        raise DataError(file, found, "the same points in the same order", do=do)
    return top


def _check_shape(file: Path, top: TopK, truth: Truth) -> TopK:
    if (len(top), top.n_labels) != (truth.n_rows, truth.n_labels):
        found = f"predictions for {len(top)} points and {top.n_labels} labels"
        expected = f"the dataset's {truth.n_rows} test points and {truth.n_labels} labels"
        do = "Predict the test split, every point and label of it, in its order"
        raise DataError(file, found, expected, do=do)
    return top


def _warned(file: Path, top: TopK, ds: Dataset) -> TopK:
    """Say what does not fit; a bad model is no error, so nothing is refused."""
    diagnose = plugins.find("xcrepro.repro.inputs", "diagnose")
    for finding in diagnose.check(ds.test.Y, top, Y_train=ds.train.Y, exclude=((), ())):  # which are taken out here
        warnings.warn(f"{file.name}: {finding}", stacklevel=4)
    return top
