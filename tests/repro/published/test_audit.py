"""The audit: every check finds the error planted for it and is silent on a table that was computed."""

from __future__ import annotations

import importlib
import itertools
import re
from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import xcrepro as xc
from tests.refused import damaged
from xcrepro.__main__ import main
from xcrepro.core.data import registry
from xcrepro.core.errors import DataError, DataMissing
from xcrepro.repro import published
from xcrepro.repro.published import checks
from xcrepro.repro.published.audit import CHECKS, JUDGEMENTS, Book, audit
from xcrepro.repro.published.checks import IDENTITIES, Cell, Row, faults, rounding
from xcrepro.repro.published.results import audit_results

audit_module = importlib.import_module("xcrepro.repro.published.audit")  # as an attribute it is the function
KS = (1, 3, 5)


# ---------------------------------------------------------------- computed rows are clean


def computed(seed: int, ideal: str = "labels", decimals: int = 2) -> dict[tuple[str, int], str]:
    """Every metric of random predictions, in percent, rounded as print is."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(20, 80)), int(rng.integers(8, 40))
    truth = rng.random((n, m)) < rng.random(m) * rng.uniform(0.1, 0.6)
    truth[np.arange(n), rng.integers(0, m, n)] = True
    scores = truth * rng.uniform(0, 1) + rng.random((n, m))
    top = xc.TopK.from_scores(scores, 5)
    weight = 1 + rng.exponential(3, m)
    Y = truth.astype(np.float32)
    values = {
        "P": xc.metrics.precision(Y, top, KS),
        "N": xc.metrics.ndcg(Y, top, KS, ideal=ideal),
        "PSP": xc.metrics.psp(Y, top, KS, inverse_propensity=weight),
        "PSN": xc.metrics.psndcg(Y, top, KS, inverse_propensity=weight),
        "R": xc.metrics.recall(Y, top, KS),
        "Abandonment": xc.metrics.abandonment(Y, top, KS, counts="served"),
        "micro_F1": xc.metrics.micro_f1(Y, top, KS),
        "Cov": xc.metrics.coverage(Y, top, KS, over="test"),
        "macro_P": xc.metrics.macro_precision(Y, top, KS, over="test"),
        "macro_R": xc.metrics.macro_recall(Y, top, KS, over="test"),
        "macro_F1": xc.metrics.macro_f1(Y, top, KS, over="test"),
    }
    cells = {(name, k): f"{100 * v:.{decimals}f}" for name, vs in values.items() for k, v in zip(KS, vs, strict=True)}
    confidence, hit = np.clip(top.scores, 0, 1), np.take_along_axis(Y, top.ids, axis=1)
    for name, k in itertools.product(("ece", "brier"), KS):
        value = getattr(xc.metrics, name)(confidence[:, :k], hit[:, :k])
        cells[{"ece": "ECE", "brier": "Brier"}[name], k] = f"{100 * value:.2f}"
    return cells | {("avg_labels", 0): f"{truth.sum() / n:.2f}"}


def row(cells: dict[tuple[str, int], str], one: float = 100.0) -> Row:
    return Row({where: Cell.of(text) for where, text in cells.items()}, one)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["labels", "k"]), st.sampled_from([1, 2, 4]))
@example(136, "labels", 4)
def test_no_fault_in_computed_results(seed, ideal, decimals):
    cells = computed(seed, ideal, decimals)
    assert faults(row(cells)) == []
    # As a fraction a number has two more decimals, whatever it was printed with.
    places = {where: len(text.partition(".")[2]) + 2 for where, text in cells.items()}
    fractions = {w: f"{float(t) / 100:.{places[w]}f}" if w[0] != "avg_labels" else t for w, t in cells.items()}
    assert faults(row(fractions, 1.0)) == []


# ---------------------------------------------------------------- every identity finds its planted error

PLANTED = [
    ("first_place", {("N", 1): 0.3}, "N@1"),
    ("first_place", {("PSN", 1): -0.3}, "PSN@1"),
    ("first_place", {("Abandonment", 1): 0.5}, "Abandonment@1"),
    ("hits_grow", {("Cov", 5): -60.0}, "Cov@5"),
    ("hits_grow", {("R", 3): -60.0}, "R@3"),
    ("hits_grow", {("macro_R", 5): "0.01"}, "macro_R@5"),
    ("hits_grow", {("P", 1): "60.00", ("P", 3): "19.00"}, "P@3"),
    ("hits_grow", {("Brier", 3): "16.41", ("Brier", 5): "1.57"}, "Brier@5"),
    ("ndcg_bounds", {("N", 3): "7.00"}, "N@3"),
    ("ndcg_bounds", {("N", 5): "3.00"}, "N@5"),
    ("psndcg_bounds", {("PSN", 5): "99.90"}, "PSN@5"),
    ("psndcg_bounds", {("PSN", 3): "2.00"}, "PSN@3"),
    ("abandonment", {("Abandonment", 3): "1.00"}, "Abandonment@3"),
    ("micro_f1", {("micro_F1", 3): 2.0}, "micro_F1@3"),
    ("average_labels", {("avg_labels", 0): "0.50"}, "P@1"),
    ("average_labels", {("avg_labels", 0): "1.20", ("P", 3): "45.00"}, "P@3"),
    ("macro", {("macro_R", 3): "99.99"}, "macro_R@3"),
    ("macro", {("macro_F1", 3): "99.00"}, "macro_F1@3"),
    ("brier_and_error", {("Brier", 3): "0.01", ("ECE", 3): "40.00"}, "Brier@3"),
    ("one_hit_a_place", {("P", 3): "99.99", ("P", 1): "1.00"}, "P@3"),
    ("possible", {("N", 3): "130"}, "N@3"),
    ("possible", {("macro_F1", 5): "100.006"}, "macro_F1@5"),
    ("possible", {("PSP", 1): "-0.1"}, "PSP@1"),
    ("possible", {("avg_labels", 0): "-2"}, "avg_labels"),
]


@pytest.mark.parametrize(("check", "change", "blamed"), PLANTED)
def test_a_planted_error_is_found(check, change, blamed):
    cells = computed(7)
    for where, new in change.items():
        cells[where] = new if isinstance(new, str) else f"{max(0.0, float(cells[where]) + new):.2f}"
    assert blamed in [fault.column for fault in IDENTITIES[check](row(cells))]


@pytest.mark.parametrize("check", sorted(IDENTITIES))
def test_every_identity_has_a_planted_error_and_a_derivation(check):
    assert check in {name for name, *_ in PLANTED}
    assert len(IDENTITIES[check].__doc__) > 90


def test_rounding_is_never_an_error():
    assert rounding("5.30") == pytest.approx((5.295, 5.305))
    assert faults(row({("P", 1): "47.11", ("N", 1): "47.10"})) == []  # both may be 47.105
    assert len(faults(row({("P", 1): "47.12", ("N", 1): "47.10"}))) == 1
    assert faults(row({("P", 1): "60.0", ("P", 3): "20.0"})) == []
    assert faults(row({("P", 1): "0.471", ("N", 1): "0.47"}, 1.0)) == []


def test_the_ndcg_bounds_are_attained():
    # All points have a hit in the first place and none after it: one label each, or five or more.
    given = {("P", 1): "100.00", ("P", 3): "33.33", ("P", 5): "20.00"}
    for n3 in ("100.00", "46.93"):
        assert faults(row({**given, ("N", 3): n3})) == []
    (fault,) = checks.ndcg_bounds(row({**given, ("N", 3): "46.80"}))
    low, high = map(float, fault.expected.split(" to "))
    assert (low, high) == pytest.approx((46.92, 100.0), abs=0.02)


# ---------------------------------------------------------------- tables, documents, sentences


def frame(text: str) -> pd.DataFrame:
    """A record from lines ``source dataset method/variant metric@k=printed ...``; ``_`` is a blank, ``#2`` its
    second row, ``-`` no method."""
    rows = []
    for line in text.replace("|", "\n").strip().splitlines():
        source, dataset, method, *cells = line.split()
        name, _, variant = method.replace("_", " ").partition("/")
        name, _, number = name.partition("#")
        for cell in cells:
            where, _, printed = cell.partition("=")
            metric, _, k = where.partition("@")
            k = int(k) if k else pd.NA
            rows.append((source, int(number or 1), dataset, name if name != "-" else "", variant, metric, k, printed))
    columns = ["source", "row", "dataset", "method", "variant", "metric", "k", "printed"]
    return pd.DataFrame(rows, columns=columns).astype({"k": "Int64"})


def run(check: str, text: str) -> list:
    return list(CHECKS[check](Book(frame(text))))


def recalibrated(before: str, after: str) -> str:
    return f"d:t D M/none {before} | d:t D M/isotonic {after}"


SHIFTED = "Brier@1=30.69 ECE@1=43.21 ACE@1=43.21"
COPIED = "xcrepo:B B M P@1=44.70 P@3=39.70 P@5=36.10 N@3=42.13 N@5={} | "
COPIED += "xcrepo:A A M P@1=70.20 P@3=50.64 P@5=39.71 N@3=42.13 N@5=40.52"
BRIERS = "\n".join(f"d:t D M{i}/isotonic Brier@5={b}" for i, b in enumerate(("15.04", "15.40", "15.35", "15.81", "{}")))
COUNTS = "d:t D - n_train={} n_test={} n_labels={} avg_labels_per_point={} avg_points_per_label={}"
AMAZON = "294,805", "134,835", "131,073"
AMAZON_3M = "2,812,281", "742,507", "1,717,899", "36.17", "31.64"
VERSIONS = "a:t D - n_train=15,539 n_test=3,809 n_labels=3,993 | b:t D - n_train=15449 n_test=3865 n_labels=3956"
BINS = "reeval:table2 D - n_labels={} labels_1-9=60 labels_10-99=20 labels_100-999=9 labels_1000+=1"
BINS += "| reeval:sec4 D - pct_labels_with_1_9_train_instances={}"
PRECISION = "reeval:t D M P@1=94.56 P@3=79.78 P@5=64.59 N@5=72.00 | xcrepo:D D M P@1=94.56 P@3=79.82 P@5=64.61 N@5={}"


def f1_rows(*averages: float) -> str:
    """A model an average number of labels a point, with the micro-F1 that follows from it."""
    lines = []
    for i, average in enumerate(averages):
        cells = [f"P@{k}={p}.00 micro_F1@{k}={2 * k * p / (k + average):.2f}" for k, p in ((1, 80), (3, 70), (5, 60))]
        lines.append(f"reeval:table3 EURLex-4K M{i} {' '.join(cells)}")
    return "\n".join(lines)


def lines_of_n3(at: int | None = None, slip=None) -> str:
    """Fourteen rows whose N@3 is linear in P@1 and P@3, one of them changed."""
    rng, lines = np.random.default_rng(3), []
    for i in range(14):
        p1 = 60 + 2 * i + rng.random()
        p3 = 0.7 * p1 + rng.random()
        n3 = f"{0.3 * p1 + 0.75 * p3:.2f}"
        n3 = slip(n3) if i == at else n3
        lines.append(f"xcrepo:D D M{i} P@1={p1:.2f} P@3={p3:.2f} N@1={p1:.2f} N@3={n3}")
    return "\n".join(lines)


def halves(off: float) -> str:
    """Fourteen rows whose N is linear in P, all N of one shifted: at 1 by -1, at 3 and 5 by ``off``."""
    rng, lines = np.random.default_rng(4), []
    for i in range(14):
        p1, p3, p5 = 60 + 2 * i + rng.random(), 42 + 1.5 * i + rng.random(), 30 + i + rng.random()
        shift = (-1.0, off) if i == 5 else (0.0, 0.0)
        n = p1 + shift[0], 0.3 * p1 + 0.75 * p3 + shift[1], 0.25 * p1 + 0.3 * p3 + 0.5 * p5 + shift[1]
        lines.append(f"xcrepo:D D M{i} P@1={p1:.2f} P@3={p3:.2f} P@5={p5:.2f} " + " ".join(
            f"N@{k}={v:.2f}" for k, v in zip(KS, n, strict=True)))  # fmt: skip
    return "\n".join(lines)


def one_of_two(n3: str, n5: str) -> str:
    """Fourteen rows about FastXML's on Wiki10-31K, whose two nDCG are given; the true ones are linear in P."""
    rng, lines = np.random.default_rng(5), []
    for i in range(14):
        p1, p3, p5 = (
            (83.03, 67.47, 57.76) if i == 0 else (80 + 6 * rng.random(), 66 + 6 * rng.random(), 55 + 6 * rng.random())
        )
        true = {"n3": 0.262 * p1 + 0.732 * p3, "n5": 0.17 * p1 + 0.26 * p3 + 0.55 * p5}
        texts = (n3, n5) if i == 0 else ("{n3:.2f}", "{n5:.2f}")
        cells = f"P@1={p1:.2f} P@3={p3:.2f} P@5={p5:.2f} N@1={p1:.2f} "
        lines.append(f"xcrepo:D D M{i} {cells}" + "N@3={} N@5={}".format(*(text.format(**true) for text in texts)))
    return "\n".join(lines)


