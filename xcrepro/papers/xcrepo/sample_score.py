"""Every number that the repository's scripts print for its sample scores. Plots nothing: the page has no figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from xcrepro import metrics, paths, propensity
from xcrepro.data import twin as twins
from xcrepro.data.read import read_sparse, read_xc
from xcrepro.errors import DataError, DataMissing
from xcrepro.findings import Measured
from xcrepro.inputs import parameters
from xcrepro.inputs.ranked import KS, METRICS
from xcrepro.predictions import TopK

FILES = ("train.txt", "sample_score/score_mat.txt", "sample_score/tst_X_Y.txt")
"""Of the repository's sample: train labels for the propensities, scores, truth."""


@dataclass(frozen=True)
class Sample:
    """Scores with their truth: what an evaluation script is given.

    Attributes
    ----------
    scores, Y : csr_matrix, shape (n, L)
    label_counts : ndarray of int, shape (L,)
        Of the train split.
    n_train : int
        Its number of points.
    printed_weights : ndarray, shape (L,), or None
        Inverse propensities that came with the data.
    origin : str
        One line on where all this is from.
    """

    scores: csr_matrix
    Y: csr_matrix
    label_counts: np.ndarray
    n_train: int
    printed_weights: np.ndarray | None
    origin: str

    def inverse_propensity(self) -> np.ndarray:
        """1/p with A = 0.55 and B = 1.5, the parameters of Bibtex and of every set that has none of its own."""
        return propensity.inverse(self.label_counts, self.n_train, 0.55, 1.5)


def check_parameters(values: Mapping[str, object]) -> None:
    """The rules that notebooks share, and that ``folder`` holds the files of the repository's sample."""
    parameters.check(values)
    if folder := values["folder"]:
        for name in FILES:
            if not (Path(str(folder)).expanduser() / name).is_file():
                raise DataMissing(
                    f"parameter folder: {folder} has no {name}; give a folder with {', '.join(FILES)}, or leave it empty"
                )


def load_sample(folder: str = "", dataset: str = "bibtex", scale: float = 1.0, seed: int = 0) -> Sample:
    """The repository's sample scores, or a twin with votes for scores.

    Parameters
    ----------
    folder : str
        Holds ``train.txt`` (for the label counts) and ``sample_score/`` with ``score_mat.txt``, ``tst_X_Y.txt`` and,
        if it is there, ``inv_prop.txt``. Empty: the twin of ``dataset``, where 25 voters each name a label of a test
        point with the probability that it is observed: whole scores 1 to 25 with many ties and short rows, like those of the
        original.
    dataset, scale, seed
        Of the twin (see :func:`xcrepro.twin`).

    Returns
    -------
    Sample

    Raises
    ------
    DataError
        Where scores, truth and train labels do not have the same points and labels.
    """
    if folder:
        home = Path(folder).expanduser()
        scores = read_sparse(home / "sample_score" / "score_mat.txt")
        Y = read_sparse(home / "sample_score" / "tst_X_Y.txt")
        _, train = read_xc(home / "train.txt")
        weights = home / "sample_score" / "inv_prop.txt"
        if scores.shape != Y.shape or train.shape[1] != Y.shape[1]:
            found = f"scores {scores.shape}, truth {Y.shape}, train labels {train.shape}"
            raise DataError(home, found, "the same points and labels")
        counts = np.bincount(train.indices, minlength=train.shape[1])
        origin = f"scores in {home.name}, {scores.shape[0]:,} test points, {scores.shape[1]:,} labels"
        return Sample(scores, Y, counts, train.shape[0], np.loadtxt(weights) if weights.is_file() else None, origin)
    ds = twins.twin(dataset, scale=scale, seed=seed)
    chances = ds.test.observed_marginals
    rng = np.random.default_rng(seed)
    votes = sum((rng.random(chances.nnz) < chances.data for _ in range(25)), np.zeros(chances.nnz, np.float32))
    scores = csr_matrix((votes, chances.indices.copy(), chances.indptr.copy()), shape=chances.shape)
    scores.eliminate_zeros()
    origin = f"{ds.origin}, 25 votes a point for scores"
    return Sample(scores, ds.test.Y, ds.label_counts, ds.n_train, None, origin)


def compute(given: Sample) -> pd.DataFrame:
    """The metrics that the repository's scripts print.

    Parameters
    ----------
    given : Sample

    Returns
    -------
    DataFrame
        metric, k, value (a fraction): P and nDCG at 1 to 5, PSP and PSnDCG at 1, 3, 5.
    """
    table = _evaluate(given.scores, given.Y, given.inverse_propensity(), range(1, 6))
    return table[table["metric"].isin(["P", "nDCG"]) | table["k"].isin(KS)].reset_index(drop=True)


def _evaluate(scores, Y, weights: np.ndarray, ks=KS, names=METRICS) -> pd.DataFrame:
    return metrics.evaluate(Y, TopK.from_scores(scores, 5), ks, weights, metrics=names)


