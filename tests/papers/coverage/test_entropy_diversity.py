"""coverage/entropy_diversity: measures by plain loops, choices by the public calls, planted sentences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from xcrepro import decide, metrics
from xcrepro.errors import ArgumentError
from xcrepro.papers.coverage import entropy_diversity as item


@pytest.fixture(scope="module")
def made(twin, run):
    chosen = item.choose(twin, run, 3, [0.5])
    measured = item.measure(twin, chosen, 3)
    return twin, run, chosen, measured, item.compute(twin, chosen, measured, 3)


def test_choices_are_the_public_calls(made):
    _, run, chosen, _, _ = made
    assert list(chosen) == ["PLT", "PS-PLT", "COV-PLT", "COVβ=0.5", "BRS-PLT"]
    assert (chosen["PLT"].ids == decide.top_k(run.probabilities, 3).ids).all()
    assert (chosen["COVβ=0.5"].ids == decide.greedy_coverage(run.probabilities, 3, 0.5).ids).all()


def test_entropy_and_diversity_by_loops(made):
    twin, _, chosen, _, table = made
    Y, train = twin.test.Y.toarray() > 0, twin.train.Y.toarray() > 0
    for row in table.itertuples():
        ids = chosen[row.rule].ids
        hits = [label for i, labels in enumerate(ids) for label in labels if label >= 0 and Y[i, label]]
        shares = [hits.count(label) / len(hits) for label in set(hits)]
        assert row.entropy == pytest.approx(-sum(share * math.log(share) for share in shares), rel=1e-9)
        assert row.alike == pytest.approx(math.exp(row.entropy))
        assert row.hit == len(set(hits))
        total = 0.0
        for labels in ids:
            for a, b in itertools.combinations(labels, 2):
                norm = math.sqrt(train[:, a].sum() * train[:, b].sum())
                total += 1 - ((train[:, a] & train[:, b]).sum() / norm if norm else 0.0)
        assert row.diversity == pytest.approx(100 * total / 3 / len(ids), rel=1e-6)


def test_similarity_is_the_cosine_that_the_metric_takes_from_features(made):
    twin, _, chosen, _, table = made
    want = metrics.diversity(twin.test.Y, chosen["PLT"], 3, label_features=twin.train.Y.T.tocsr())[0]
    assert table.set_index("rule")["diversity"]["PLT"] == pytest.approx(100 * want, rel=1e-9)
    alike = item.similarity(twin)
    assert alike.max() <= 1.0
    assert abs(alike - alike.T).max() < 1e-12


def test_sentences(made):
    *_, measured, table = made
    said = item.findings(table, measured)
    assert len(said) == 8
    top = table.loc[table["entropy"].idxmax()]
    assert said[-1].startswith(f"{top['rule']} hits {top['hit']:,} labels")
    real = item.findings_recorded({"bibtex": table})
    assert real[0].startswith("Real data first, over the rules. bibtex: Cov and entropy")
    assert item.findings_recorded({}) == []
    planted = table.assign(Cov=np.arange(5.0), entropy=np.arange(5.0), diversity=-np.arange(5.0))
    said = item.findings(planted, measured)
    assert "Cov and entropy rise together" in said[3]
    assert "Cov and diversity go in opposite directions" in said[4]
    assert len(item.plot(table, 3).axes) == 3


@pytest.mark.parametrize(("name", "value"), [("k", 1), ("betas", [0.0]), ("betas", [1.0, 1.0]), ("betas", 0.5)])
def test_parameters_are_refused_by_their_name(name, value):
    good = {"dataset": "bibtex", "k": 5, "betas": [0.25]}
    item.check_parameters(good)
    with pytest.raises(ArgumentError, match=f"parameter {name} must"):
        item.check_parameters(good | {name: value})
