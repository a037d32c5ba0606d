"""Evidence of notebooks: what is live and recorded, outcomes without a comparison, and the table of verdicts."""

from __future__ import annotations

import dataclasses
import re
import types

import numpy as np
import pandas as pd
import pytest

import xcrepro as xc
from xcrepro.core.errors import ArgumentError
from xcrepro.repro.published import evidence

TREES = "t3-psp-pfastxml-fastxml"


@pytest.fixture(scope="module")
def twin():
    return xc.twin("bibtex", scale=0.1, seed=0)


@pytest.fixture(scope="module")
def tib():
    return xc.load("tib", points=1000)


def differences(values, stderr=0.01) -> pd.DataFrame:
    """As xc.compare gives them, the pair turned."""
    rows = [("PSP", k, "FastXML", "PfastXML", -value) for k, value in zip((1, 3, 5), values, strict=True)]
    return pd.DataFrame(rows, columns=["metric", "k", "left", "right", "value"]).assign(stderr=stderr)


def item(id="jain16/table3_table4", recorded=None):
    """An item that keeps what it is given to check."""
    kept = {}
    made = types.SimpleNamespace(
        entry=types.SimpleNamespace(id=id),
        check=lambda table, part, quiet: kept.update({part: table}),
        recorded=lambda part, whole=False, sds=False: recorded or {},
        nothing_of=lambda table: False,
    )
    return made, kept


def test_where_evidence_comes_from(twin, tib):
    for ds, source, name in ((twin, "synthetic", "Bibtex (synthetic)"), (tib, "real, live", "TIB")):
        made = evidence.of(ds, differences([0.1, 0.1, 0.1]), {"th44-unbiased": (None, "too few draws")})
        assert set(made["source"]) == {source}
        assert set(made["dataset"]) == {name}
        assert made["outcome"].dropna().tolist() == ["cannot tell"]
    found = evidence.exact({"th44-unbiased": (np.True_, "")})
    assert found.loc[0, ["source", "outcome"]].tolist() == ["exact", "holds"]
    assert evidence.printed({"t3-most-columns": (False, "")}).loc[0, "outcome"] == "does not hold"


def test_a_twin_is_never_taken_for_the_real_dataset(twin):
    """Its rows have a column of their own beside what is recorded of the real one, and decide nothing."""
    live = evidence.of(twin, differences([0.1, 0.1, 0.1]))
    there = evidence.of(twin, differences([-0.2, -0.2, -0.2])).assign(dataset="Bibtex", source="real, live")
    one, _ = item(recorded={"bibtex": there})
    found = evidence.gather(one, live)
    row = evidence.verdicts(one, found).iloc[0]
    assert (row["Bibtex (synthetic)"][:5], row["Bibtex"][:5]) == ("+10.0", "-20.0")
    assert row["verdict"] == "does not hold on Bibtex"
    document = xc.claims("jain16")
    own = dataclasses.replace(document, table=document.table.assign(datasets="Bibtex"))
    for name in ("Bibtex (synthetic)", "bibtex (synthetic)"):
        renamed = found.assign(dataset=found["dataset"].replace("Bibtex (synthetic)", name))
        compared = own.comparisons(renamed, only=[TREES])
        assert set(compared["dataset"]) == {"Bibtex (synthetic)", "Bibtex"}


def test_verdicts_show_the_weakest_k(tib):
    """By hand: the least lower end of the three, and a dataset's own recorded synthetic rows are not evidence."""

    def of(name: str, *values: float) -> pd.DataFrame:
        return evidence.of(tib, differences(values)).assign(dataset=name)

    drawn = of("Wiki10-31K", 0.2, 0.2, 0.3).assign(source="synthetic")
    delicious = pd.concat([of("Delicious", -0.2, 0.2, 0.3), drawn])
    others = {"bibtex": of("Bibtex", 0.2, 0.01, 0.3), "delicious": delicious}
    one, kept = item(recorded=others)
    found = evidence.gather(
        one,
        evidence.of(tib, differences([0.10, 0.09, 0.11])),
        evidence.printed({"t3-most-columns": (True, "36 of 36")}),
        evidence.exact({"s7-normalised": (False, "0.5 is not 0.4")}),
    )
    assert len(kept["evidence"]) == 5
    assert set(found["source"]) == {"real, live", "real, recorded", "print", "exact"}
    table = evidence.verdicts(one, found)
    assert list(table) == ["claim", "print, or by hand", "TIB", "Bibtex", "Delicious", "verdict"]
    first = table.iloc[0]
    assert first["claim"] == "PfastXML above FastXML, PSP@1, 3, 5"
    assert first["TIB"].startswith("+9.0 (")
    assert first["TIB"].endswith("at k = 3")
    assert first["Bibtex"].startswith("+1.0 (-")
    assert first["Delicious"].startswith("-20.0 (")
    assert first["verdict"] == "holds on 1 of 3, does not hold on 1, never against on 1 (clear in 2 of 3)"
    rest = table.set_index("claim")
    assert rest.iloc[1:]["verdict"].tolist() == ["holds in print", "does not hold by calculation"]
    assert rest.iloc[1:]["print, or by hand"].tolist() == ["36 of 36", "0.5 is not 0.4"]