def printed_values() -> pd.DataFrame:
    """What the repository's scripts print for its sample scores.

    Returns
    -------
    DataFrame
        metric, k, printed (text, six decimals).
    """
    return pd.read_csv(paths.committed("data/published/sample_score.csv"), dtype={"printed": str})


def compute_ties(given: Sample) -> pd.DataFrame:
    """The metrics with ties given to the lowest and to the highest label id.

    Parameters
    ----------
    given : Sample

    Returns
    -------
    DataFrame
        metric, k, lowest id, highest id, difference (fractions; the second less the first).
    """
    weights = given.inverse_propensity()
    low = _evaluate(given.scores, given.Y, weights)
    # Seen from the last label to the first, the lowest id of a tie is the highest.
    high = _evaluate(*(matrix.tocsc()[:, ::-1].tocsr() for matrix in (given.scores, given.Y)), weights[::-1])
    table = low.rename(columns={"value": "lowest id"}).assign(**{"highest id": high["value"]})
    return table.assign(difference=table["highest id"] - table["lowest id"])


def compute_shape(given: Sample) -> pd.DataFrame:
    """How many rows the edge cases of the definitions concern.

    Parameters
    ----------
    given : Sample

    Returns
    -------
    DataFrame
        what, rows (int).
    """
    top = TopK.from_scores(given.scores, 6)
    present = top.ids >= 0
    same = (top.scores[:, 1:] == top.scores[:, :-1]) & present[:, 1:]
    sizes = np.diff(given.Y.indptr)
    rows = {
        "test points": len(top),
        "with two equal scores that a cut-off up to 5 can part": same.any(axis=1).sum(),
        "with fewer than 5 scored labels": (~present[:, 4]).sum(),
        "with fewer than 5 relevant labels": (sizes < 5).sum(),
        "without any relevant label": (sizes == 0).sum(),
    }
    return pd.DataFrame(rows.items(), columns=["what", "rows"]).astype({"rows": "int64"})


def compute_variants(given: Sample) -> pd.DataFrame:
    """Where documents define a metric differently, every variant side by side.

    Parameters
    ----------
    given : Sample

    Returns
    -------
    DataFrame
        variant, @1, @3, @5 (fractions).
    """
    names = ["nDCG", "nDCG (ideal k)", "PSP", "PSP (bare)", "PSnDCG", "PSnDCG (ideal k)", "PSnDCG (bare, ideal k)"]
    found = _evaluate(given.scores, given.Y, given.inverse_propensity(), names=names)
    table = found.pivot(index="metric", columns="k", values="value").loc[names].add_prefix("@")
    return table.rename_axis(index="variant", columns=None).reset_index()


def findings(given: Sample, ties: pd.DataFrame, variants: pd.DataFrame) -> list[str]:
    """What ties and definitions are worth, and how sure the numbers are.

    Parameters
    ----------
    given : Sample
    ties, variants : DataFrame
        Of :func:`compute_ties` and :func:`compute_variants`.

    Returns
    -------
    list of str
    """
    top, weights = TopK.from_scores(given.scores, 5), given.inverse_propensity()
    shape = compute_shape(given).set_index("what")["rows"]
    parted = shape["with two equal scores that a cut-off up to 5 can part"]
    far = ties.loc[ties["difference"].abs().idxmax()]
    first = ties.set_index(["metric", "k"]).loc[("P", 1)]
    error = Measured.of_rows(lambda Y, some: float(metrics.precision(Y, some, (1,))[0]), given.Y, {"": top}).error("")
    value = variants.set_index("variant")
    bare, ratio = value.loc["PSP (bare)", "@1"], value.loc["PSP", "@1"]
    ideal, usual = value.loc["nDCG (ideal k)", "@5"], value.loc["nDCG", "@5"]
    greatest = float(np.max(weights[given.label_counts > 0])) if (given.label_counts > 0).any() else float("nan")
    return [
        f"{100 * parted / shape['test points']:.0f} % of the test points have a tie that a cut-off up to 5 can part. Giving "
        f"ties to the highest label id moves P@1 by {100 * first['difference']:+.2f} points, with a standard error of P@1 of "
        f"{100 * error:.2f}; of all numbers {far['metric']}@{far['k']} moves most, by {100 * far['difference']:+.2f} points.",
        f"The same ranking has nDCG@5 = {100 * usual:.1f} % with the ideal of min(k, labels) hits and {100 * ideal:.1f} % with "
        f"that of k.",
        f"PSP@1 is {100 * ratio:.1f} % as the published ratio and {100 * bare:.1f} % bare, where one hit can count up to "
        f"{greatest:.1f}.",
    ]


def findings_printed(compared: pd.DataFrame) -> list[str]:
    """How many of the numbers that the scripts print come out, and what they would be with ties the other way.

    Parameters
    ----------
    compared : DataFrame
        metric, k, ours, printed (text, NaN where nothing is printed).

    Returns
    -------
    list of str
    """
    known = compared.dropna(subset=["printed"])
    met = sum(f"{row.ours:.6f}" == row.printed for row in known.itertuples())
    return [f"{met} of the {len(known)} numbers that the scripts print come out, to the sixth decimal."]
