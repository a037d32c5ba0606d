"""The audit: every check finds the error planted for it and is silent on a table that was computed."""

from __future__ import annotations

import importlib
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import xcrepro as xc
from xcrepro.__main__ import main
from xcrepro.core.data import registry
from xcrepro.core.errors import DataError, DataMissing
from xcrepro.repro import published
from xcrepro.repro.published import checks
from xcrepro.repro.published.audit import JUDGEMENTS, audit, rest_on
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


def test_another_program_refuses_what_our_bound_on_micro_f1_refuses():
    """mlscorecheck tries all confusion matrices: of P@k, micro-R@k and micro-F1@k, and the number of relevant pairs."""
    binary = pytest.importorskip("mlscorecheck.check.binary", reason="not installed: pip install -e '.[bench]'")
    agreed = []
    for seed, off in itertools.product(range(12), (0, -1, 1, -3, 3, -50, 50, -1000, 1000)):
        rng = np.random.default_rng(seed)
        n, labels, k = int(rng.integers(20, 80)), int(rng.integers(8, 40)), int(rng.choice(KS))
        relevant = int(rng.integers(n, 3 * n))
        hits = int(rng.integers(1, min(relevant, n * k)))
        scores = {"ppv": hits / (n * k), "sens": hits / relevant, "f1": 2 * hits / (n * k + relevant) + off / 1e4}
        scores = {name: round(value, 4) for name, value in scores.items()}
        if not 0 < scores["f1"] < 1:
            continue
        low, high = checks.implied_f1(Cell.of(f"{scores['ppv']:.4f}"), (relevant / n, relevant / n), k)
        f1 = Cell.of(f"{scores['f1']:.4f}")
        ours = f1.high < low - checks.TINY or f1.low > high + checks.TINY
        pairs = {"p": relevant, "n": n * labels - relevant}
        theirs = binary.check_1_testset_no_kfold(pairs, scores, 5e-5)["inconsistency"]
        assert theirs or not ours
        assert abs(off) == 1 or ours == theirs == (off != 0)
        agreed.append(ours)
    assert 60 < sum(agreed) < len(agreed) - 12


def test_the_ndcg_bounds_are_attained():
    # All points have a hit in the first place and none after it: one label each, or five or more.
    given = {("P", 1): "100.00", ("P", 3): "33.33", ("P", 5): "20.00"}
    for n3 in ("100.00", "46.93"):
        assert faults(row({**given, ("N", 3): n3})) == []
    (fault,) = checks.ndcg_bounds(row({**given, ("N", 3): "46.80"}))
    low, high = map(float, fault.expected.split(" to "))
    assert (low, high) == pytest.approx((46.92, 100.0), abs=0.02)


# ---------------------------------------------------------------- the findings, each worked out from its cells


@pytest.fixture(scope="module")
def found():
    return audit()


@pytest.fixture(scope="module")
def kept(found):
    """Each finding with the cells that it rests on."""
    return [*zip(found.itertuples(index=False), rest_on(), strict=True)]


class Cells:
    """The cells that a finding rests on: one, or rows of them."""

    def __init__(self, finding, cells) -> None:
        self.finding, self.cells = finding, sorted(cells)
        self.metric, _, k = finding.column.partition("@")
        self.k = int(k or 0)

    def row(self, document="", method=None, variant=None, dataset=None) -> Row:
        """A row's cells, of the finer rounding where two tables print one."""
        label = self.finding.row if method is None else method
        row = Row({})
        for source, of, name, mark, metric, k, text in self.cells:
            same = audit_module.label(name, mark) if variant is None else name
            here = source.startswith(f"{document or self.finding.document}:")
            if here and (same, of) == (label, dataset or self.finding.dataset) and variant in (None, mark):
                where = metric, int(k or 0)
                if where not in row.cells or len(text) > len(row.cells[where].printed):
                    row.cells[where] = Cell.of(text)
        return row

    def rows(self) -> dict[str, Row]:
        """All rows of the finding's table, by their labels."""
        return {name: self.row(method=name) for name in {audit_module.label(c[2], c[3]) for c in self.cells}}

    def size(self, name: str, source: str = "") -> Cell:
        """A number of the dataset, by the finding's table or another."""
        (text,) = {c[6] for c in self.cells if c[4] == name and c[0] == (source or self.finding.table) and not c[2]}
        return Cell.of(text)


