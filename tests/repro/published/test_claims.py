"""Claims: the file and its rules, and planted evidence for each verdict."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import math
import re
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.repro.engine import manifest
from xcrepro.repro.published import evidence as evidence_of
from xcrepro.repro.published import printed_tables
from xcrepro.repro.published.claims import CHECKS, RESTS, known, read_claims

TREES = "t3-psp-pfastxml-fastxml"
PAIR = {"metric": "PSP", "left": "PfastXML", "right": "FastXML"}


@pytest.fixture(scope="module")
def jain16():
    return xc.claims("jain16")


def rows(values: dict, source="real, live", stderr=0.01, **more) -> pd.DataFrame:
    """Evidence: {dataset: one value for each of k = 1, 3, 5}."""
    made = [
        PAIR | {"source": source, "dataset": name, "k": k, "value": value, "stderr": stderr} | more
        for name, three in values.items()
        for k, value in zip((1, 3, 5), three, strict=False)
    ]
    return pd.DataFrame(made)


def one(jain16, evidence, id=TREES, **options) -> pd.Series:
    return jain16.verdicts(evidence, only=id, **options).iloc[0]


# ------------------------------------------------------------------------------------------------ the files


def test_every_claim_has_a_cell_or_a_reason(root):
    """The notebook is there and one of its cells holds the text."""
    papers = sorted(path.stem for path in (root / "data/claims").glob("*.csv"))
    assert "jain16" in papers
    for paper in papers:
        for claim in xc.claims(paper).table.itertuples():
            if claim.untested:
                assert len(claim.untested.split()) > 5, claim.id
                if not claim.notebook:
                    continue
            path = root / f"notebooks/{claim.notebook}.ipynb"
            assert path.is_file(), f"{paper} {claim.id}: no notebook {claim.notebook}"
            cells = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
            assert any(claim.cell in cell for cell in cells), f"{paper} {claim.id}: no cell with {claim.cell!r}"


def test_metrics_and_methods_of_the_claims_are_known(jain16):
    """An order is of two methods that the document prints, by a metric of the registry, so that print can be shown."""
    printed = set(printed_tables.find(source="jain16")["method"])
    for claim in jain16.table.query("kind == 'order'").itertuples():
        assert {claim.left, claim.right} <= printed, claim.id
        assert claim.metric in xc.metrics.METRICS, claim.id


def test_tables_3_and_4_have_their_claims(jain16):
    """Whatever pair the sentences on the tables name: for each printed method one order under PfastreXML."""
    methods = set(printed_tables.find(source="jain16:table3a")["method"]) - {"PfastreXML"}
    orders = jain16.table.query("kind == 'order' and metric == 'PSP' and left == 'PfastreXML'")
    assert set(orders["right"]) == methods


def test_print_is_that_of_the_tables(jain16):
    evidence = rows({"TIB": [0.1, 0.1, 0.1]})
    gaps, good = [], 0
    for letter in "abcdef":
        table = xc.published.wide(f"jain16:table3{letter}").droplevel(["dataset", "variant"])
        gap = (table.loc["PfastXML"] - table.loc["FastXML"])[["PSP@1", "PSP@3", "PSP@5"]]
        gaps += list(gap)
        good += (gap > 0).all()
    assert one(jain16, evidence)["print"] == f"{min(gaps):+.1f} to {max(gaps):+.1f} ({good} of 6)"
    every = jain16.verdicts(evidence).set_index("id")
    assert every.loc["t4-cov-pfastrexml-fastxml", "print"].endswith("(6 of 6)")
    assert every.loc["t3-psp-pfastrexml-1vsall", "print"].endswith("(1 of 1)")
    assert every.loc["f3c-training", "print"] == ""


def edited(root, tmp_path, **changes):
    """The file of jain16 with other cells in its first row."""
    with (root / "data/claims/jain16.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    table[0] |= changes
    path = tmp_path / "jain16.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows(table)
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "Not An Id"}, "found id 'Not An Id', expected small letters"),
        ({"where": " "}, "found where ' ', expected a text"),
        ({"claim": ""}, "found claim '', expected a text"),
        ({"kind": "opinion"}, "found kind 'opinion', expected one of number, order"),
        ({"k": "1,3"}, "found k '1,3', expected whole numbers"),
        ({"direction": "over"}, "found direction 'over', expected one of above"),
        ({"value": "1e3"}, "found value '1e3', expected a number"),
        ({"rounding": "x"}, "found rounding 'x', expected a number of decimals"),
        ({"rounding": "2"}, "found rounding '2', expected nothing but for an equal"),
        ({"metric": ""}, "found k '1;3;5', expected nothing where there is no metric"),
        ({"left": ""}, "found left '', expected a name where there is a direction"),
        ({"direction": ""}, "found metric 'PSP', expected nothing where there is no metric and no direction"),
        ({"kind": "identity"}, "found direction 'above', expected equal or at least or at most"),
        ({"notebook": "somewhere"}, "found notebook 'somewhere', expected a notebook's id"),
        ({"cell": ""}, "found cell '', expected a text of the cell"),
        ({"notebook": ""}, "expected nothing where there is no notebook"),
        ({"notebook": "", "cell": ""}, "found notebook '', expected the notebook that has the evidence"),
        ({"untested": "we did not"}, "found untested 'we did not', expected nothing where the claim rests on"),
        ({"rests": "none"}, "found untested '', expected the reason"),
        ({"rests": "hearsay"}, "found rests 'hearsay', expected one of data, print, proof, simulation, none"),
        ({"needs": "two"}, "found needs 'two', expected mean, one, or nothing"),
        ({"needs": "one", "rests": "print"}, "found needs 'one', expected nothing where real data do not decide"),
        ({"direction": "within"}, "found value '', expected the margin, above 0"),
        ({"direction": "within", "value": "0.0"}, "found value '0.0', expected the margin, above 0"),
        ({"direction": "", "metric": "", "k": "", "left": "", "right": "", "value": "1"}, "found value '1'"),
        ({"datasets": "Bibtex;EURlex-4K"}, "found datasets 'EURlex-4K', .* did you mean 'EURLex-4K'"),
    ],
)
def test_a_broken_file_names_its_line(root, tmp_path, changes, message):
    with pytest.raises(DataError, match=message) as caught:
        read_claims(edited(root, tmp_path, **changes))
    assert caught.value.line == 2


def test_other_faults_of_files(root, tmp_path):
    with damaged("jain16.csv", 3, match="'t3-psndcg-pfastxml-fastxml'"):
        read_claims(edited(root, tmp_path, id="t3-psndcg-pfastxml-fastxml"))
    path = tmp_path / "a.csv"
    path.write_text("id,claim\na,b\n")
    with damaged(path, 1, match="columns id, claim"):
        read_claims(path)
    with pytest.raises(DataMissing, match="not there"):
        read_claims(tmp_path / "none.csv")


def test_unknown_paper_and_claim(jain16):
    with refused("paper", "'jain_16'", match="'jain16'"):
        xc.claims("jain_16")
    with refused("id", "'t3-psp-pfastxml-fastxm'", match="'t3-psp-pfastxml-fastxml'"):
        jain16["t3-psp-pfastxml-fastxm"]
    with refused("id", "'nothing'"):
        jain16.verdicts(rows({"TIB": [0.1]}), only=[TREES, "nothing"])


def test_what_is_given_is_the_readers_own(jain16):
    given = xc.claims("jain16").table
    given.loc[0, "claim"] = "changed"
    assert xc.claims("jain16").table.loc[0, "claim"] == jain16.table.loc[0, "claim"] != "changed"


# ---------------------------------------------------------------------------------------------- the verdicts


@pytest.mark.parametrize(("live", "recorded"), [("holds", "does not hold"), ("does not hold", "holds")])
def test_an_outcome_of_this_run_stands_for_the_recorded_one(jain16, live, recorded):
    """On one dataset; what is recorded of another counts."""
    said = [("real, live", "TIB", live), ("real, recorded", "TIB", recorded), ("real, recorded", "Bibtex", "holds")]
    evidence = pd.DataFrame(said, columns=["source", "dataset", "outcome"]).assign(id="th44-unbiased", effect="")
    found = jain16.comparisons(evidence, only=["th44-unbiased"])
    assert found[["dataset", "source", "outcome"]].values.tolist() == [
        ["TIB", "real, live", live],
        ["Bibtex", "real, recorded", "holds"],
    ]


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ({"TIB": [0.1, 0.1, 0.1]}, "holds on TIB"),
        ({"TIB": [-0.1, -0.1, -0.1]}, "does not hold on TIB"),
        ({"TIB": [0.1, 0.1, 0.01]}, "never against on TIB (clear in 2 of 3)"),  # one k is too small to tell
        ({"TIB": [0.01, -0.015, 0.01]}, "cannot tell on TIB"),
        ({"TIB": [0.1, 0.1, -0.1]}, "does not hold on TIB"),  # one k is enough against
        ({"TIB": [0.1, 0.1]}, "cannot tell on TIB"),  # k = 5 is missing
        ({"TIB": [0.1] * 3, "Bibtex": [0.1] * 3}, "holds on 2 of 2"),
        ({"TIB": [0.1] * 3, "Bibtex": [0.0] * 3}, "holds on 1 of 2, cannot tell on 1"),
        (
            {"TIB": [0.1] * 3, "Bibtex": [-0.1] * 3, "Delicious": [0.001] * 3, "EURLex-4K": [0.2] * 3},
            "holds on 2 of 4, does not hold on 1, cannot tell on 1",
        ),
        (
            {"TIB": [0.1] * 3, "Bibtex": [0.1, 0.01, 0.1], "Delicious": [0.0, 0.1, 0.0]},
            "holds on 1 of 3, never against on 2 (clear in 3 of 6)",
        ),
        ({"TIB": [math.nan] * 3}, "cannot tell on TIB"),
    ],
)
def test_planted_evidence(jain16, values, verdict):
    evidence = rows(values)
    assert one(jain16, evidence)["verdict"] == verdict
    turned = evidence.assign(left="FastXML", right="PfastXML", value=-evidence["value"])
    assert one(jain16, turned)["verdict"] == verdict
    # The interval says the same as p: by its ends alone, as a notebook keeps them.
    half = NormalDist().inv_cdf(0.975) * evidence["stderr"]
    ends = evidence.assign(low=evidence["value"] - half, high=evidence["value"] + half).drop(columns="stderr")
    assert one(jain16, ends)["verdict"] == verdict
    turned = ends.assign(left="FastXML", right="PfastXML", value=-ends["value"], low=-ends["high"], high=-ends["low"])
    assert one(jain16, turned)["verdict"] == verdict


def judged_by_hand(values, errors, needs: str) -> str:
    """The rule, cell by cell."""
    at = NormalDist().inv_cdf(0.975)
    if needs == "mean":
        values, errors = [sum(values) / len(values)], [sum(errors) / len(errors)]
    z = [value / error for value, error in zip(values, errors, strict=True)]
    clear, low = [], False
    for rank, one in enumerate(sorted(z, key=abs, reverse=True)):
        low = low or abs(one) <= NormalDist().inv_cdf(1 - 0.025 / (len(z) - rank))
        clear += [] if low else [one]
    if min(clear, default=0) < 0:
        return "does not hold"
    return "holds" if min(z) > at else f"never against ({len(clear)} of {len(z)})" if clear else "cannot tell"


@pytest.mark.parametrize("needs", ["", "mean"])
def test_the_cells_of_a_claim_are_judged_by_the_rule(jain16, needs):
    """Of random numbers of cells, values and errors, on two datasets each."""
    rng, seen = np.random.default_rng(len(needs)), set()
    document = own_claim(jain16, needs=needs, metric="", k="", left="", right="")
    for _ in range(150):
        parts, expected = [], []
        for name in ("TIB", "Bibtex"):
            m = int(rng.integers(1, 9))
            table = pd.DataFrame({"model": [f"m{i}" for i in range(m)], "metric": "ECE", "k": 5})
            table["value"] = rng.normal(rng.choice([0, 0.02, 0.05]), 0.02, m)
            table["stderr"] = rng.uniform(0.003, 0.02, m)
            table["p raw"] = 2 * stats.norm.sf(abs(table["value"] / table["stderr"]))
            parts.append(evidence_of.cells({TREES: table}).assign(source="real, live", dataset=name))
            expected.append(judged_by_hand(table["value"].tolist(), table["stderr"].tolist(), needs))
        evidence = pd.concat(parts)
        row = document.verdicts(evidence).iloc[0]
        words = [re.sub(r" \(.*", "", one) for one in expected]
        for word in ("holds", "does not hold", "never against", "cannot tell"):
            assert row[word] == words.count(word)
        counts = [re.findall(r"\d+", one) for one in expected if "never" in one]
        told = re.search(r"never against .*\(clear in (\d+) of (\d+)\)", row["verdict"])
        assert ([*map(int, told.groups())] if told else [0, 0]) == [sum(int(one[i]) for one in counts) for i in (0, 1)]
        seen |= {*words}
    assert seen == {"holds", "does not hold", "cannot tell"} | ({"never against"} if not needs else set())


@pytest.mark.parametrize("degrees", [2, 4, 400, None])
def test_p_and_interval_say_the_same_by_whatever_law(jain16, degrees):
    """p as Student's of few runs gives it, or a bootstrap's count; the errors beside it are normal."""
    rng, seen = np.random.default_rng(degrees or 0), set()
    for _ in range(60):
        z = rng.normal(3, 4, 3)
        raw = 2 * stats.t(degrees).sf(abs(z)) if degrees else np.minimum(rng.integers(1, 80, 3) / 1000, 1.0)
        found = jain16.comparisons(rows({"TIB": 0.01 * z}).assign(**{"p raw": raw}), only=TREES)
        beyond = (found["low"] > 0) | (found["high"] < 0)
        assert (beyond == (raw <= 0.05)).all()
        assert ((found["outcome"] == "holds") == (beyond & (found["value"] > 0))).all()
        assert ((found["outcome"] == "does not hold") == ((found["p"] <= 0.05) & (found["value"] < 0))).all()
        seen |= {*beyond}
    assert seen == {True, False}


def test_real_data_decide(jain16):
    live, made = rows({"TIB": [0.1] * 3}), rows({"EURLex-4K": [-0.1] * 3}, "synthetic")
    alone, both = one(jain16, live), one(jain16, pd.concat([live, made]))
    assert both["verdict"] == alone["verdict"] == "holds on TIB"
    assert both["synthetic"] == "does not hold on EURLex-4K"
    assert one(jain16, made)["verdict"] == "no real data"
    # What is only shown, synthetic or print, does not make the real ones' correction stricter.
    weak = rows({"TIB": [0.025] * 3})
    nothing = rows({"EURLex-4K": [0.0] * 3}, "synthetic")  # in one family of six the weak ones had p = 0.07
    for shown in (nothing, nothing.assign(source="print")):
        assert one(jain16, weak)["verdict"] == one(jain16, pd.concat([weak, shown]))["verdict"] == "holds on TIB"


def test_live_takes_the_place_of_recorded(jain16):
    evidence = pd.concat(
        [rows({"Bibtex": [0.1] * 3}), rows({"Bibtex": [-0.1] * 3, "TIB": [0.1] * 3}, "real, recorded")]
    )
    assert one(jain16, evidence)["verdict"] == "holds on 2 of 2"


def own_claim(jain16, **changes):
    """A document of one claim, that of the trees, with other columns."""
    table = jain16.table[jain16.table["id"] == TREES].reset_index(drop=True).assign(**changes)
    return dataclasses.replace(jain16, table=table)


def copies(document, ids, **columns):
    """A document of one claim as one of several, under other ids."""
    table = pd.concat([document.table] * len(ids), ignore_index=True).assign(id=ids, **columns)
    return dataclasses.replace(document, table=table)


@pytest.mark.parametrize("rests", RESTS)
def test_a_verdict_rests_on_its_own_kind_of_evidence(jain16, rests):
    """Every choice of outcomes of four sources, by a judge that reads the rule: those of the others change nothing, but what
    real data say otherwise than print or a proof is said behind it."""
    untested = "nobody can say why this is so" if rests == "none" else ""
    document = own_claim(jain16, rests=rests, untested=untested, metric="", k="", left="", right="", direction="")
    words = ("holds", "does not hold", "cannot tell", "")
    sources = {"real, live": "TIB", "synthetic": "Bibtex (synthetic)", "print": "", "exact": ""}
    choices = {f"claim-{n}": chosen for n, chosen in enumerate(itertools.product(words, repeat=4)) if any(chosen)}
    told = [(id, *one) for id, chosen in choices.items() for one in zip(sources.items(), chosen, strict=True)]
    lines = [(id, source, dataset, word, "") for id, (source, dataset), word in told if word]
    evidence = pd.DataFrame(lines, columns=["id", "source", "dataset", "outcome", "effect"])
    verdicts = copies(document, [*choices]).verdicts(evidence).set_index("id")["verdict"]
    for id, (real, made, printed, exact) in choices.items():
        own = {"data": [real], "print": [printed], "proof": [exact], "simulation": [real, made, exact], "none": []}
        mine = [word for word in own[rests] if word]
        worst = next((word for word in ("does not hold", "cannot tell", "holds") if word in mine), "")
        ends = {"data": " on TIB", "print": " in print", "proof": " by calculation", "simulation": " in simulation"}
        expected = "no real data" if rests == "data" and made else "see its cell"
        expected = worst + ends[rests] if worst else "cannot be tested here" if rests == "none" else expected
        aside = rests in ("print", "proof") and worst and real not in ("", worst)
        assert verdicts[id] == expected + f"; {real} on TIB" * bool(aside), (rests, choices[id])
    assert verdicts.nunique() == {"data": 5, "none": 1, "simulation": 4}.get(rests, 10)


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ({"TIB": "holds", "Bibtex": "does not hold"}, "holds, shown on TIB"),
        ({"TIB": "cannot tell", "Bibtex": "holds", "Delicious": "holds"}, "holds, shown on Bibtex, Delicious"),
        ({"TIB": "cannot tell", "Bibtex": "does not hold"}, "cannot tell"),
        ({"TIB": "does not hold", "Bibtex": "does not hold"}, "does not hold on 2 of 2"),
    ],
)
def test_what_can_happen_needs_one_dataset(jain16, words, verdict):
    document = own_claim(jain16, needs="one", metric="", k="", left="", right="", direction="")
    lines = [(TREES, "real, live", name, word, "") for name, word in words.items()]
    evidence = pd.DataFrame(lines, columns=["id", "source", "dataset", "outcome", "effect"])
    assert document.verdicts(evidence).loc[0, "verdict"] == verdict


def test_samples_of_a_dataset_are_one_dataset(jain16):
    """All records beside some, and a split: by hand, 2 datasets of four names, and one sample against is enough."""
    for last, verdict in ((0.1, "holds on 2 of 2"), (-0.1, "holds on 1 of 2, does not hold on 1")):
        names = {"TIB": [0.1] * 3, "Delicious": [0.1] * 3}
        more = rows({"TIB (all records)": [0.1] * 3, "Delicious, split 3": [last] * 3}, "real, recorded")
        row = one(jain16, pd.concat([rows(names), more]), datasets=[*more["dataset"].unique()])
        assert row["verdict"] == verdict
        assert row["real"].count("TIB") == 2


def test_a_cell_speaks_beside_the_comparisons_of_its_claim(jain16):
    """Three comparisons that hold and a cell that says so: holds; a cell that says no is enough against."""
    compared = rows({"TIB": [0.1] * 3})
    for word in ("holds", "does not hold", "cannot tell"):
        said = pd.DataFrame([{"id": TREES, "source": "real, live", "dataset": "TIB", "outcome": word, "effect": "so"}])
        evidence = pd.concat([compared, said], ignore_index=True)
        assert one(jain16, evidence)["verdict"] == f"{word} on TIB"


def test_no_difference_is_judged_by_a_margin(jain16):
    """Of random values and errors: inside if the whole interval of the largest of three is, outside if one's lies beyond."""
    rng, seen = np.random.default_rng(5), set()
    drawn = {f"claim-{n}": (rng.normal(0, 0.05, 3), 10 ** rng.uniform(-3.5, -1)) for n in range(120)}
    document = own_claim(jain16, direction="within", value="0.05")
    found = copies(document, [*drawn], left=[*drawn]).comparisons(
        pd.concat([rows({"TIB": values}, stderr=error, left=id) for id, (values, error) in drawn.items()])
    )
    for (id, (values, error)), (of, one) in zip(drawn.items(), found.groupby("id", sort=False), strict=True):
        assert of == id
        # By two one-sided tests, with Holm's correction if outside, from the distance to the nearer end.
        away = np.abs(0.05 - np.abs(values)) / error
        order, sure = np.argsort(-away, kind="stable"), np.zeros(3, bool)
        for rank, at in enumerate(order):
            if away[at] < NormalDist().inv_cdf(1 - 0.05 / (3 - rank) / 2):
                break
            sure[at] = True
        inside = np.abs(values) < 0.05
        alone = away >= NormalDist().inv_cdf(0.975)
        expected = np.where(alone & inside, "holds", np.where(sure & ~inside, "does not hold", "cannot tell"))
        assert list(one["outcome"]) == list(expected)
        ends = (one["low"] > -0.05) & (one["high"] < 0.05)
        assert list(ends) == list(alone & inside)
        seen |= set(expected)
    assert len(seen) == 3