POINTS = "xcrepo:dataset-table D - n_train=100 n_test=50 n_labels=9 | c:t D - n_train={} n_test={} n_labels={}"

# Check, record, and of each finding what must be among its columns; after "why:" in its reason.
CASES = [
    ("same_cell", "c:table5 D M ECE@5=0.50 | c:table7 D M ECE@5=0.05 ACE@5=0.36", [("0.05", "c:table7")]),
    ("same_cell", "c:table5 D M ECE@5=0.50 | c:table7 D M ECE@5=0.5", []),
    ("recalibrated", recalibrated("Brier@1=20.00 P@1=50.00", "Brier@1=19.90"), []),
    ("recalibrated", recalibrated("Brier@1=20.00 P@1=50.00", "Brier@1=22.00"), [("at most 20.00",)]),
    # Above P(1 - P) = 9.
    ("recalibrated", recalibrated("Brier@1=20.00 P@1=90.00", "Brier@1=19.90"), [("why:P(1 - P) = 9",)]),
    ("recalibrated", recalibrated(SHIFTED, "Brier@1=16.00"), [("at most 12.03",)]),
    ("recalibrated", recalibrated(SHIFTED, "Brier@1=11.60"), []),
    # On A this nDCG is impossible, so A's is the copy.
    ("copied", COPIED.format("40.52"), [("A", "N@3"), ("A", "N@5")]),
    ("copied", COPIED.format("40.51"), []),
    ("labels_to_hit", "xcrepo:EURLex-4K EURLex-4K M P@1=90.00 P@3=80.00 P@5=70.00", []),
    ("labels_to_hit", "xcrepo:EURLex-4K EURLex-4K M P@5=99.00 P@10=63.00", [("P@10",)]),
    ("far_from_sisters", BRIERS.format("1.57"), [("1.57", "why:15.70")]),
    ("far_from_sisters", BRIERS.format("13.00"), []),
    ("micro_f1_average", f1_rows(5.3, 5.3, 5.3), []),
    ("micro_f1_average", f1_rows(5.3, 5.3, 5.33), [("M2", "other variant")]),
    ("micro_f1_average", f1_rows(5.4, 5.4, 5.4), [("all rows", "definition")]),
    ("points_per_label", COUNTS.format(*AMAZON, "2.29", "5.15"), []),
    (
        "points_per_label",
        COUNTS.format(*AMAZON, "5.15", "2.29"),
        [("avg_labels_per_point, avg_points_per_label", "typo")],
    ),
    ("points_per_label", COUNTS.format(*AMAZON_3M) + "| e:t D - n_train=1,717,899", [("n_train, n_labels", "typo")]),
    ("points_per_label", COUNTS.format(*AMAZON, "2.28", "5.15"), [("rounding",)]),
    ("points_per_label", COUNTS.format(*AMAZON, "2.35", "5.15"), [("definition",)]),
    ("mixed_versions", VERSIONS + "| c:t D - n_train=15,539 n_test=3,809 n_labels=3,956", [("c:t", "3,956")]),
    ("mixed_versions", VERSIONS + "| c:t D - n_train=15,539 n_test=3,809 n_labels=3,993", []),
    ("label_bins", BINS.format("100", "66.67"), [("60.00", "definition")]),
    ("label_bins", BINS.format("100", "60"), []),
    ("label_bins", BINS.format("80", "75"), [("at most 80", "typo")]),
    # 153,025 test points and 670,091 labels.
    ("coverage_denominator", "c:t Amazon-670K M Cov@1=9.00 P@1=42.80", []),
    ("coverage_denominator", "c:t Amazon-670K M Cov@1=14.56 P@1=42.80", [("definition",)]),
    ("out_of_line", lines_of_n3(), []),
    ("out_of_line", lines_of_n3(5, lambda text: f"{text[0]}{(int(text[1]) + 4) % 10}{text[2:]}"), [("M5", "N@3")]),
    # Far off, but no slip explains it: silence.
    ("out_of_line", lines_of_n3(5, lambda text: f"{float(text) - 33.37:.2f}"), []),
    ("same_precision", PRECISION.format("86.66"), [("72.00", "definition", "why:can be that one")]),
    ("same_precision", PRECISION.format("72.50"), []),
    ("identities", "c:t D M P@1=93.0 P@3=76.6 P@5=58.1 N@1=58.1", [("93.0", "typo", "why:this row's P@5")]),
    ("identities", "c:t D M P@1=56.63 N@1=56.60", [("rounding",)]),
    # However small the gap, one of the two is wrong.
    ("identities", "c:t D M P@1=35.05 N@1=34.77", [("typo", "why:does not say")]),
    ("identities", "c:t D M P@1=35.05 N@1=35.03", [("typo", "why:does not say")]),
    ("identities", halves(0.0), [("typo", "why:N@3 within 0.00")]),
    ("identities", halves(-1.0), [("other variant", "why:two runs")]),
    # As far off, but to the other side than N@1.
    ("identities", halves(1.0), [("typo",)]),
    # Each possible alone, not both: the one that the other rows do not predict is blamed.
    ("identities", one_of_two("75.35", "{n5:.2f}"), [("N@3", "75.35", "why:N@5 stays")]),
    ("identities", one_of_two("{n3:.2f}", "61.50"), [("N@5", "61.50")]),
    ("points_per_label", COUNTS.format(12920, 3185, 983, "19.03", "311.61"), [("typo", "why:last digit")]),
    ("points_per_label", COUNTS.format(12920, 3185, 983, "19.05", "311.61"), [("definition",)]),
    (
        "other_points",
        "xcrepo:dataset-table D - n_train=100 n_test=50 n_labels=9 | c:t D - n_train=90 n_test=40 n_labels=9",
        [("c:t", "90, 40, 9", "100, 50, 9", "other variant", "why:-10 and -10")],
    ),
    (
        "other_points",
        "xcrepo:dataset-table D - n_train=100 n_test=50 n_labels=9 | c:t D - n_train=9 n_test=50 n_labels=100",
        [],
    ),
]