def identity(at: Cells, name: str) -> str:
    """What the identity says of the finding's cell; of two cells that exclude each other, the bounds that the other leaves."""
    for fault in IDENTITIES[name](at.row()):
        if fault.column == at.finding.column:
            return fault.expected
        if (at.metric, at.k) in fault.rivals:
            return checks.span(*checks.discounted_bounds(at.row(), (at.metric, at.k), [fault.where]))
    return "nothing"


def points_per_label(at: Cells) -> str:
    """Relevant pairs, counted by points and by labels, over train, and over train and test."""
    names = "n_train", "n_test", "n_labels", "avg_labels_per_point", "avg_points_per_label"
    sizes = {name: at.size(name) for name in names if any(c[0] == at.finding.table and c[4] == name for c in at.cells)}
    if ", " in at.finding.column:
        first, second = (sizes[name] for name in at.finding.column.split(", "))
        swapped = sizes | dict(zip(at.finding.column.split(", "), (second, first), strict=True))
        assert [pairs_meet(one) for one in (sizes, swapped)] == [False, True]
        return f"{second.printed}, {first.printed}"
    assert not pairs_meet(sizes)
    points, labels = sizes["avg_points_per_label"], sizes["n_labels"].value
    bases = sizes["n_train"].value, sizes["n_train"].value + sizes["n_test"].value
    return " or ".join(checks.span(points.low * labels / n, points.high * labels / n, 4) for n in bases)


def pairs_meet(sizes: dict[str, Cell]) -> bool:
    train, labels = sizes["n_train"].value, sizes["n_labels"].value
    average, points = sizes["avg_labels_per_point"], sizes["avg_points_per_label"]
    bases = [train, train + sizes["n_test"].value] if "n_test" in sizes else [train]
    return any(average.low * n <= points.high * labels and points.low * labels <= average.high * n for n in bases)


def far_from_sisters(at: Cells) -> str:
    """The range of the other rows' cells; Brier scores without those that a slip made small, too."""
    others = [row.cells[at.metric, at.k].value for name, row in at.rows().items() if name != at.finding.row]
    good = [value for value in others if value > np.median(others) / 4]
    return f"{checks.span(min(good), max(good))} in the other rows"


def micro_f1_average(at: Cells) -> str:
    """micro-F1 = 2 k P / (k + average): the average of most rows, and what it leaves for this one."""
    averages = {}
    for name, row in at.rows().items():
        low, high = checks.shared(checks.implied_average(p, f1, k) for k, f1, p in row.both("micro_F1", "P"))
        if low <= high:
            averages[name] = low, high
    alike = ([two for two in averages if other_meets(averages[one], averages[two])] for one in averages)
    main = max(alike, key=len)
    average = checks.shared(averages[name] for name in main)
    if at.finding.row == "all rows":
        return checks.span(*average, 4)
    assert at.finding.row not in main
    return checks.span(*checks.implied_f1(at.row().cells["P", at.k], average, at.k))


def other_meets(one: tuple[float, float], two: tuple[float, float]) -> bool:
    return max(one[0], two[0]) <= min(one[1], two[1])


def out_of_line(at: Cells) -> str:
    """What a least-absolute linear fit of the table's rows predicts from this row's plain metric."""
    plain = [("P" if at.metric == "N" else "PSP", j) for j in KS if j <= at.k]
    rows = at.rows()
    x = np.array([[row.cells[cell].value for cell in plain] + [1.0] for row in rows.values()])
    y = np.array([row.cells[at.metric, at.k].value for row in rows.values()])
    weight = np.ones(len(y))
    for _ in range(60):
        solution = np.linalg.lstsq(x * np.sqrt(weight)[:, None], y * np.sqrt(weight), rcond=None)[0]
        weight = 1 / np.maximum(np.abs(y - x @ solution), 1e-3)
    return f"about {x[[*rows].index(at.finding.row)] @ solution:.2f}"


def sizes_elsewhere(at: Cells) -> str:
    """The numbers of points and labels of another document, or its labels beside these points."""
    names = "n_train", "n_test", "n_labels"
    known = {source: [at.size(name, source).printed for name in names] for source in {c[0] for c in at.cells}
             if all(any(c[0] == source and c[4] == name for c in at.cells) for name in names)}  # fmt: skip
    plain = {source: [text.replace(",", "") for text in row] for source, row in known.items()}
    own = plain.pop(at.finding.table)
    if at.finding.check == "mixed_versions":
        (labels,) = {f"{int(row[2]):,}" for row in plain.values() if row[:2] == own[:2] and row[2] != own[2]}
        return f"{labels} with these points"
    assert plain["xcrepo:dataset-table"] != own
    return ", ".join(f"{int(text):,}" for text in plain["xcrepo:dataset-table"])


