"""``--train-truth``, ``--A`` and ``--B``: what saved predictions are weighed by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcrepro.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from xcrepro.data.dataset import Dataset
    from xcrepro.data.registry import Entry


def check(arguments) -> None:
    """A and B go with training labels."""
    if arguments.train_truth is None and (arguments.A is not None or arguments.B is not None):
        raise ArgumentError(
            "--A and --B", "go with --train-truth", "none", "propensities come from training label counts"
        )


def weights(arguments, train, entry: Entry | Dataset | None = None) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Inverse propensities, train counts, and the A and B used: as given, else the dataset's, else the usual ones."""
    import numpy as np

    from xcrepro import propensity
    from xcrepro.reports.given import DEFAULT_A, DEFAULT_B

    usual = (DEFAULT_A, DEFAULT_B) if entry is None else (entry.A, entry.B)
    A, B = (own if given is None else given for given, own in zip((arguments.A, arguments.B), usual, strict=True))
    counts = np.bincount(train.indices, minlength=train.shape[1])
    return propensity.inverse(counts, train.shape[0], A, B), counts, A, B