def test_the_cells_of_a_claim_are_counted(tib):
    """Of table 5's claim: a cell clear for it, one too small to tell, on another dataset one against it."""
    table = pd.DataFrame({"model": ["a", "b"], "metric": "ECE", "k": 5, "value": [-0.1, 0.01], "stderr": 0.01})
    id = "t5-isotonic-platt"
    assert evidence.cells({}).assign(source="real, live").empty  # of a dataset whose printed rows no claim names
    live = evidence.of(tib, evidence.cells({id: table}))
    there = evidence.of(tib, evidence.cells({id: table.assign(value=[-0.1, 0.1])})).assign(dataset="Bibtex")
    found = evidence.gather(item("calibration/table5_isotonic_platt", recorded={"bibtex": there})[0], live)
    assert evidence.clear("calibration", id, found).T.to_dict("list") == {"TIB": [2, 1, 0], "Bibtex": [2, 1, 1]}
    shown = evidence.shown(xc.claims("calibration"), found, [id]).iloc[0]
    assert shown["TIB"] == "clear in 1 of 2 (-10.0 to +1.0 points)"
    assert shown["Bibtex"] == "clear in 1 of 2, against it in 1 (-10.0 to +10.0 points)"
    assert shown["verdict"] == "does not hold on 1 of 2, never against on 1 (clear in 1 of 2)"


def test_all_records_of_the_dataset_that_is_live_are_evidence_of_their_own(tib):
    others = {"tib": evidence.of(tib, differences([0.1, 0.1, 0.1]))}
    found = evidence.gather(item(recorded=others)[0], evidence.of(tib, differences([-0.1, -0.1, -0.1])))
    sources = {"TIB": "real, live", f"TIB{evidence.WHOLE}": "real, recorded"}
    assert found.groupby("dataset")["source"].first().to_dict() == sources
    table = evidence.verdicts(item(recorded=others)[0], found).set_index("claim")
    row = table.filter(like="above FastXML, PSP@", axis=0).iloc[0]
    assert row["verdict"] == "does not hold on TIB"  # one dataset, of which one sample is against


def test_what_is_found_from_records_comes_before_their_own_outcomes(tib, twin):
    id = "s7-normalised"
    others = {"bibtex": evidence.of(tib, None, {id: (None, "of each split")}).assign(dataset="Bibtex")}
    of_all = evidence.of(tib, None, {id: (True, "of all")}).assign(dataset="Bibtex", source="real, recorded")
    here = [evidence.of(tib, differences([0.1, 0.1, 0.1])), of_all]
    found = evidence.gather(item(recorded=others)[0], *here)
    assert found.loc[found["id"] == id, ["source", "outcome"]].to_numpy().tolist() == [["real, recorded", "holds"]]


def test_built_in_counts_come_before_a_record_of_the_same_dataset(tib):
    """As after ``--record`` of a dataset whose label counts come with the kit."""
    live = evidence.of(tib, outcomes={"f1-power-law": (False, "counted")}).assign(dataset="EURLex-4K")
    one, _ = item("jain16/fig1_label_frequency", {"eurlex-4k": live.assign(effect="recorded")})
    found = evidence.gather(one, live)
    assert found["effect"].tolist() == ["counted"]
    assert evidence.verdicts(one, found).loc[0, "EURLex-4K"] == "counted"