def label_bins(at: Cells) -> str:
    """The share of labels with 1 to 9 training points, of all labels; print has it of the labels in the bins."""
    of = [c for c in at.cells if c[1] == at.finding.dataset and c[4].startswith("labels_")]
    bins = {c[4]: float(c[6].replace(",", "")) for c in of}
    assert abs(100 * bins["labels_1-9"] / sum(bins.values()) - float(at.finding.printed)) < 0.02
    n_labels = next(float(c[6].replace(",", "")) for c in at.cells if c[4] == "n_labels" and c[0] == "reeval:table2")
    return f"{100 * bins['labels_1-9'] / n_labels:.2f}"


def coverage_denominator(at: Cells) -> str:
    """As many labels covered as correct predictions: the largest share of all labels. Of labels that are named, as many as
    there are predictions, and no fewer with more of them."""
    if at.metric == "Cov_norm at 1, 3, 5":
        most, above, falls = [], [], []
        for name in at.finding.dataset.split(", "):
            sizes = {c[4]: float(c[6].replace(",", "")) for c in at.cells if c[1] == name and c[0] == "jain16:table2"}
            most.append(100 * sizes["n_test"] / sizes["n_labels"])
            for method in at.finding.row.split(", "):
                row = [at.row(method=method, dataset=name).cells["Cov_norm", k] for k in KS]
                above += [row[0].printed] if row[0].low > most[-1] else []
                falls += [(one, two) for one, two in itertools.pairwise(row) if two.high < one.low]
        above = sorted(above, key=at.finding.printed.index)
        assert at.finding.printed == f"{', '.join(above)} at k = 1; {', '.join(two.printed for _, two in falls)}"
        least = ", ".join(one.printed for one, _ in falls)
        return f"at most {', '.join(f'{one:.2f}' for one in most)} of all labels at k = 1; {least} or more after it"
    entry, p = registry.get(at.finding.dataset), at.row().cells["P", at.k]
    return f"at most {100 * entry.n_test * at.k * p.high / 100 / entry.n_labels:.2f} of all labels"


def same_precision(at: Cells) -> str:
    """The other document's nDCG, beside the same P."""
    source = at.finding.expected.partition("(")[2].rstrip(")")
    own, other = at.row(), at.row(document=source.partition(":")[0], method=at.finding.row.partition(" (")[0])
    assert all(abs(own.cells["P", k].value - other.cells["P", k].value) <= 0.5 for k in KS)
    assert abs(own.cells["N", at.k].value - other.cells["N", at.k].value) > 3
    return f"{other.cells['N', at.k].printed} ({source})"


def same_cell(at: Cells) -> str:
    """What another table of the document prints for it; where the row has an ACE, it is nearer to that."""
    name = at.finding.row.partition(" (")[0]
    texts = {c[0]: c[6] for c in at.cells if (c[2], c[4], c[5]) == (name, at.metric, str(at.k))}
    (other,) = {source for source, text in texts.items() if float(text) != float(at.finding.printed)}
    if judge := at.row().cells.get(("ACE", at.k)):
        assert abs(judge.value - float(texts[other])) < abs(judge.value - float(at.finding.printed))
    return f"{texts[other]} ({other})"


def copied(at: Cells) -> str:
    """The same method has the same number, digit by digit, on another dataset."""
    (other,) = {c[1] for c in at.cells} - {at.finding.dataset}
    assert at.row(dataset=other).cells[at.metric, at.k].value == float(at.finding.printed)
    return f"its own, not {other}'s"


def recalibrated(at: Cells) -> str:
    """An isotonic map cannot raise the Brier score."""
    after = at.row(method=at.finding.row, variant="isotonic").cells[at.metric, at.k]
    return f"at least {after.low:.2f}"


WORKED_OUT = {
    check.__name__: check
    for check in (points_per_label, far_from_sisters, micro_f1_average, out_of_line, label_bins, coverage_denominator,
                  same_precision, same_cell, copied, recalibrated)
} | {"mixed_versions": sizes_elsewhere, "other_points": sizes_elsewhere}  # fmt: skip
"""Rule -> what it expects, from the cells."""
IN_WORDS = ("owners", "unlike_itself", "macro_recall", "psndcg_definitions", "listed_twice", "sentences")
"""Rules whose findings are worked out below, number by number of their reasons."""


