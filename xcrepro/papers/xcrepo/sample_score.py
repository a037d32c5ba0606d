"""Every number that the repository's scripts print for its sample scores. Plots nothing: the page has no figure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from xcrepro import paths, propensity
from xcrepro.data import twin as twins
from xcrepro.data.read import read_sparse, read_xc
from xcrepro.errors import DataError
from xcrepro.metrics import ranking
from xcrepro.predictions import TopK


@dataclass(frozen=True)
class Sample:
    """Scores with their truth: what an evaluation script is handed.

    scores, Y: (n, L) CSR. label_counts: (L,) of the train split, n_train its size. printed_weights: (L,) inverse propensities
    that came with the data, or None. origin: one line on where all this is from.
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


def load_sample(folder: str = "", dataset: str = "bibtex", scale: float = 1.0, seed: int = 0) -> Sample:
    """The repository's sample scores from ``folder``, or the twin of ``dataset`` with votes for scores.

    folder: holds ``train.txt`` (for the label counts) and ``sample_score/`` with ``score_mat.txt``, ``tst_X_Y.txt`` and, if
    it is there, ``inv_prop.txt``. Empty: the twin, where 25 voters each name a label of a test point with its true
    probability: whole scores 1 to 25 with many ties and short rows, like those of the original.
    """
    if folder:
        home = Path(folder).expanduser()
        scores = read_sparse(home / "sample_score" / "score_mat.txt")
        Y = read_sparse(home / "sample_score" / "tst_X_Y.txt")
        _, train = read_xc(home / "train.txt")
        weights = home / "sample_score" / "inv_prop.txt"
        if not scores.shape == Y.shape or train.shape[1] != Y.shape[1]:
            raise DataError(
                home,
                f"scores {scores.shape}, truth {Y.shape}, train labels {train.shape}",
                "the same points and labels",
            )
        counts = np.bincount(train.indices, minlength=train.shape[1])
        origin = f"sample scores of the repository: {scores.shape[0]} points, {scores.shape[1]} labels"
        return Sample(scores, Y, counts, train.shape[0], np.loadtxt(weights) if weights.is_file() else None, origin)
    ds = twins.twin(dataset, scale=scale, seed=seed)
    chances = ds.test.marginals
    votes = np.random.default_rng(seed).binomial(25, np.clip(chances.data.astype(np.float64), 0, 1)).astype(np.float32)
    scores = csr_matrix((votes, chances.indices.copy(), chances.indptr.copy()), shape=chances.shape)
    scores.eliminate_zeros()
    origin = f"synthetic twin of {dataset}, seed {seed}: {chances.shape[0]} points, {chances.shape[1]} labels, 25 votes a point"
    return Sample(scores, ds.test.Y, ds.label_counts, ds.n_train, None, origin)


def compute(given: Sample) -> pd.DataFrame:
    """P and nDCG at 1 to 5, PSP and PSnDCG at 1, 3, 5: columns metric, k, value."""
    ks, top = (1, 2, 3, 4, 5), TopK.from_scores(given.scores, 5)
    found = ranking.values(["P", "nDCG", "PSP", "PSnDCG"], given.Y, top, ks, given.inverse_propensity())
    rows = [
        {"metric": name, "k": k, "value": value}
        for name, values in found.items()
        for k, value in zip(ks, values, strict=True)
        if name in ("P", "nDCG") or k in (1, 3, 5)
    ]
    return pd.DataFrame(rows)


def printed_values() -> pd.DataFrame:
    """What the repository's scripts print for its sample scores: metric, k, printed (text, six decimals)."""
    return pd.read_csv(paths.project_root() / "data" / "published" / "sample_score.csv", dtype={"printed": str})


def compute_ties(given: Sample) -> pd.DataFrame:
    """The same metrics with ties given to the lowest and to the highest label id, and the difference."""
    weights, ks = given.inverse_propensity(), (1, 3, 5)
    names = ["P", "nDCG", "PSP", "PSnDCG"]
    low = ranking.values(names, given.Y, TopK.from_scores(given.scores, 5), ks, weights)
    # Seen from the last label to the first, the lowest id of a tie is the highest.
    back = [given.scores.tocsc()[:, ::-1].tocsr(), given.Y.tocsc()[:, ::-1].tocsr()]
    high = ranking.values(names, back[1], TopK.from_scores(back[0], 5), ks, weights[::-1])
    rows = [
        {"metric": name, "k": k, "lowest id": low[name][i], "highest id": high[name][i]}
        for name in names
        for i, k in enumerate(ks)
    ]
    return pd.DataFrame(rows).assign(difference=lambda t: t["highest id"] - t["lowest id"])


def compute_shape(given: Sample) -> pd.DataFrame:
    """How many rows the edges touch: quantity, rows (integers)."""
    top = TopK.from_scores(given.scores, 6)
    present = top.ids >= 0
    same = (top.scores[:, 1:] == top.scores[:, :-1]) & present[:, 1:]
    sizes = np.diff(given.Y.indptr)
    return pd.DataFrame(
        {
            "what": [
                "test points",
                "with two equal scores that a cut-off up to 5 can part",
                "with fewer than 5 scored labels",
                "with fewer than 5 relevant labels",
                "without any relevant label",
            ],
            "rows": [len(top), same.any(axis=1).sum(), (~present[:, 4]).sum(), (sizes < 5).sum(), (sizes == 0).sum()],
        }
    ).astype({"rows": "int64"})


def compute_variants(given: Sample) -> pd.DataFrame:
    """Where documents define a metric differently, every variant side by side at 1, 3, 5."""
    names = ["nDCG", "nDCG (ideal k)", "PSP", "PSP (bare)", "PSnDCG", "PSnDCG (ideal k)", "PSnDCG (bare, ideal k)"]
    top = TopK.from_scores(given.scores, 5)
    found = ranking.values(names, given.Y, top, (1, 3, 5), given.inverse_propensity())
    return pd.DataFrame([{"variant": name} | dict(zip(("@1", "@3", "@5"), found[name], strict=True)) for name in names])