def test_planted_faults_are_refused(tib):
    one, _ = item()
    for outcomes, message in (
        ({"t3-most-column": (True, "")}, "did you mean 't3-most-columns'"),
        ({"th44-unbiased": (True, "")}, "must have a comparison that a claim"),
    ):
        with pytest.raises(ArgumentError, match=message):
            evidence.verdicts(one, evidence.gather(one, evidence.of(tib, outcomes=outcomes)))
    twice = evidence.of(tib, outcomes={"t3-most-columns": (True, "")})
    with pytest.raises(ArgumentError, match="t3-most-columns on TIB"):
        evidence.verdicts(one, evidence.gather(one, twice, twice))
    with pytest.raises(ArgumentError, match="must be one of 'holds'"):
        xc.claims("jain16").verdicts(twice.assign(outcome="yes"))


def test_a_paper_has_all_its_claims(root):
    """Each claim once, in order; those of a notebook have the verdict that its committed table shows."""
    found = evidence.of_paper("jain16")
    assert found["id"].tolist() == xc.claims("jain16").table["id"].tolist()
    assert (found.loc[found["untested"] != "", "verdict"] == "cannot be tested here").all()
    table = pd.read_csv(root / "figures/jain16/table3_table4-claims.csv", keep_default_na=False)
    mine = found[(found["notebook"] == "jain16/table3_table4") & (found["verdict"] != "no evidence")]
    assert mine["verdict"].tolist() == table["verdict"].tolist()


def test_a_notebook_of_no_document_is_judged_by_the_claims_that_name_it(tib):
    """Those of ``beyond/`` test claims of any document."""
    one, _ = item("beyond/since")
    mine = [claim.id for claim in xc.claims("jain16").table.itertuples() if claim.notebook == "beyond/since"]
    outcomes = {id: (True, f"found {id}") for id in mine}
    table = evidence.verdicts(one, evidence.gather(one, evidence.of(tib, outcomes=outcomes)))
    assert list(table["TIB"]) == [f"found {id}" for id in mine]
    rests = [xc.claims("jain16")[id]["rests"] for id in mine]
    verdicts = {"simulation": "holds in simulation", "proof": "see its cell", "none": "cannot be tested here"}
    assert table["verdict"].tolist() == [verdicts[one] for one in rests]


def test_a_papers_page():
    """By hand: each claim in one table, by what it rests on, with its reason or its notebook."""
    found = evidence.of_paper("jain16")
    assert set(found["section"]) <= set(evidence.SECTIONS.values())
    by = found.set_index("id")[["section", "outcome"]]
    data, print_, proof, drawn, check, nothing = evidence.SECTIONS.values()
    fails, open_ = evidence.PARTLY
    for id, section, outcome in (
        ("t3-psp-pfastxml-fastxml", data, "holds"),
        ("t3-psp-pfastrexml-1vsall", data, fails),
        ("t3-psp-pfastrexml-pfastxml", data, open_),
        ("s6-overhead", data, "cannot tell"),
        ("f3d-wrong-propensities", data, "holds"),
        ("t3-most-columns", print_, "holds"),
        ("s7-coverage", print_, "cannot tell"),
        ("th41-any-truth", proof, "holds"),
        ("th44-bound", drawn, "holds"),
        ("s5-example", check, "holds"),
        ("f3c-training", nothing, ""),
        ("s7-clickthrough", nothing, ""),
    ):
        assert by.loc[id].tolist() == [section, outcome], id
    assert found.set_index("id").loc["t3-psp-pfastxml-fastxml", "found"].startswith("TIB: +2.4 (")
    table = evidence.counted(found)
    assert table["claims"].sum() == len(found)
    judged = table[table["evidence"] != nothing]
    assert judged[[name for name in table if name in evidence.OUTCOMES]].sum(axis=None) == judged["claims"].sum()
    page = evidence.Page(found)._repr_markdown_()
    assert page.count("<details>") + page.count("<details open>") == len(table)
    assert page.count("<details open>") == 1
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| claim |", "| :--"))]
    assert len(rows) == len(found)
    assert "[table3_table4](../jain16/table3_table4.ipynb)" in page
    assert "Bing" in page
    (ours,) = (line for line in rows if "consistently higher nDCG@3" in line)
    assert "EURLex-4K, whose features" in ours
    assert "clearly ahead in 1 of 4" in ours  # what is found here stands beside the reason why it is no verdict


