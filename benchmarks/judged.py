"""How often do intervals from a few judged rows hold the complete value? By simulation.

A test set of the synthetic population of ``intervals.py`` has its complete truth. Labels are removed from it, each with the
same probability, or all of some rows; then rows are drawn at random, and a judge names the labels of the drawn rows: a
perfect one, or one whose verdicts on what is not observed are wrong with a probability of 5 or 20 %. An interval of 95 %
should hold the complete value in 95 of 100 draws.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

import xcrepro as xc
from benchmarks.intervals import population
from xcrepro.core.errors import ArgumentError
from xcrepro.tools.course import judging

METRICS = ("P", "R", "nDCG", "coverage")
K = 5
RATES = (0.015, 0.2, 0.4, 0.6)
WHOLE = 0.03  # of the rows that lose all labels
ROWS = (20, 50, 100, 200, 400)
ERRORS = (0.05, 0.2)
AGREE = (0.8, 0.85, 0.9, 0.95, 0.98, 0.995, 1.0)
"""Of how many predicted pairs a cheap judge says what is true."""
_PICKED = "most observed labels"


def verdicts(complete, observed, tops, rows, errs: float, rng) -> np.ndarray:
    """(pairs, 3): verdicts on the labels of these rows that a model predicts or that are relevant, and not observed."""
    some = [sparse.csr_matrix(each[rows], dtype=bool) for each in (complete, observed)]
    looked = some[0].copy()
    for top in tops.values():
        line = np.repeat(np.arange(rows.size), K)
        labels = top.ids[rows, :K].ravel()
        there = labels >= 0
        seen = sparse.csr_matrix((np.ones(there.sum(), bool), (line[there], labels[there])), shape=looked.shape)
        looked = looked + seen
    line, label = (looked > some[1]).nonzero()
    right = np.asarray(some[0][line, label]).ravel() ^ (rng.random(line.size) < errs)
    nothing = np.column_stack([rows, np.full(rows.size, xc.judged.DRAWN), np.zeros(rows.size, int)])
    return np.concatenate([np.column_stack([rows[line], label, right]), nothing])


def held(complete, tops, rate: float, n: int, errs: float, repetitions: int, **odd) -> dict:
    """One line: of each metric how often the interval held and half its width in points.

    ``odd``: ``whole``, where rows lose all labels, and ``picked``, where rows are not drawn at random.
    """
    rng, picked = np.random.default_rng([int(100 * rate), n, int(100 * errs)]), odd.get("picked")
    if odd.get("whole"):
        observed = sparse.diags_array((rng.random(complete.shape[0]) >= rate).astype(np.float32)).tocsr() @ complete
        observed.eliminate_zeros()
    else:
        observed = xc.propensity.drop_labels(complete, np.full(complete.shape[1], 1.0 - rate), rng)
    true = xc.evaluate(complete, tops, K, metrics=METRICS).set_index(["model", "metric"])["value"]
    found, doubted = {}, 0
    for repetition in range(repetitions):
        rows = xc.judged.sample(complete.shape[0], n, repetition)
        if picked:  # of twice as many the half with the most labels
            rows = xc.judged.sample(complete.shape[0], 2 * n, repetition)
            rows = rows[np.argsort(-np.diff(observed.indptr)[rows], kind="stable")[:n]]
        said = verdicts(complete, observed, tops, rows, errs, rng)
        fold = xc.judged.Judged(observed, tops, map(tuple, said.tolist()), K, METRICS, complete=True)
        doubted += any("at random" in text for text in fold.doubts())
        for line in fold.estimate().query("model == 'one'").itertuples():
            inside = line.low - 1e-12 <= true["one", line.metric] <= line.high + 1e-12
            found.setdefault(line.metric, []).append((inside, line.high - line.low))
        for line in fold.compare().itertuples():
            gap = true["one", line.metric] - true["other", line.metric]
            held_gap = line.low - 1e-12 <= gap <= line.high + 1e-12
            found.setdefault(f"gap {line.metric}", []).append((held_gap, line.high - line.low))
    missing = f"{100 * rate:g} %" + (" of rows" if odd.get("whole") else "")
    row = {"missing": missing, "rows": f"{n}", "judge errs": f"{100 * errs:.0f} %"}
    if picked:
        row |= {"picked by": _PICKED, "warned, %": 100 * doubted / repetitions}
    for name, each in found.items():
        hold, width = np.mean(each, axis=0)
        row |= {f"{name}, %": 100 * hold, f"{name} ±": 50 * width}
    return row


def real(quick: bool) -> dict[str, tuple]:
    """Complete truths of real records, and the first places of a model: name -> (complete, top)."""
    found = {}
    for name, size in (("tib", 8000), ("gutenberg", 6000)):
        ds = xc.load(name, points=size // 8 if quick else size)
        top = xc.models.PLT(trees=1).fit(ds.train.X, ds.train.Y).predict(ds.test.X, K)
        found[ds.title.partition(",")[0]] = ds.test.Y.tocsr(), top
    return found


def proxy_of(complete, top, agree: float, flatters: bool, rng) -> sparse.csr_matrix:
    """Cheap verdicts on all predicted pairs that are wrong in 1 - agree of them, any way or by calling wrong ones right."""
    row, place = np.nonzero(top.ids >= 0)
    label = top.ids[row, place]
    true = np.asarray(complete[row, label]).ravel() > 0
    errs = rng.random(true.size)
    said = true | (errs < (1.0 - agree) / (1.0 - true.mean())) if flatters else true ^ (errs >= agree)
    return sparse.csr_matrix((said[said].astype(np.float32), (row[said], label[said])), shape=complete.shape)


def proxied(name, complete, top, agree: float, flatters: bool, sizes, repetitions: int) -> list[dict]:
    """Lines: of P@5 with 30 % of the labels missing, how often the interval with a proxy held, its width beside that of people
    alone, and what the regression on all rows says that it should be, the root of 1 - R^2."""
    rng = np.random.default_rng([int(100 * agree), flatters])
    observed = xc.propensity.drop_labels(complete, np.full(complete.shape[1], 0.7), rng)
    proxy = proxy_of(complete, top, agree, flatters, rng)
    both = (observed + proxy > 0).astype(np.float32)
    y, f, g = (xc_hits(one, top).sum(axis=1) for one in (complete, observed, both))
    design = np.column_stack([np.ones(y.size), f, g])
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    theory, true = float(rest.std() / y.std()), float(y.mean()) / K
    lines = []
    for n in sizes:
        held, width = [], []
        for repetition in range(repetitions):
            rows = xc.judged.sample(complete.shape[0], n, repetition)
            said = verdicts(complete, observed, {"": top}, rows, 0.0, rng)
            fold = xc.judged.Judged(observed, top, map(tuple, said.tolist()), K, proxy=proxy)
            both = [fold.estimate(method=method).iloc[0] for method in ("ppi++", "judged only")]
            held.append(both[0]["low"] <= true <= both[0]["high"])
            width.append([one["high"] - one["low"] for one in both])
        ours, people = np.mean(width, axis=0)
        errs = "calls wrong ones right" if flatters else "any way"
        lines.append({"data": name, "agrees, %": 100 * agree, "errs": errs, "rows": f"{n}", "held, %": 100 * np.mean(held),
                      "±": 50 * ours, "/ people alone": ours / people, "theory": theory})  # fmt: skip
    return lines


def xc_hits(Y, top):
    """(n, k) whether a place is a hit, without the package's kernels."""
    rows = np.repeat(np.arange(len(top)), top.k)
    ids = top.ids.ravel()
    found = np.asarray(Y[rows, np.maximum(ids, 0)]).ravel() * (ids >= 0) > 0
    return found.reshape(len(top), top.k)