@pytest.mark.parametrize("paper", known())
def test_each_claim_has_evidence_of_the_kind_on_which_it_rests(paper):
    found = evidence_of.of_paper(paper)
    without = found[(found["outcome"] == "") & (found["rests"] != "none")]
    assert not len(without), without[["id", "rests", "verdict"]]


def test_claims_without_evidence_say_so(jain16):
    found = jain16.verdicts(rows({"TIB": [0.1] * 3})).set_index("id")
    assert len(found) == len(jain16)
    assert found.loc[TREES, "verdict"] == "holds on TIB"
    assert found.loc["t3-psp-pfastrexml-fastxml", "verdict"] == "no evidence"
    assert found.loc["t2-ads9m", "verdict"] == "cannot be tested here"
    assert found.loc["f1-power-law", "verdict"] == "cannot be tested here"
    assert found.loc["f4-tail", "verdict"] == "see its cell"


def test_exact_claims_need_no_error(jain16):
    row = {
        "source": "synthetic",
        "dataset": "EURLex-4K",
        "metric": "largest gain in print",
        "k": "",
        "stderr": math.nan,
    }
    row |= {"left": "PfastreXML", "right": "better of SLEEC and FastXML"}
    for id, name, value, verdict in (
        ("t3-gain-ads9m", "Ads-9M", 3.24, "holds in print"),
        ("t3-gain-ads9m", "Ads-9M", 3.6, "does not hold in print"),
        ("t3-gain-amazoncat", "AmazonCat-13K", 22.3, "holds in print"),
        ("t3-gain-amazoncat", "AmazonCat-13K", 20 - 1e-14, "holds in print"),
        ("t3-gain-amazoncat", "AmazonCat-13K", 19.9, "does not hold in print"),
    ):
        evidence = pd.DataFrame([row | {"source": "print", "dataset": name, "value": value}])
        assert one(jain16, evidence, id)["verdict"] == verdict
    elsewhere = pd.DataFrame([row | {"dataset": "Bibtex", "value": 3.0}])
    with refused("evidence"):
        jain16.verdicts(elsewhere, only="t3-gain-ads9m")