@pytest.mark.parametrize(("check", "record", "wanted"), CASES)
def test_a_check_finds_what_it_should_and_nothing_else(check, record, wanted):
    found = run(check, record)
    assert len(found) == len(wanted)
    for finding, texts in zip(found, wanted, strict=True):
        for text in texts:
            assert text.removeprefix("why:") in finding.why if text.startswith("why:") else text in astuple(finding)


# ---------------------------------------------------------------- what is found once, and kept


KEPT = ("owners", "unlike_itself", "macro_recall", "psndcg_definitions", "listed_twice", "sentences")


@pytest.fixture(scope="module")
def kept():
    return list(audit_module._kept())


def printed(cells, metric: str, method: str, ks=KS, dataset: str = "") -> list[float]:
    """The numbers of one method among the cells that a finding rests on."""
    values = {c[5]: float(c[6]) for c in cells if c[2] == method and c[4] == metric and c[1].startswith(dataset)}
    return [values[str(k)] for k in ks]


def test_what_is_kept_is_whole(kept):
    book = Book(xc.published.find())
    assert {finding.check for finding, _ in kept} == set(KEPT)
    assert all(finding.judgement in JUDGEMENTS and cells and cells <= book.printed for finding, cells in kept)
    assert not set(xc.published.record.kept("findings_rest_on")["finding"]) - set(map(str, range(1, len(kept) + 1)))


