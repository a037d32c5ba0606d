"""The README says what is so: each number of "What we found" is made from a committed file, and so are the counts and times."""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter

import pandas as pd
import pytest

from docs import papers, verdicts
from xcrepro.repro.published import evidence, reproduced
from xcrepro.repro.published.claims import known

DELICIOUS, BIBTEX = "delicious", "bibtex"


def section(root, heading: str, page: str = "README.md") -> str:
    """A part of a page on one line, its links as their words."""
    text = (root / page).read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, heading
    return " ".join(re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", found[1]).split())


def recorded(root, item: str, dataset: str, table: str = "") -> pd.DataFrame:
    """A table of ``data/recorded``: results on real data, one row per row that the notebook shows."""
    rows = pd.read_csv(root / "data/recorded" / item / f"{dataset}.csv", dtype=str).fillna({"table": ""})
    wide = rows[rows["table"] == table].pivot(index="row", columns="column", values="value")
    return wide.apply(lambda column: pd.to_numeric(column, errors="coerce").where(lambda x: x.notna(), column))


def propensities(root) -> list[str]:
    rows = pd.read_csv(root / "figures/jain16/table3_table4.csv").set_index(["dataset", "left", "right", "metric", "k"])
    bibtex, delicious, gutenberg, tib, printed = (
        rows.loc[(name, "PfastreXML", "1-vs-All", "PSP", 1)]
        for name in ("Bibtex", "Delicious", "Gutenberg, split 0", "TIB", "EURLex-4K, printed")
    )
    assert printed["value"] > 0
    # A mean over splits is as uncertain as the larger of two errors says: of a split's points, and between splits.
    recorded = pd.read_csv(root / "data/recorded/jain16/table3_table4/delicious.csv").query("table == 'evidence'")
    pairs, sds = (recorded.pivot(index="row", columns="column", values=of) for of in ("value", "sd"))
    [row] = pairs.query("metric == 'PSP' and k == '1' and left == '1-vs-All' and right == 'PfastreXML'").index
    half = 100 * 1.96 * max(float(pairs.loc[row, "stderr"]), float(sds.loc[row, "value"]))
    return [
        f"PfastreXML beats one-vs-rest in PSP@1 by {bibtex['value']:.1f} points on Bibtex "
        f"(95 % interval {bibtex['low']:.1f} to {bibtex['high']:.1f})",
        f", {delicious['value']:.1f} on Delicious ({delicious['value'] - half:.1f} to {delicious['value'] + half:.1f})",
        f"and {gutenberg['value']:.1f} on Gutenberg, split 0 ({gutenberg['low']:.1f} to {gutenberg['high']:.1f})",
        f"as the paper reports for EURLex-4K, but on TIB it trails by {-tib['value']:.1f} "
        f"({-tib['high']:.1f} to {-tib['low']:.1f})",
    ]


def rare_labels(root) -> list[str]:
    rows = recorded(root, "beyond/which_metric_sees_the_tail", DELICIOUS, "kept")
    rows = rows[rows["labels"] == 500]
    kept = (rows["value"].astype(float) / rows["full"].astype(float)).groupby([rows["metric"], rows["k"]]).first()
    return [
        f"On Delicious, split 0, one-vs-rest trained on the 500 most frequent of 983 labels keeps "
        f"{100 * kept['P', 5]:.0f} % of its P@5, but only {100 * kept['macro-F1', 5]:.0f} % of its macro-F1@5",
        "P@5 may hardly notice them",
    ]


def calibration(root) -> list[str]:
    """What the claims' table says of table 5: "clear in 6 of 12 (...)"."""
    claims = pd.read_csv(root / "figures/calibration/table5_isotonic_platt-claims.csv")
    (row,) = claims[claims["TIB"].str.startswith("clear in", na=False)].to_dict("records")
    names = ("TIB", "Bibtex", "Delicious, split 0", "Gutenberg, split 0")
    counts = [re.match(r"clear in (\d+ of \d+) \(", row[name])[1] for name in names]
    return [
        f"is clearly lower in {counts[0]} comparisons on TIB, {counts[1]} on Bibtex, {counts[2]} on Delicious/0 (split 0) "
        f"and {counts[3]} on Gutenberg/0",
    ]


def spelled(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items() if number)


def claims(root) -> list[str]:
    """The rows of the table, of each document how its claims came out by each kind of evidence; and the rest in words."""
    rows, checks, untested = [], 0, 0
    fails, open_ = evidence.PARTLY
    for paper in known():
        found = evidence.of_paper(paper)
        number = found.groupby(["section", "outcome"]).size()
        assert not found.loc[found["rests"] != "none", "outcome"].eq("").any(), f"{paper}: a claim without a verdict"
        data, print_, proof, drawn, check, nothing = (
            number.get(name, pd.Series(dtype=int)) for name in evidence.SECTIONS.values()
        )
        if paper.startswith("schultheis"):  # read in part only, so not beside the others
            continue
        checks, untested = checks + check.sum(), untested + nothing.sum()
        words = {"holds": "hold", open_: "partly", "never against": "never against", fails: "mixed"}
        words |= {"does not hold": "fail", "cannot tell": "open"}
        measured = spelled({word: data.get(name, 0) for name, word in words.items()})
        words = {"holds": "agree", "does not hold": "fail", "cannot tell": "open"}
        read = spelled({word: print_.get(name, 0) for name, word in words.items()})
        words = {"holds": "hold", "does not hold": "fail"}
        computed = {word: proof.get(name, 0) for name, word in words.items()}
        computed |= {"simulated": drawn.get("holds", 0), "open": drawn.get("cannot tell", 0)}
        assert "cannot tell" not in proof, paper
        assert "does not hold" not in drawn, paper
        name = papers.DOCUMENTS[paper][0].removeprefix("The ")
        rows.append(f"| [{name}](../notebooks/{paper}/claims.ipynb) | {measured} | {read} | {spelled(computed)} |")
    return [*rows, f"{checks} more are checks of definitions and repeated numbers; {untested} cannot be tested here"]


def coverage(root) -> list[str]:
    rows = recorded(root, "coverage/table2_table3", DELICIOUS, "ours").set_index("rule")
    new, old = rows.loc["COV-PLT"], rows.loc["PLT"]
    return [
        f"On Delicious, split 0, COV-PLT is right at least once for {new['Cov@1 (test labels)']:.0f} % of the labels at k = 1 "
        f"and PLT for {old['Cov@1 (test labels)']:.0f} %, "
        f"but P@1 falls from {old['P@1']:.0f} % to {new['P@1']:.0f} %"
    ]


def benchmarks(root) -> list[str]:
    beside = pd.read_csv(root / "figures/xcrepo/tables_benchmarks-beside.csv")
    beside = beside[beside["k"] == 1]
    first = beside[(beside["dataset"] == "Bibtex") & (beside["metric"] == "P")]
    furthest = (first["ours"] - first["printed"]).abs().max()
    rows = beside[(beside["dataset"] == "Delicious") & (beside["model"] == "PfastreXML")].set_index("metric")
    gap = rows["ours"] - rows["printed"]
    return [
        f"on Bibtex our {len(first)} baselines are within {math.ceil(10 * furthest) / 10} points of the printed P@1",
        f"on Delicious our PfastreXML has {gap['PSP']:.1f} points more PSP@1 than printed and {-gap['P']:.1f} less P@1",
    ]


def audit(root) -> list[str]:
    found = pd.read_csv(root / "figures/beyond/audit-findings.csv")
    slips = (found["judgement"] == "typo").sum()
    return [f"{len(found)} findings in the printed numbers of the five documents, and {slips} of these are slips"]


def test_the_findings_of_the_readme_are_what_the_files_say(root):
    text = section(root, "Findings")
    assert rare_labels(root)[0].partition("labels keeps ")[2].replace("but only ", "but ") in text
    errors = pd.read_csv(root / "figures/calibration/table2_table7.csv").set_index(["dataset", "model"])
    before, after = errors.loc[("TIB", "PLT"), ["ECE", "ECE-I"]]
    assert f"from {before:.1f} to {after:.1f} points" in text
    rows = pd.read_csv(root / "figures/coverage/table2_table3.csv")
    rows = rows.set_index(["dataset", "left", "metric", "k"])["value"]
    (gain, price), (most, dearest) = (
        [rows[name, "COVβ=0.25", metric, 1] for metric in ("coverage (test)", "P")]
        for name in ("Bibtex", "Delicious, split 0")
    )
    assert f"Bibtex gains {gain:.0f} points for {-price:.0f} points of P@1" in text
    assert f"Delicious, split 0, {most:.0f} for {-dearest:.0f}." in text
    gaps = pd.read_csv(root / "figures/jain16/table3_table4.csv").set_index(["left", "right", "metric", "k"])
    for other, leads in (("1-vs-All", 3), ("DiSMEC", 2)):
        ours = gaps.loc[("PfastreXML", other, "PSP", 1)].set_index("dataset")
        ours = ours.drop(["EURLex-4K, printed", "TIB (all records)"], errors="ignore")
        assert ((ours["low"] > 0).sum(), len(ours)) == (leads, 4), other
    known = r"EURLex-4K|99 %|81 %|split 0|500|983|P@5|F1@5|P@1|0\.25|from \S+ to \S+ points"
    known += r"|26 points|for 3 points|31 for 25"
    text = text.replace("macro-F1@5", "").partition("The claims of each")[0]
    assert re.findall(r"\d+", re.sub(known, "", text)) == []


def test_the_picture_of_the_verdicts_is_current():
    image = pytest.importorskip("PIL.Image")
    with image.open(verdicts.PICTURE) as picture:
        assert picture.text["data"] == verdicts.digest(), "python -m docs.verdicts"


def test_what_we_found_is_what_the_files_say(root):
    text = section(root, "What we found", "docs/index.md")
    for row in claims(root):
        assert row in (root / "docs/index.md").read_text(encoding="utf-8"), row
        text = text.replace(" ".join(re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", row).split()), "")
    text = text.replace("(2023, 2024)", "")
    makers = propensities, rare_labels, calibration, coverage, benchmarks, audit
    for words in (words for make in makers for words in make(root)):
        assert words in text, words
        text = text.replace(words, "")
    # No other number: what remains are names.
    text = re.sub(r"Jain et al\. 2016|EURLex-4K|[Mm]acro-F1(@[15])?|PS?P?@[15]", "", text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|\([^)]*(?:png|ipynb)\)|macro-F1", "", text)
    assert re.findall(r"\d+", text) == [], text


@pytest.mark.parametrize("dataset", [BIBTEX, DELICIOUS])
def test_the_results_are_those_of_real_data(root, dataset):
    of_calibration, of_coverage = "calibration/table5_isotonic_platt", "coverage/table2_table3"
    for item in ("beyond/which_metric_sees_the_tail", of_calibration, of_coverage, "xcrepo/tables_benchmarks"):
        rows = pd.read_csv(root / "data/recorded" / item / f"{dataset}.csv")
        rows = rows[rows["table"] == "provenance"].set_index("column")
        assert rows.loc["dataset", "value"] == dataset
        assert "-p folder DIR" in rows.loc["command", "value"]
    data = pd.read_csv(root / "figures/jain16/table3_table4.csv")["data"]
    assert data.str.contains(f"{dataset.title()} (real data, recorded)", regex=False).all()
    assert data.str.startswith("TIB, 8,000 of 17,740 records (real data)").all()


def test_how_much_is_reproduced(root):
    rows = pd.read_csv(root / "notebooks/reproduced.csv")
    extents = Counter(rows[rows["kind"].isin(["figure", "table"])]["extent"])
    assert set(extents) == {"definition", "in part", "on other data", "stand-in", "printed"}
    said = section(root, "Findings")
    found = pd.concat([evidence.of_paper(paper) for paper in known() if not paper.startswith("schultheis")])
    assert f"{evidence.rerun_share(found)} recorded runs." in said
    assert reproduced.sentence(reproduced.read(root / reproduced.LISTING)) in said
    assert [int(number) for number in re.findall(r"\d+", said[said.index("Of the documents'") :])[:6]] == [
        81, 0, *(extents[name] for name in ("in part", "on other data", "stand-in", "definition"))
    ]  # fmt: skip


def test_how_long_the_run_takes(root):
    """The manifest has the seconds on one core of every notebook that takes more than 15: the others take 15 at most."""
    items = tomllib.loads((root / "notebooks/manifest.toml").read_text(encoding="utf-8"))
    usual = [entry for entry in items.values() if not entry.get("long")]
    most = sum(entry.get("seconds", 15) for entry in usual) / 60
    for page in ("README.md", "docs/rerun.md"):
        (high,) = re.findall(r"at most (\d+) minutes on one core", (root / page).read_text(encoding="utf-8"))
        assert abs(int(high) - most) <= 1, (page, most)
