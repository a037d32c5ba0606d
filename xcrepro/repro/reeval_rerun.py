"""What the items that rerun tables 3 and 4 and figures 2 and 3 of "Re-evaluating XMTC methods in tail label prediction"
share: the datasets, the models, and the metrics of the two tables.

The paper's neural methods need a GPU and a text encoder. What stands here beside the linear SVM are this kit's baselines:
one says what another loss changes, one what a label tree costs, one is made for the tail, one learns its features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from xcrepro.data import registry
from xcrepro.data.dataset import Dataset
from xcrepro.errors import ArgumentError
from xcrepro.inputs import baselines, datasets, trained
from xcrepro.metrics import labelwise, ranking
from xcrepro.predictions import TopK
from xcrepro.repro import reeval_tables

KS = (1, 3, 5)
MODELS = {
    "SVM": "DiSMEC",
    "Logistic": "1-vs-All",
    "PLT": "PLT",
    "PfastreXML": "PfastreXML",
    "Neural": "Neural",
}
"""Name in these items -> baseline. The SVM is linear, on tf-idf, one a label: squared hinge, C = 1; the paper names no
loss and no C. Logistic is the same with the logistic loss, C = 10."""
TABLES = {3: {"P": "P", "micro_F1": "micro-F1", "macro_F1": "macro-F1"}, 4: {"N": "nDCG", "PSP": "PSP"}}
"""The paper's table -> its metrics as printed -> ours."""


def load(
    names: Sequence[str], size: str, scales: Sequence[float], seed: int = 0, folder: str = ""
) -> dict[str, Dataset]:
    """Printed name -> dataset: real where ``folder`` is given or at size paper, else twins at their ``scales``.

    folder: where the real datasets lie, one subfolder each, named as in ``names``.
    """
    if len(names) != len(scales):
        raise ArgumentError("scales", f"must be one for each of the {len(names)} datasets", list(scales))
    found = {}
    for name, scale in zip(names, scales, strict=True):
        home = str(Path(folder).expanduser() / name) if folder else ""
        found[_title(name)] = datasets.pick(name, size, scale, seed, home)
    return found


def origins(loaded: Mapping[str, Dataset]) -> None:
    """Print what the data are, a line each."""
    for ds in loaded.values():
        print(datasets.origin(ds))


def predictions(
    loaded: Mapping[str, Dataset], seed: int = 0, given: str = "", max_leaf: int = 100
) -> dict[str, dict[str, TopK]]:
    """Printed name of the dataset -> model -> its best labels for the test points.

    given: a folder of saved predictions with one subfolder for each dataset, named by its key (``eurlex-4k``), in which
    every file is a model (see :func:`xcrepro.inputs.baselines.saved`); they take the place of :data:`MODELS`.
    max_leaf: labels in a leaf of the label tree. With as many as a dataset has labels the tree would be Logistic again.
    """
    found = {}
    for title, ds in loaded.items():
        if given:
            home = Path(given).expanduser() / datasets.registry_name(ds)
            found[title] = baselines.saved(str(home), ds)
            continue
        models = {name: baselines.recipe(baseline, ds, seed) for name, baseline in MODELS.items()}
        models["PLT"].max_leaf = max_leaf
        found[title] = {
            name: trained.training(model, ds.train.X, ds.train.Y).predictions(ds.test.X, baselines.PLACES)
            for name, model in models.items()
        }
    return found


def metrics(loaded: Mapping[str, Dataset], tops: Mapping[str, Mapping[str, TopK]]) -> pd.DataFrame:
    """The columns of tables 3 and 4 of each model, percent: dataset, method, P@1 ... macro_F1@5, N@1 ... PSP@5.

    As the paper defines them: macro-F1 over all labels of the dataset, 0 for one never predicted; nDCG with the ideal of
    min(k, labels of the point); PSP as the published ratio, with propensities from the train counts.
    """
    rows = []
    for title, models in tops.items():
        ds = loaded[title]
        weights = datasets.weights(ds)
        for method, top in models.items():
            found = ranking.values(["P", "micro-F1", "nDCG", "PSP"], ds.test.Y, top, KS, weights)
            found |= labelwise.values(["macro-F1"], ds.test.Y, top, KS)
            row = {"dataset": title, "method": method}
            for columns in TABLES.values():
                row |= {f"{p}@{k}": 100 * found[ours][i] for p, ours in columns.items() for i, k in enumerate(KS)}
            rows.append(row)
    return pd.DataFrame(rows)