@pytest.mark.parametrize("number", range(32))
def test_a_finding_goes_with_any_cell_that_it_rests_on(kept, number):
    finding, cells = kept[number]
    book = Book(frame("a:t D M P@1=1"))
    book.printed = set(cells)
    assert finding in CHECKS[finding.check](book)
    book.printed.remove(min(cells))
    assert finding not in CHECKS[finding.check](book)


def test_rows_are_those_of_another_owner(kept):
    """The distances of the reasons, and that each row but the one by elimination is nearer to its owner than to itself."""
    table = xc.published.find(dataset="EURLex-4K", source=["xcrepo", "jain16"], metric=["PSP", "PSN"])
    table = (
        table[table["printed"] != ""].set_index(["source", "method", "metric", "k"])["value"].unstack(["metric", "k"])
    )
    page, paper = table.loc["xcrepo:EURLex-4K"], table.drop("xcrepo:EURLex-4K").droplevel("source")
    for finding, _ in (one for one in kept if one[0].check == "owners"):
        owner, mine = finding.expected.partition("the row of ")[2].partition(",")[0], page.loc[finding.row]
        away = ((paper - mine).abs() / paper.clip(lower=mine, axis=1)).max(axis=1)
        assert f"for {owner} (at most {100 * away[owner]:.1f} % away)" in finding.why
        if finding.row in away:
            assert away.idxmin() == owner
            assert away[finding.row] > max(0.05, 3 * away[owner])
            assert f"for {finding.row} ({100 * away[finding.row]:.0f} % away)" in finding.why