def test_every_finding_follows_from_its_cells(kept):
    """By the identity, the rule, or by the tests below: all 92, and each by at least one of these."""
    for finding, cells in kept:
        at, expected = Cells(finding, cells), []
        for name in finding.check.split(", "):
            if name in IDENTITIES:
                expected.append(identity(at, name))
            elif name not in IN_WORDS:
                expected.append(WORKED_OUT[name](at))
        if expected:
            assert finding.expected == "; ".join(expected), finding
        else:
            assert set(finding.check.split(", ")) <= set(IN_WORDS)


def printed(cells, metric: str, method: str, ks=KS, dataset: str = "") -> list[float]:
    """The numbers of one method among the cells that a finding rests on."""
    values = {c[5]: float(c[6]) for c in cells if c[2] == method and c[4] == metric and c[1].startswith(dataset)}
    return [values[str(k)] for k in ks]


def test_what_is_kept_is_whole(kept):
    record = set(audit_module._cells(xc.published.find()).itertuples(index=False, name=None))
    assert all(finding.judgement in JUDGEMENTS and cells and cells <= record for finding, cells in kept)
    numbers = xc.published.printed_tables.kept("findings_rest_on")["finding"]
    assert set(numbers) == set(map(str, range(1, len(kept) + 1)))


def test_a_finding_goes_with_any_cell_that_it_rests_on(found):
    record = xc.published.find(dataset="EURLex-4K", source="calibration:table7")
    sisters = record[(record["variant"] == "isotonic") & (record["metric"] == "Brier") & (record["k"] == 3)]
    assert "far_from_sisters" in set(audit(record)["check"])
    record.loc[sisters.index[-1], "printed"] = "1.00"
    assert not ((one := audit(record))["check"].eq("far_from_sisters") & one["column"].eq("Brier@3")).any()


def test_rows_are_those_of_another_owner(kept):
    """The distances of the reasons, and that each row but the one by elimination is nearer to its owner than to itself."""
    table = xc.published.find(dataset="EURLex-4K", source=["xcrepo", "jain16"], metric=["PSP", "PSN"])
    printed = table[table["printed"] != ""].set_index(["source", "method", "metric", "k"])
    table = printed["value"].unstack(["metric", "k"])
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


def rows_of_page(dataset: str, record=None) -> list[tuple[str, Row]]:
    """The rows of the page's table, each with its method's name."""
    record = xc.published.find(source="xcrepo", dataset=dataset) if record is None else record
    record = record[(record["printed"] != "") & (record["method"] != "")]
    rows = record.assign(k=record["k"].fillna(0).astype(int)).groupby(["method", "variant", "row"], sort=False)
    return [(audit_module.label(name, mark), Row({(m, k): Cell.of(text) for m, k, text in zip(part["metric"], part["k"],
            part["printed"], strict=True)})) for (name, mark, _), part in rows]  # fmt: skip


def constant_psndcg_fits(row: Row) -> bool:
    """Whether PSP and PSN of a row can be printed with the sum up to k as normaliser of every point (jain16's PSnDCG)."""
    given = [(name, k) for name in ("PSP", "PSN") for k in row.ks(name) if k <= 5]
    return bool(checks._mixtures(row, given, constant=True))


def test_two_definitions_in_one_table(kept):
    """The quotients of the reasons, and that the sum up to k excludes the rows that are said to be excluded."""
    for finding, _ in (one for one in kept if one[0].check in ("psndcg_definitions", "listed_twice")):
        lines, quotient = rows_of_page(finding.dataset), {}
        for label, line in lines:
            first, plain, discounted = (line.cells.get(w) for w in (("PSP", 1), ("PSP", 5), ("PSN", 5)))
            if first and plain and discounted and abs(plain.value - first.value) >= 0.5:
                quotient.setdefault(label, []).append((discounted.value - first.value) / (plain.value - first.value))
        if finding.check == "listed_twice":
            assert "is {:.2f} and {:.2f}".format(*quotient["Parabel"]) in finding.why
            continue
        few = finding.row.split(", ")
        sides = [sorted(q for name, (q, *_) in quotient.items() if (name in few) == some) for some in (True, False)]
        assert [f"{side[0]:.2f} to {side[-1]:.2f}" for side in sides] == [finding.printed, finding.expected[:12]]
        assert sides[0][-1] < sides[1][0] or sides[1][-1] < sides[0][0]
        if "could not be printed" in finding.why:
            out = [name for name, line in lines if name in quotient and not constant_psndcg_fits(line)]
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