def table(found: pd.DataFrame, number: int) -> pd.DataFrame:
    """The columns of table 3 or 4."""
    return found[["dataset", "method", *[f"{metric}@{k}" for metric in TABLES[number] for k in KS]]]


def printed() -> pd.DataFrame:
    """Tables 3 and 4 as printed, side by side: the columns of :func:`metrics`."""
    return reeval_tables.table(3).merge(reeval_tables.table(4), on=["dataset", "method"])


def beside(found: pd.DataFrame, baseline: str = "SVM") -> pd.DataFrame:
    """The one method that the paper and we have, and the best of each: dataset, column, ours and printed (the SVM's value),
    best here (text), ahead here, best printed, ahead printed (points before the baseline; 0 where it is the best).

    Datasets that the paper does not have are left out.
    """
    paper, rows = printed(), []
    for title, part in found.groupby("dataset", sort=False):
        theirs = paper[paper["dataset"] == title]
        if theirs.empty or baseline not in set(part["method"]):
            continue
        for column in reeval_tables.columns(found):
            row = {"dataset": title, "column": column}
            for word, group, svm in (("here", part, baseline), ("printed", theirs, reeval_tables.BASELINE)):
                values = group.set_index("method")[column]
                row[f"{reeval_tables.BASELINE} {word}"] = values[svm]
                row[f"best {word}"] = " = ".join(values.index[values == values.max()])
                row[f"ahead {word}"] = values.max() - values[svm]
            rows.append(row)
    return pd.DataFrame(rows)


def disagreement(found: pd.DataFrame, reference: str = "macro_F1") -> pd.DataFrame:
    """How many pairs of models each metric puts in the opposite order of macro-F1 at the same k: dataset, k, a count a
    metric, pairs (how many there are).

    A pair that either metric ties is not counted as opposite.
    """
    names = [metric for columns in TABLES.values() for metric in columns if metric != reference]
    rows = []
    for title, part in found.groupby("dataset", sort=False):
        pairs = list(combinations(range(len(part)), 2))
        for k in KS:
            one = _signs(part[f"{reference}@{k}"], pairs)
            counts = {name: int((one * _signs(part[f"{name}@{k}"], pairs) < 0).sum()) for name in names}
            rows.append({"dataset": title, "k": k, **counts, "pairs": len(pairs)})
    return pd.DataFrame(rows)


def _signs(values: pd.Series, pairs: list[tuple[int, int]]) -> np.ndarray:
    numbers = values.to_numpy()
    # Two metrics computed another way may differ in the last digit of what is equal.
    return np.sign([round(numbers[i] - numbers[j], 9) for i, j in pairs])


def steady(table: pd.DataFrame) -> pd.DataFrame:
    """What of a table of models a golden file can hold on another processor.

    Left out: PfastreXML, whose trees branch otherwise when inputs change in the seventh digit, which moves its averages over
    labels by 6 % (those of the others by less than 1 %); bins of rare labels, where one hit is a fifth of the value; and
    differences with all that is made of them.
    """
    kept = table[table["method"] != "PfastreXML"]
    if "bin" in kept:
        kept = kept[kept["bin"] != "1-9"]
    return kept.drop(columns=["difference", "improvement", "t", "p"], errors="ignore").reset_index(drop=True)


def need(baseline: str, tops: Mapping[str, Mapping[str, TopK]]) -> None:
    """Raise ArgumentError unless every dataset has predictions of the baseline."""
    for title, models in tops.items():
        if baseline not in models:
            raise ArgumentError("baseline", f"must be one of the models of {title}", repr(baseline), ", ".join(models))


def check_ks(loaded: Mapping[str, Dataset], ks: Sequence[int]) -> dict[str, int]:
    """Dataset -> its k."""
    if len(ks) != len(loaded):
        raise ArgumentError("ks", f"must be one for each of the {len(loaded)} datasets", list(ks))
    return dict(zip(loaded, ks, strict=True))


def _title(name: str) -> str:
    return registry.get(name).printed_name if name in registry.names() else name