def test_rows_unlike_themselves(kept):
    rows = xc.published.find(source="xcrepo", metric=["P", "PSP"], k=[1, 3, 5])
    table = rows.set_index(["dataset", "method", "row", "metric", "k"])["value"].unstack(["metric", "k"])
    for finding in (f for f, _ in kept if f.check == "unlike_itself"):
        part = table.loc[finding.dataset].droplevel("row")
        part = part[part["P", 1] >= part["P", 1].max() / 2]
        ratio = (part["PSP"] / part["P"]).dropna(how="all")
        own, reach = ratio.loc[finding.row], ratio[1].drop(finding.row).dropna() * part.loc[finding.row, ("P", 1)]
        assert finding.expected.startswith(f"{reach.min():.2f} to {reach.max():.2f} at 1")
        times = sorted(own[k] / ratio[k].median() for k in (1, 5))
        assert "{:.2f} to {:.2f} times".format(*times) in finding.why


def test_sentences_against_the_numbers_they_rest_on(kept):
    """The numbers of the reasons that are worked out, from the cells; those that are only cited are cells themselves."""
    found = {(f.document, f.column): (f, cells) for f, cells in kept if f.check == "sentences"}
    finding, cells = found["jain16", "PSP"]
    for dataset, word in (("Ads-9M", "{:.2f} to"), ("AmazonCat-13K", "to {:.2f}")):
        methods = {c[2] for c in cells if c[1] == dataset} - {"PfastreXML"}
        best, *rivals = (printed(cells, "PSP", m, dataset=dataset) for m in ("PfastreXML", *methods))
        assert all(word.format(b - max(r)) in finding.expected for b, *r in zip(best, *rivals, strict=True))
    finding, cells = found["coverage", "P, PSP, Cov at 1, 3, 5"]
    (p,), (cov,) = (printed(cells, metric, "COV-PLT", (5,)) for metric in ("P", "Cov"))
    entry = registry.get("AmazonCat-13K")
    hits = entry.n_test * 5 * p / (cov * entry.n_labels)
    assert f"are {hits:.0f} hits" in finding.why
    assert f"f = {np.exp(-hits):.0e} by" in finding.why
    assert f"keeps {1 / (1 + hits):.2f}," in finding.why
    finding, _ = found["calibration", "P@3"]
    table = xc.published.find(source="calibration:table6", metric="P", k=3)
    change = table.pivot_table(index=["dataset", "method"], columns="variant", values="value")
    change = change[["isotonic-separate", "platt-separate"]].sub(change["none"], axis=0).stack().abs().sort_values()
    assert (len(change) - 1, f"{change.iloc[-2]:.2f}", f"{change.iloc[-1]:.2f}") == (19, "0.47", "1.88")
    assert "0.47 in 19 rows and 1.88 here" in finding.why
    finding, cells = found["xcrepo", "labels"]
    assert all(c[6] in finding.expected for c in cells)
    finding, cells = found["jain16", "sizes"]
    assert all(c[6] in finding.why for c in cells)


def test_two_definitions_in_one_table(kept):
    """The quotients of the reasons, and that the sum up to k excludes the rows that are said to be excluded."""
    for finding, _ in (one for one in kept if one[0].check in ("psndcg_definitions", "listed_twice")):
        lines = Book(xc.published.find(source="xcrepo", dataset=finding.dataset)).tables["xcrepo", finding.dataset]
        quotient = {}
        for line in lines:
            first, plain, discounted = (line.cell(*w) for w in (("PSP", 1), ("PSP", 5), ("PSN", 5)))
            if first and plain and discounted and abs(plain.value - first.value) >= 0.5:
                quotient.setdefault(line.label, []).append(
                    (discounted.value - first.value) / (plain.value - first.value)
                )
        if finding.check == "listed_twice":
            assert "is {:.2f} and {:.2f}".format(*quotient["Parabel"]) in finding.why
            continue
        few = finding.row.split(", ")
        sides = [sorted(q for name, (q, *_) in quotient.items() if (name in few) == some) for some in (True, False)]
        assert [f"{side[0]:.2f} to {side[-1]:.2f}" for side in sides] == [finding.printed, finding.expected[:12]]
        assert sides[0][-1] < sides[1][0] or sides[1][-1] < sides[0][0]
        if "could not be printed" in finding.why:
            out = [x.label for x in lines if x.label in quotient and not checks.constant_psndcg_fits(x.row)]
            assert {"DiSMEC", "AnnexML", "ProXML"} <= set(out)