def test_form(found):
    assert " ".join(found.columns) == "document table dataset row column printed expected check judgement why"
    assert set(found["judgement"]) <= set(JUDGEMENTS)
    # Each printed cell once; two tables may print one cell with two numbers.
    assert not found.duplicated(["document", "dataset", "row", "column", "printed"]).any()
    assert not found.map(lambda text: text == "" or text != text.strip()).any().any()
    tables = {name for cell in found["table"] for name in cell.split(", ")}
    assert tables <= set(xc.published.sources())


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


# ---------------------------------------------------------------- somebody's own results


def tidy(cells, scale=1.0):
    lines = [f"D,M,{m},{k or ''},{float(t) * scale if m != 'avg_labels' else t}" for (m, k), t in cells.items()]
    return "\n".join(["dataset,method,metric,k,value", *lines])


def test_own_results_tidy_and_wide(file, capsys):
    cells = {w: t for w, t in computed(11).items() if w[0] != "Abandonment"}
    assert audit_results(file(tidy(cells))).empty
    assert main(["audit", str(file(tidy(cells)))]) == 0
    cells["N", 1] = f"{float(cells['N', 1]) + 5:.2f}"
    path = file(tidy(cells))
    assert audit_results(path)["column"].tolist() == ["N@1"]
    assert main(["audit", str(path)]) == 1
    assert re.search(r"D / M: N@1 = .* \[first_place\]", capsys.readouterr().out)
    wide = file("method,P@1,nDCG@1,PSP@1,PSnDCG@1,served@1,hours\nM,0.5,0.5,0.20,0.25,0.5,3\nO,.4,-,.1,,.4,\n")
    assert audit_results(wide)[["method", "column", "expected"]].values.tolist() == [["M", "PSN@1", "0.20"]]