def test_what_compare_gives_is_evidence(jain16):
    """Two models on data where one is right always and the other seldom."""
    n = 200
    models = {name: xc.TopK.from_ids(np.arange(n)[:, None] // step * step % 10, n_labels=10)
              for name, step in (("PfastXML", 1), ("FastXML", 4))}  # fmt: skip
    found = xc.compare(np.eye(10)[np.arange(n) % 10], models, "PSP", 1, inverse_propensity=np.ones(10))
    evidence = found.assign(source="real, live", dataset="bibtex")
    (row,) = jain16.comparisons(evidence, only=TREES).itertuples()
    assert (row.dataset, row.outcome) == ("Bibtex", "holds")
    assert row.p == found["p raw"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns=["k", "dataset"]), "must have the columns .*; got none named dataset, k"),
        (lambda t: t.drop(columns="stderr"), "must have an error: 'p raw', 'stderr', or 'low' and 'high'"),
        (lambda t: t.assign(stderr="much"), r"evidence\['stderr'\] must have numbers"),
        (lambda t: t.assign(source="real"), "must be one of 'real, live', .*; got 'real'"),
        (lambda t: t.assign(dataset="Bibtx"), "must be a dataset of the catalogue; got 'Bibtx': did you mean 'Bibtex'"),
        (lambda t: t.assign(dataset=7), "must be a dataset of the catalogue; got '7'"),
        (lambda t: t.assign(metric="PSPP"), "did you mean 'PSP'"),
        (lambda t: t.assign(value=2.9), "fractions, from -1 to 1; got 2.9 for PSP on TIB: divide percent by 100"),
        (lambda t: pd.concat([t, t]), "each comparison of a source once; got PfastXML and FastXML, PSP, k = 1, on TIB"),
        (
            lambda t: t.assign(left="DiSMEC"),
            "got DiSMEC and FastXML, PSP: such as PfastXML and FastXML, PSP, k = 1, 3, 5",
        ),
        (lambda t: t[:0], "got no row"),
        (lambda t: t.to_dict(), "must be a table of differences, as xc.compare gives it; got dict"),
    ],
)
def test_evidence_that_does_not_fit_is_refused(jain16, change, message):
    with pytest.raises(ArgumentError, match=message):
        jain16.verdicts(change(rows({"TIB": [0.1] * 3})))


