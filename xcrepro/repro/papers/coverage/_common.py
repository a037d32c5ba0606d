"""What choosing k labels from a training's probabilities needs: the runs, and the names of the rules.

A *run* is one training with an (n, L) CSR of probabilities of the test points, its candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scipy import sparse

from xcrepro.core import formats
from xcrepro.core.data.dataset import Dataset
from xcrepro.models import PLT
from xcrepro.repro.inputs import baselines

PLAIN, WEIGHTED, GREEDY, RANDOM = "PLT", "PS-PLT", "COV-PLT", "BRS-PLT"


def _stem(given: str) -> str:
    path = Path(given).expanduser()
    return path.name if path.is_dir() else formats.model_name(path)


@dataclass(frozen=True, eq=False)
class Run:
    """One training to choose from: its number, the probabilities of its candidates, and the tree where there is one."""

    number: int
    probabilities: sparse.csr_matrix
    tree: PLT | None


TREE = "label tree"


def runs(ds: Dataset, repeats: int, given: str = "", candidates: int = baselines.PLACES) -> dict[str, list[Run]]:
    """Model -> its runs: label trees trained with seeds 0, 1, ..., and saved predictions, whose scores are probabilities."""
    found = {}
    if given:
        tops = baselines.saved(given, ds, candidates)
        found[_stem(given)] = [Run(number, top.to_csr(), None) for number, top in enumerate(tops.values())]
    if not (given and ds.train.X is None):
        trainings = [baselines.training("PLT", ds, seed) for seed in range(repeats)]
        tops = [training.predictions(ds.test.X, candidates) for training in trainings]
        trees = [Run(i, top.to_csr(), one.model()) for i, (top, one) in enumerate(zip(tops, trainings, strict=True))]
        found[TREE] = trees
    return found