@pytest.mark.parametrize(
    "text",
    ["method,P@1,Foo@1,hours\nM,0.5,0.9,3\n", "method,metric,k,value\nM,P,1,0.5\nM,Foo,1,0.9\nM,hours,,3\n"],
)
def test_what_was_not_understood_is_named(file, capsys, text):
    path, others = file(text), ["Foo@1", "hours"]
    assert audit_results(path).attrs == {"checked": ["P@1"], "not checked": others}
    assert main(["audit", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "nothing found in P@1"
    assert said[1].startswith("not checked, because no metric of these names is known: Foo@1, hours")
    assert main(["audit", str(file("method,P@1,P@3\nM,0.5,0.4\n"))]) == 0
    assert capsys.readouterr().out == "nothing found in P@1, P@3\n"


def test_own_results_are_fractions_or_percent(file):
    """Two of three places can hit at most: P@3 of 0.9 is too much for a fraction beside 0.1, 0.9 % is not."""
    table = "method,P@1,P@3\nM,0.10,0.90\n"
    found = audit_results(file(table))
    assert found[["method", "column", "expected"]].values.tolist() == [["M", "P@3", "at most 0.7017"]]
    found = audit_results(file(table + "N,50.0,40.0\n"))  # 0.9 % is possible, but it is rather 0.9
    assert found[["method", "column", "check"]].values.tolist() == [["M", "P@3", "one unit in a file"]]
    assert audit_results(file("method,P@1,P@3\nM,0.10,1.20\nN,50.0,40.0\n")).empty


@pytest.mark.parametrize("heading", ["| **group** |||", "| group |", "group | |"])
def test_a_heading_over_the_columns_of_a_markdown_table_is_no_row(file, heading):
    text = f"| method | P@1 | P@3 |\n|---|---|---|\n| M | 80.1 | 70.2 |\n{heading}\n| N | 81.0 | 110.0 |\n"
    assert audit_results(file(text))[["method", "printed"]].to_numpy().tolist()[0] == ["N", "110.0"]


def test_own_results_of_the_package(file):
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 20)) < 0.2).astype(np.float32)
    Y[:, 0] = 1
    top = xc.TopK.from_scores(rng.random((60, 20)), 5)
    table = xc.evaluate(Y, top, inverse_propensity=1 + rng.random(20))
    assert audit_results(file(table.to_csv(index=False))).empty


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n", "line 1: found columns a, b"),
        (b"", r"line 1: found columns \(none\)"),
        (b"method,P@1\nM,x\n", "line 2: found P@1 'x', expected a number"),
        (b"metric,k,value\nP,1,0.5\nP,1,0.6\n", "line 3: found P@1 a second time"),
        (b"metric,k,value\nP,one,0.5\n", "line 2: found k 'one'"),
        (b"metric,k,value\nP,1\n", "line 2: found 2 fields, expected 3"),
        (b"metric,k,value\nhours,,3\n", "no metric that is checked"),
        (b"metric,k,value,value\nP,1,1,2\n", "line 1: "),
        (b"metric,k,K,value\nP,1,1,2\n", "line 1: "),
        (b"method,method,P@1\nP,1,1\n", "line 1: "),
        ("method,P@1\nM\xfcller,50\n".encode("latin-1"), "no UTF-8.*CSV UTF-8"),
        ("method,P@1\na,50\n".encode("utf-16"), "no UTF-8"),
        (b"method,P@1\na\0,50\n", "line 2: found a null byte"),
        (b"method,P@1\na,1e99999999999999999999\n", "a number"),
        (b"method,P@1\na,1e400\n", "a number"),
        (b"method,ECE@1,Brier@1\na,1e308,0.5\n", "a number"),
    ],
)
def test_own_results_with_faults_in_the_file(file, capsys, content, message):
    path = file(content)
    with pytest.raises(DataError, match=message):
        audit_results(path)
    assert main(["audit", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_own_results_missing(tmp_path):
    with pytest.raises(DataMissing, match="no such"):
        audit_results(tmp_path / "none.csv")


# ---------------------------------------------------------------- what it cannot see


def slips(rng, cells: dict, others: list[dict]) -> dict[str, dict]:
    """A sound row with one slip of each kind: the cells that change."""
    names = [*cells]
    one, other = (names[place] for place in rng.choice(len(names), 2, replace=False))
    text, beside = cells[one], cells[names[(names.index(one) + 1) % len(names)]]
    digits = [place for place, sign in enumerate(text) if sign.isdigit()]
    first, second = digits[(place := int(rng.integers(len(digits) - 1)))], digits[place + 1]
    swapped = [*text]
    swapped[first], swapped[second] = text[second], text[first]
    decimals = len(text.partition(".")[2])
    row = others[int(rng.integers(len(others)))] if others else {}
    return {
        "the decimal point is lost": {one: text.replace(".", "")},
        "two cells of the row are exchanged": {one: cells[other], other: text},
        "10 points too high": {one: f"{float(text) + 10:.{decimals}f}"},
        "copied from the cell beside": {one: beside},
        "two digits are swapped": {one: "".join(swapped)},
        "copied from another method's row": {one: row.get(one, text)},
        "off by 1 point": {one: f"{float(text) + rng.choice([-1, 1]):.{decimals}f}"},
        "another last digit": {one: text[:-1] + str((int(text[-1]) + int(rng.integers(1, 10))) % 10)},
    }


def test_how_many_slips_are_noticed_is_as_the_page_says(root):
    kept = pd.read_csv(root / "data/published/xcrepo.csv", dtype=str, keep_default_na=False)
    kept = kept[kept["metric"].isin(["P", "N", "PSP", "PSN"]) & kept["printed"].str.fullmatch(r"\d+\.\d+")]
    rows = {
        key: {(metric, int(k)): text for metric, k, text in zip(row["metric"], row["k"], row["printed"], strict=True)}
        for key, row in kept.groupby(["dataset", "source", "row"])
    }

    def wrong(cells: dict) -> list:
        return faults(Row({known: Cell.of(text) for known, text in cells.items()}, 100.0))

    sound = {key: cells for key, cells in rows.items() if len(cells) > 5 and not wrong(cells)}
    rng, noticed = np.random.default_rng(0), {}
    for place in rng.integers(len(sound), size=150):
        key = [*sound][place]
        others = [cells for other, cells in sound.items() if other[0] == key[0] and other != key]
        for kind, changed in slips(rng, sound[key], others).items():
            cells = sound[key] | changed
            if cells != sound[key] and all(not text.startswith("-") for text in changed.values()):
                noticed.setdefault(kind, []).append(bool(wrong(cells)))
    said = re.findall(r"^   \| (.+?) \| (\d+) \|$", (root / "docs/audit.md").read_text(), re.MULTILINE)
    assert {kind for kind, _ in said} == {*noticed}
    for kind, share in said:
        assert 100 * np.mean(noticed[kind]) == pytest.approx(float(share), abs=12), kind