def of_a_class(complete, top, errs: float, repetitions: int) -> list[dict]:
    """Lines: P@5 with 30 % of the labels missing, judged by twelve who err in a share of their verdicts, ten records each, two
    of them shared: how often the interval held, and the mean estimate, without second looks and with them."""
    rng, judges = np.random.default_rng([7, int(100 * errs)]), [f"judge {number}" for number in range(12)]
    observed = xc.propensity.drop_labels(complete, np.full(complete.shape[1], 0.7), rng).tocsr()
    true, texts = float(xc.metrics.precision(complete, top, K)[0]), [""] * complete.shape[0]
    found: dict[bool, list] = {False: [], True: []}
    looked = []

    def fill(folder: Path) -> None:
        for path in folder.glob("judge *.csv"):
            sheet = pd.read_csv(path)
            right = np.asarray(complete[sheet["record"], sheet["label"]]).ravel() > 0
            sheet.assign(verdict=(right ^ (rng.random(len(sheet)) < errs)).astype(int)).to_csv(path, index=False)

    for repetition in range(repetitions):
        with tempfile.TemporaryDirectory() as room:
            folder = Path(room) / "sheets"
            judging.sheets(folder, observed, {"model": top}, judges, texts=texts, k=K, seed=repetition)
            fill(folder)
            for again in (False, True):
                if again:
                    looked.append(0)
                    with contextlib.suppress(ArgumentError):  # nothing to look at again
                        looked[-1] = judging.second(folder, observed, texts=texts, seed=repetition)["predictions"].sum()
                        fill(folder / judging.AGAIN)
                found[again].append(judging.judge(folder, observed, {"model": top}, k=K).ranking.iloc[0])
    lines = []
    for again, each in found.items():
        held = np.mean([line["low"] - 1e-12 <= true <= line["high"] + 1e-12 for line in each])
        line = {"judges err, %": 100 * errs, "second looks": np.mean(looked) if again else 0.0, "held, %": 100 * held}
        lines.append(line | {"P@5": 100 * np.mean([one["judged"] for one in each]), "complete": 100 * true})
    return lines