@pytest.mark.parametrize(
    ("rests", "verdict", "outcome"),
    [
        ("data", "holds on 2 of 3, does not hold on 1", evidence.PARTLY[0]),
        ("data", "holds on 1 of 3, does not hold on 1, cannot tell on 1", evidence.PARTLY[0]),
        ("data", "holds on 2 of 3, cannot tell on 1", evidence.PARTLY[1]),
        ("data", "does not hold on 1 of 3, cannot tell on 2", "does not hold"),
        ("data", "holds, shown on TIB, Bibtex", "holds"),
        ("data", "holds on 3 of 3", "holds"),
        ("data", "cannot tell on TIB", "cannot tell"),
        ("data", "never against on 1 of 2 (clear in 2 of 3), cannot tell on 1", "never against"),
        ("print", "does not hold in print", "does not hold"),
        ("data", "see its cell", ""),
        ("none", "cannot be tested here", ""),
    ],
)
def test_how_a_claim_comes_out(rests, verdict, outcome):
    assert evidence._outcome(pd.Series({"rests": rests, "verdict": verdict})) == outcome


def test_no_difference_within_a_margin():
    """By hand, of intervals -1 to 1, 2 to 4 and -4 to -2."""
    low, high = [-1.0, 2.0, -4.0], [1.0, 4.0, -2.0]
    for margin, words, one_sided in ((5, True, True), (3, None, None), (1.5, False, False)):
        assert evidence.inside(low, high, margin) is words
        assert evidence.inside(low, high, margin, one_sided=True) is one_sided
    assert evidence.inside(low[2:], high[2:], 1.5, one_sided=True) is True  # a loss is no gain
    assert evidence.inside([0.0], [float("nan")], 1) is None
    assert evidence.margin("jain16", "s7-hyperparameters") == 0.01


def test_means_over_splits_have_the_larger_of_both_errors():
    columns = {"metric": "P", "k": 1, "left": "a", "right": "b", "value": [0.02, 0.02, 0.02], "stderr": 0.005}
    table = pd.DataFrame({**columns, "p raw": 0.0001, "low": 0.01, "high": 0.03})
    # One row's splits lie near each other, one's far apart; the third has no standard deviation and so repeats its value.
    sds = table.assign(value=[0.001, 0.03, 0.02])
    found = evidence._over_splits(table, sds)
    assert found["stderr"].tolist() == [0.005, 0.03, 0.005]
    assert found["p raw"].isna().tolist() == [False, True, False]
    assert evidence._over_splits(table[["metric", "value"]], sds).equals(table[["metric", "value"]])


def test_the_weakest_k_of_a_claim_of_less(tib):
    """Of a difference that is claimed to be negative the weakest is the one with the greatest upper end."""
    rows = [("P", k, "COV-PLT", "PLT", value, 0.01) for k, value in ((1, -0.10), (3, -0.09), (5, -0.11))]
    table = pd.DataFrame(rows, columns=["metric", "k", "left", "right", "value", "stderr"])
    one, _ = item("coverage/table2_table3")
    row = evidence.verdicts(one, evidence.gather(one, evidence.of(tib, table))).iloc[0]
    assert row["claim"].startswith("COV-PLT below PLT")
    assert row["TIB"].startswith("-9.0 (")
    assert row["TIB"].endswith("at k = 3")
    assert row["verdict"] == "holds on TIB"


def test_the_interval_that_is_shown_carries_the_verdict(tib):
    """Whatever the three differences and their errors are: beyond 0 where the claim holds or does not, and only there on the
    claimed side."""
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(60):
        one, _ = item()
        table = differences(rng.normal(rng.choice([-0.03, 0, 0.03]), 0.02, 3), rng.uniform(0.003, 0.02, 3))
        row = evidence.verdicts(one, evidence.gather(one, evidence.of(tib, table))).iloc[0]
        low, high = re.search(r"\((.*) to (.*)\)", row["TIB"]).groups()
        word = row["verdict"].partition(" on TIB")[0]
        assert (word == "holds") == low.startswith("+"), row["TIB"]  # what rounds to 0 keeps its sign
        assert word != "does not hold" or float(high) < 0, row["TIB"]
        seen.add(word)
    assert len(seen) == 4