def test_macro_recall_equal_to_coverage(kept):
    for finding, cells in (one for one in kept if one[0].check == "macro_recall"):
        recall, coverage = (printed(cells, metric, "DiSMEC") for metric in ("macro_R", "Cov"))
        means = [f"at k = {k} their mean is {r / c:.2f}" for k, r, c in zip((1, 3), recall, coverage, strict=False)]
        assert f"({'; '.join(means)})" in finding.why
        assert recall[2] == coverage[2] == float(finding.printed)
    average, n = float(registry.printed("AmazonCat-13K", "avg_labels_per_point")), registry.get("AmazonCat-13K")
    (full, cells), (head, of_head) = (one for one in kept if one[0].check == "macro_recall")
    (p,), (cov,) = (printed(cells, metric, "DiSMEC", (5,)) for metric in ("P", "Cov"))
    hits, scale = 5 * p / 100, n.n_test / n.n_labels
    never, found = (average - hits) / (100 - cov) * 100 * scale, hits / cov * 100 * scale
    assert f"The {average - hits:.2f} positives" in full.why
    assert f"{never:.0f} test positives a label, against {found:.0f}" in full.why
    assert f"{5 * printed(of_head, 'P', 'DiSMEC', (5,))[0] / average:.0f} % of all" in head.why


def test_counts_of_the_marks(kept):
    rows = xc.published.find(source="xcrepo").query("method != '' and printed != ''")
    rows = rows.drop_duplicates(["source", "method", "row"])
    bare, eight = (f for f, _ in kept if f.column == "mark")
    count = rows[rows["variant"] == ""]["method"].value_counts()
    assert f"{count.sum()} rows have no mark" in bare.why
    assert all(f"{method} {number}" in bare.why for method, number in count.items())
    for (method, mark), number in rows[rows["variant"].isin(["†", "‡"])].groupby(["method", "variant"]).size().items():
        if method in ("AttentionXML", "X-Transformer"):
            assert f"{method} {mark} on {number}" in eight.why


# ---------------------------------------------------------------- the record itself


@pytest.fixture(scope="module")
def found():
    return audit()


def test_every_check_derives_itself_and_is_tested():
    assert {name for name, *_ in CASES} | set(KEPT) == set(CHECKS)
    assert min(len(check.__doc__) for check in CHECKS.values()) > 60


def test_the_audit_is_stable(found, root):
    path = root / "tests" / "repro" / "published" / "audit.csv"
    columns = ["check", "judgement", "table", "dataset", "row", "column", "printed", "expected"]
    assert found[columns].to_csv(index=False, lineterminator="\n") == path.read_text(encoding="utf-8"), (
        f"the findings changed; write found[columns].to_csv to {path} if they should"
    )


def test_form(found):
    assert " ".join(found.columns) == "document table dataset row column printed expected check judgement why"
    assert set(found["judgement"]) <= set(JUDGEMENTS)
    assert {name for names in found["check"] for name in names.split(", ")} <= {*CHECKS, *IDENTITIES}
    # Each printed cell once; two tables may print one cell with two numbers.
    assert not found.duplicated(["document", "dataset", "row", "column", "printed"]).any()
    assert not found.map(lambda text: text == "" or text != text.strip()).any().any()
    tables = {name for cell in found["table"] for name in cell.split(", ")}
    assert tables <= set(xc.published.sources())


def test_a_cell_of_two_checks_stands_once_with_both_reasons(found):
    (cell,) = found[
        (found["dataset"] == "Wikipedia-500K") & (found["row"] == "DiSMEC") & (found["column"] == "N@3")
    ].itertuples()
    assert cell.check == "ndcg_bounds, copied"
    assert cell.expected == "52.09 to 89.33; its own, not Amazon-670K's"
    assert "whichever normaliser" in cell.why
    assert "digit" in cell.why


def test_of_two_cells_the_odd_one_is_blamed(found):
    """Wiki10-31K, FastXML: N@5 is right, as thirteen other rows say; N@3 is not."""
    cells = found[(found["dataset"] == "Wiki10-31K") & (found["row"] == "FastXML")]["column"]
    assert set(cells) == {"N@1", "N@3"}


def test_what_two_documents_print(found):
    table = published.shared()
    assert set(table["first"]) | set(table["second"]) == {"xcrepo", "reeval", "calibration", "jain16", "coverage"}
    for row in table.sample(20, random_state=0).itertuples():
        for document, text in ((row.first, row[7]), (row.second, row[8])):
            cells = published.find(dataset=row.dataset, method=row.method, metric=row.metric, k=row.k, source=document)
            assert text in cells["printed"].tolist()
    assert (table.loc[table["method"].eq("ML-CSSP") & table["metric"].eq("PSP"), "said"] == "owners").all()
    part = published.find(dataset="Bibtex")
    assert published.shared(part).empty  # the page alone has it