def run(quick: bool) -> list[dict]:
    warnings.simplefilter("ignore", xc.judged.JudgedWarning)
    n_rows, repetitions = (300, 3) if quick else (2000, 150)
    complete, both = population(n_rows, n_rows)
    tops = dict(zip(("one", "other"), both, strict=True))
    sizes = ROWS[:2] if quick else ROWS
    first = f"of {n_rows:,} rows, {repetitions} draws, at {K}: how often 95 % intervals held, and ± points"
    rows = []
    for rate, odd in [*((rate, {}) for rate in RATES), (WHOLE, {"whole": True})]:
        for n in sizes:
            line = held(complete, tops, rate, n, 0.0, repetitions, **odd)
            rows.append({"job": f"judged: a perfect judge {first}", **line})
    for errs in ERRORS:
        for n in sizes:
            rows.append({"job": f"judged: a judge who errs {first}", **held(complete, tops, 0.4, n, errs, repetitions)})
    for n in sizes:
        one = held(complete, tops, 0.4, n, 0.0, repetitions, picked=True)
        rows.append({"job": f"judged: rows that were picked {first}", **one})
    draws = 3 if quick else 400
    for name, (complete, top) in real(quick).items():
        what = f"of {complete.shape[0]:,} rows, {draws} draws"
        for agree, flatters in itertools.product(AGREE[:: 4 if quick else 1], (False, True)):
            lines = proxied(name, complete, top, agree, flatters, ROWS[1:2] if quick else ROWS[1:4], draws)
            rows += [{"job": f"judged: P@{K} with cheap verdicts {what}", **line} for line in lines]
        for errs in (0.0, 0.03, 0.1):
            lines = of_a_class(complete, top, errs, 3 if quick else 100)
            job = f"judged: a class of twelve, {name}, {complete.shape[0]:,} rows"
            rows += [{"job": job, **line} for line in lines]
    return rows