def test_own_datasets_are_named(jain16):
    evidence = rows({"laws": [0.1] * 3})
    with pytest.raises(ArgumentError, match=re.escape("datasets=[...]")):
        jain16.verdicts(evidence)
    assert one(jain16, evidence, datasets=["laws"])["verdict"] == "holds on laws"


@pytest.mark.parametrize("confidence_level", [0, 1, "95", 95])
def test_level(jain16, confidence_level):
    with refused("confidence_level"):
        jain16.verdicts(rows({"TIB": [0.1]}), confidence_level)


def test_another_level_asks_for_more(jain16):
    """2.5 errors from 0 are clear at 95 %, and not at 99 %."""
    evidence = rows({"TIB": [0.025] * 3})
    assert one(jain16, evidence)["verdict"] == "holds on TIB"
    assert one(jain16, evidence, confidence_level=0.99)["verdict"] == "cannot tell on TIB"


def test_the_readme_counts_the_claims(root):
    lines = []
    for path in sorted((root / "data/claims").glob("*.csv")):
        table = xc.claims(path.stem).table
        rests = table["rests"].value_counts()
        numbers = [len(table), *(rests.get(kind, 0) for kind in RESTS), table["kind"].isin(CHECKS).sum()]
        lines.append(f"| `{path.name}` | {' | '.join(map(str, numbers))} |")
    text = (root / "data/claims/README.md").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("| `")] == lines


def test_a_papers_page_waits_for_all_that_keep_evidence_of_its_claims(root):
    """Else it is written from the evidence of an earlier run."""
    items = manifest.load(root)
    for path in sorted((root / "data/claims").glob("*.csv")):
        tested = set(xc.claims(path.stem).table["notebook"])
        keep = {id for id in items if id in tested and (root / f"figures/{id}-evidence.csv").is_file()}
        if page := items.get(f"{path.stem}/claims"):  # of few claims each stands in its notebook only
            assert keep == set(page.needs), path.stem