def test_what_the_issue_asks_for(found):
    wrong = found[found["judgement"] == "typo"]
    cells = wrong[wrong["check"] != "owners"].drop_duplicates(["document", "dataset", "row", "column"])
    assert len(cells) >= 8
    block = found[found["check"] == "owners"]
    assert len(block) == 10
    assert set(block["dataset"]) == {"EURLex-4K"}
    assert set(found["document"]) == {"xcrepo", "reeval", "calibration", "jain16", "coverage"}


def test_findings_come_from_the_record_not_from_a_list():
    record = xc.published.find(dataset="AmazonCat-13K", source="coverage:table1")
    record.loc[(record["metric"] == "N") & (record["k"] == 1), "printed"] = "93.0"
    assert "first_place" not in set(audit(record)["check"])
    record.loc[(record["metric"] == "P") & (record["k"] == 3), "printed"] = "20.0"
    assert {"hits_grow", "ndcg_bounds"} & set(audit(record)["check"])


# ---------------------------------------------------------------- somebody's own results


@pytest.fixture
def write(tmp_path):
    def to(text: str):
        path = tmp_path / "results.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return to


def tidy(cells, scale=1.0):
    lines = [f"D,M,{m},{k or ''},{float(t) * scale if m != 'avg_labels' else t}" for (m, k), t in cells.items()]
    return "\n".join(["dataset,method,metric,k,value", *lines])


def test_own_results_tidy_and_wide(write, capsys):
    cells = {w: t for w, t in computed(11).items() if w[0] != "Abandonment"}
    assert audit_results(write(tidy(cells))).empty
    assert main(["audit", str(write(tidy(cells)))]) == 0
    cells["N", 1] = f"{float(cells['N', 1]) + 5:.2f}"
    path = write(tidy(cells))
    assert audit_results(path)["column"].tolist() == ["N@1"]
    assert main(["audit", str(path)]) == 1
    assert re.search(r"D / M: N@1 = .* \[first_place\]", capsys.readouterr().out)
    wide = write("method,P@1,nDCG@1,PSP@1,PSnDCG@1,served@1,hours\nM,0.5,0.5,0.20,0.25,0.5,3\nO,.4,-,.1,,.4,\n")
    assert audit_results(wide)[["method", "column", "expected"]].values.tolist() == [["M", "PSN@1", "0.20"]]


@pytest.mark.parametrize(
    "text",
    [
        "method,P@1,Foo@1,hours\nM,0.5,0.9,3\n",
        "method,metric,k,value\nM,P,1,0.5\nM,Foo,1,0.9\nM,hours,,3\n",
    ],
)
def test_what_was_not_understood_is_named(write, capsys, text):
    path, others = write(text), ["Foo@1", "hours"]
    assert audit_results(path).attrs == {"checked": ["P@1"], "not checked": others}
    assert main(["audit", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "nothing found in P@1"
    assert said[1].startswith("not checked, because no metric of these names is known: Foo@1, hours")
    assert main(["audit", str(write("method,P@1,P@3\nM,0.5,0.4\n"))]) == 0
    assert capsys.readouterr().out == "nothing found in P@1, P@3\n"


def test_own_results_are_fractions_or_percent(write):
    """Two of three places can hit at most: P@3 of 0.9 is too much for a fraction beside 0.1, 0.9 % is not."""
    table = "method,P@1,P@3\nM,0.10,0.90\n"
    assert audit_results(write(table))[["method", "column", "expected"]].values.tolist() == [
        ["M", "P@3", "at most 0.7017"]
    ]
    found = audit_results(write(table + "N,50.0,40.0\n"))  # 0.9 % is possible, but it is rather 0.9
    assert found[["method", "column", "check"]].values.tolist() == [["M", "P@3", "one unit in a file"]]
    assert audit_results(write("method,P@1,P@3\nM,0.10,1.20\nN,50.0,40.0\n")).empty


@pytest.mark.parametrize(
    ("name", "printed"),
    [("P@1", "-5"), ("nDCG@3", "130"), ("PSP@1", "130"), ("R@5", "130"), ("macro-F1@5", "130"), ("micro-F1@5", "-1"),
     ("coverage@5", "101"), ("PSnDCG@5", "-0.1"), ("ECE@5", "100.5"), ("served@1", "-1")],
)  # fmt: skip
def test_what_no_share_can_be_is_found_first_of_all(write, name, printed):
    found = audit_results(write(f"method,P@2,{name}\nM,2.0,{printed}\n"))
    assert found.iloc[0][["check", "printed"]].tolist() == ["possible", printed]


def test_a_column_twice_is_no_table(write):
    for header in ("metric,k,value,value", "metric,k,K,value", "method,method,P@1"):
        text = header + "\n" + ",".join(["P", "1", "1", "2"][: header.count(",") + 1]) + "\n"
        with damaged("results.csv", 1):
            audit_results(write(text))


def test_own_results_of_the_package(write):
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 20)) < 0.2).astype(np.float32)
    Y[:, 0] = 1
    top = xc.TopK.from_scores(rng.random((60, 20)), 5)
    table = xc.evaluate(Y, top, inverse_propensity=1 + rng.random(20))
    assert audit_results(write(table.to_csv(index=False))).empty


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "line 1: found columns a, b"),
        ("", r"line 1: found columns \(none\)"),
        ("method,P@1\nM,x\n", "line 2: found P@1 'x', expected a number"),
        ("metric,k,value\nP,1,0.5\nP,1,0.6\n", "line 3: found P@1 a second time"),
        ("metric,k,value\nP,one,0.5\n", "line 2: found k 'one'"),
        ("metric,k,value\nP,1\n", "line 2: found 2 fields, expected 3"),
        ("metric,k,value\nhours,,3\n", "no metric that is checked"),
    ],
)
def test_own_results_with_faults_in_the_file(write, capsys, text, message):
    path = write(text)
    with pytest.raises(DataError, match=message):
        audit_results(path)
    assert main(["audit", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_own_results_missing(tmp_path):
    with pytest.raises(DataMissing, match="no such"):
        audit_results(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("method,P@1\nM\xfcller,50\n".encode("latin-1"), "no UTF-8.*CSV UTF-8"),
        ("method,P@1\na,50\n".encode("utf-16"), "no UTF-8"),
        (b"method,P@1\na\0,50\n", "line 2: found a null byte"),
        (b"method,P@1\na,1e99999999999999999999\n", "a number"),
        (b"method,P@1\na,1e400\n", "a number"),
        (b"method,ECE@1,Brier@1\na,1e308,0.5\n", "a number"),
    ],
)
def test_a_spreadsheets_file_is_named(tmp_path, content, said):
    (tmp_path / "r.csv").write_bytes(content)
    with pytest.raises(DataError, match=said):
        audit_results(tmp_path / "r.csv")


def test_bounds_by_hand():
    """P@1 = 1 and P@3 = 1/3: the one hit is in the first place, so nDCG@3 is 1 with one label, 1 / 2.131 with three."""
    one_hit = Row({("P", 1): Cell.of("100.00"), ("P", 3): Cell.of("33.33")})
    assert np.round(checks.discounted_bounds(one_hit, ("N", 3), []), 1).tolist() == [46.9, 100.0]
    row = Row({("P", 1): Cell.of("93.0"), ("P", 3): Cell.of("78.9")})
    assert np.round(checks.constant_ndcg(row, 3), 1).tolist() == [80.0, 83.6]
    low, high = checks.implied_average(Cell.of("83.44"), Cell.of("26.50"), 1)
    assert (round(low, 3), round(high, 3)) == (5.296, 5.299)


def test_the_cells_of_a_column():
    several = [("PSP", 1), ("PSP", 3), ("PSN", 1), ("PSN", 3)]
    assert audit_module._cells_of("PSP, PSN at 1, 3") == several
    assert audit_module._cells_of("n_labels") == [("n_labels", 0)]


# ---------------------------------------------------------------- what it cannot see


def slipped(kind, cells, rng):
    """{line: what is printed instead} of one slip in a row's cells; None where the row has no room for it."""
    at = cells.index[rng.integers(len(cells))]
    printed = cells.loc[at, "printed"]
    value, digits = float(printed), len(printed.partition(".")[2])
    if kind == "P@1 and P@5 exchanged":
        ends = cells[(cells["metric"] == cells.loc[at, "metric"]) & cells["k"].isin([1, 5])]["printed"]
        return dict(zip(ends.index, ends[::-1], strict=True)) if ends.nunique() == 2 else None
    if kind == "first digits exchanged":
        return {at: printed[1] + printed[0] + printed[2:]} if value >= 10 and printed[0] != printed[1] else None
    last = 3 * 10.0**-digits * (1 if int(printed[-1]) < 7 else -1)
    new = value + {"10 more": 10, "1 more": 1, "1 less": -1, "3 in the last digit": last}[kind]
    return {at: f"{new:.{digits}f}"} if 0 < new < 100 else None


SLIPS = ("P@1 and P@5 exchanged", "first digits exchanged", "10 more", "1 more", "1 less", "3 in the last digit")


def seen_of(number: int) -> dict[str, int]:
    """How many single slips of each kind the audit sees, in P, N, PSP and PSN of the page's tables; docs/audit.md has 60's."""
    rng = np.random.default_rng(0)
    printed = published.find(source="xcrepo", metric=["P", "N", "PSP", "PSN"])
    parts = [
        part for _, part in printed[printed["printed"] != ""].reset_index(drop=True).groupby("dataset", sort=False)
    ]

    def found(part) -> set:
        return {*map(tuple, audit(part)[["row", "column", "printed"]].to_numpy())}

    known, seen = [found(part) for part in parts], dict.fromkeys(SLIPS, 0)
    for kind in SLIPS:
        new = []
        while len(new) < number:
            at = rng.integers(len(parts))
            part = parts[at].copy()
            cells = slipped(kind, part[part["row"] == rng.choice(part["row"].unique())], rng)
            if cells is not None:
                part.loc[[*cells], "printed"] = [*cells.values()]
                part.loc[[*cells], "value"] = [*map(float, cells.values())]
                new.append(bool(found(part) - known[at]))
        seen[kind] = sum(new)
    return seen


def test_the_share_of_slips_that_the_audit_sees():
    large, small = np.split(np.array([*seen_of(5).values()]), 2)
    assert large.min() >= 2
    assert large.sum() >= 10
    assert small.sum() <= 9
