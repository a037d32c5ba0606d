"""One mergeable state: what it takes and refuses, its file, its intervals. test_properties has that its bits never change."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

import xcrepro as xc
from tests.core.metrics.test_properties import EVERYTHING, N_LABELS, bits, empty, rows
from tests.refused import damaged, refused
from xcrepro.core.accumulators.rows import poisson_weights
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.metrics import registry, serialization, state


def test_it_is_what_evaluate_and_calibration_table_give():
    Y, top, w, counts, _ = rows(1)
    found = xc.State((1, 3, 5), None, w, counts).update(Y, top).compute()
    assert found.equals(xc.evaluate(Y, top, inverse_propensity=w, label_counts=counts))
    names = registry.names("pairs", "scores")
    found = xc.State((1, 5), names).update(Y, top).compute()
    assert found.equals(xc.metrics.calibration_table(Y, top, (1, 5)))
    assert found.equals(xc.evaluate(Y, top, (1, 5), metrics=names))


# ---------------------------------------------------------------- names


def test_names_with_a_k_of_their_own():
    Y, top, *_ = rows(6)
    found = xc.evaluate(Y, top, metrics=["P@1", "nDCG@5", "P@4", "ECE@5", "macro-F1"])
    at = [("P", 1), ("P", 4), ("nDCG", 5), ("ECE", 5), *(("macro-F1", k) for k in (1, 3, 5))]
    assert [*zip(found["metric"], found["k"], strict=True)] == at
    assert found["value"][1] == xc.metrics.precision(Y, top, 4)[0]
    assert found["value"][3] == xc.metrics.ece(Y, top, 5) == xc.metrics.ece(*xc.metrics.pairs(Y, top, 5))


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("alpha-coverage (1.5)@5", "from 0 to 1"),
        ("n'-coverage (0)", "a number of rows"),
        ("NDCG@5", "did you mean 'nDCG@5'"),
        (["P", "P@3"], "must name P@3 once"),
        ("P@", "k, 1 or more"),
        ([], "one or more; got none"),
    ],
)
def test_what_cannot_be_computed_is_named(metrics, message):
    with pytest.raises(ArgumentError, match=message):
        xc.State((1, 3), metrics)


def test_every_metric_has_what_the_documentation_shows():
    table = registry.table()
    assert table["metric"].tolist() == [*registry.METRICS, *registry.FAMILIES]
    assert table["source"].str.len().min() > 3
    assert set(table["better"]) <= {"higher", "lower", ""}
    assert set(table["unit"]) <= {"fraction", "labels", "nats", "pairs"}
    assert all(xc.metrics.METRICS[name].name == name for name in EVERYTHING)
    assert registry.codes()["ndcg"] == registry.codes()["n"] == "N"
    assert "abandonment" not in registry.codes()  # evaluate's is one minus what coverage prints


def test_better_and_unit_are_true():
    """A perfect prediction beats a random one wherever the list says which way."""
    rng = np.random.default_rng(8)
    Y = sp.csr_matrix(rng.random((300, N_LABELS)) < 0.1)
    w, counts = np.full(N_LABELS, 2.0), np.full(N_LABELS, 5)
    n = np.diff(Y.indptr).astype(float)
    good = xc.TopK.from_scores(np.clip(Y.toarray() * 0.98 + 0.01, 0, 1) - 1e-4 * rng.random(Y.shape), 5)
    bad = xc.TopK.from_scores(rng.random(Y.shape), 5)
    tables = [empty(w, counts, ks=5).update(Y, top, n_relevant=n).values() for top in (good, bad)]
    for name, value in tables[0].items():
        if name in ("ECE over", "ECE under"):  # halves of it: one falls as the other rises
            continue
        metric = registry.METRICS["binned macro-F1" if name.startswith("macro-F1 (") else name]
        sign = {"higher": 1, "lower": -1, "": 0}[metric.better]
        assert sign * (value[0] - tables[1][name][0]) >= 0, name
        unbiased = name.startswith(("PS-", "within")) or "bare" in name or "printed" in name
        if metric.unit == "fraction" and not unbiased:
            assert 0 <= value[0] <= 1, name


# ---------------------------------------------------------------- refusals


def merged(**other):
    Y, top, w, *_ = rows(9)
    options = {"ks": (1, 3), "metrics": ["P", "PSP"], "inverse_propensity": w, "bins": 10} | other
    return xc.State((1, 3), ["P", "PSP"], w).update(Y, top, 0).merge(xc.State(**options).update(Y, top, 60))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"ks": (1, 5)}, r"metrics \[.*'PSP@3'\] .*'PSP@5'\]"),
        ({"inverse_propensity": np.full(N_LABELS, 2.0)}, "inverse_propensity [0-9a-f]{16} .*[0-9a-f]{16}"),
        ({"bins": 15}, "bins 10 .*15"),
    ],
)
def test_states_of_other_options_are_refused(other, message):
    with pytest.raises(ArgumentError, match=message):
        merged(**other)


def test_merging_leaves_the_other_as_it_is(tmp_path):
    Y, top, w, counts, n_relevant = rows(10)
    one, other = (
        empty(w, counts).update(Y[s], top.rows(s), s.start, n_relevant[s]) for s in (slice(0, 20), slice(20, 60))
    )
    before = bits(other, tmp_path)
    one.merge(other)
    one.update(Y, top, 100, n_relevant)
    assert bits(other, tmp_path) == before


def test_another_number_of_labels_or_version_is_refused(monkeypatch, tmp_path):
    Y, top, *_ = rows(11)
    wide = sp.hstack([Y, sp.csr_matrix((60, 1))]).tocsr()
    more = xc.TopK(top.ids, top.scores, N_LABELS + 1)
    one = xc.State(1, "P").update(Y, top)
    with pytest.raises(ArgumentError, match="40 labels"):
        one.update(wide, more)
    with pytest.raises(ArgumentError, match=r"n_labels 40 .* 41 "):
        one.merge(xc.State(1, "P").update(wide, more))
    with pytest.raises(ArgumentError, match="a State"):
        one.merge({})
    one.save(tmp_path / "a.npz")
    monkeypatch.setattr("xcrepro.core.metrics.serialization.__version__", "9.9")
    with pytest.raises(DataError, match=r"of version 9\.9"):
        xc.State.load(tmp_path / "a.npz")


def test_a_row_twice_is_refused_unless_allowed():
    Y, top, *_ = rows(12)
    one = xc.State(1, "P").update(Y, top, 100).update(Y, top, 0)
    for first, both in ((0, "0 to 59"), (59, "59 to 59"), (41, "41 to 59"), (130, "130 to 159")):
        with pytest.raises(ArgumentError, match=f"rows {both} "):
            one.update(Y, top, first)
    with pytest.raises(ArgumentError, match="rows 100 to 159 "):
        one.merge(xc.State(1, "P").update(Y, top, 100))
    assert one.n_rows == 120
    one.update(Y[:40], top.rows(slice(0, 40)), 60)
    assert one.n_rows == 160
    assert xc.State(1, "P", allow_repeats=True).update(Y, top, 0).update(Y, top, 0).n_rows == 120


def test_no_rows_in_a_block_is_fine_in_all_an_error(tmp_path):
    Y, top, *_ = rows(13)
    none = slice(0, 0)
    nothing = xc.State((1, 3), ["P", "coverage", "ECE"]).update(Y[none], top.rows(none), 5)
    with pytest.raises(ArgumentError, match="one row"):
        nothing.compute()
    assert nothing.merge(xc.State((1, 3), ["P", "coverage", "ECE"]).update(Y, top, 0)).n_rows == 60
    fresh = xc.State((1, 3), ["P", "coverage", "ECE"])
    fresh.save(tmp_path / "empty.npz")
    assert xc.State.load(tmp_path / "empty.npz").update(Y, top).compute().equals(nothing.compute())


@pytest.mark.parametrize("what", ["scores", "n_relevant", "k"])
def test_a_refused_block_changes_nothing(what, tmp_path):
    Y, top, w, counts, n_relevant = rows(14)
    found = empty(w, counts).update(Y, top, 0, n_relevant)
    before = bits(found, tmp_path)
    if what == "scores":
        scores = top.scores.copy()
        scores[50, 0] = 1.5
        bad = Y, xc.TopK(top.ids.copy(), scores, N_LABELS), 60, n_relevant
        message = r"scores must lie in \[0, 1\]; got 1.5 at row 110, place 0"
    elif what == "n_relevant":
        bad, message = (Y, top, 60), "n_relevant must be given"
    else:
        bad, message = (Y, top.head(3), 60, n_relevant), "must not exceed the 3 places"
    with pytest.raises(ArgumentError, match=message):
        found.update(*bad)
    assert bits(found, tmp_path) == before


# ---------------------------------------------------------------- files


def test_a_missing_or_foreign_file_is_named(tmp_path):
    with pytest.raises(DataMissing, match="no-such"):
        xc.State.load(tmp_path / "no-such.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with damaged("other.npz", match="header"):
        xc.State.load(tmp_path / "other.npz")
    with pytest.raises(ArgumentError, match=r"\.npz"):
        xc.State(1, "P").save(tmp_path / "state.txt")


@pytest.mark.parametrize("array", ["inverse_propensity", "label_counts"])
def test_weights_of_another_state_are_not_those_of_its_header(array, tmp_path):
    """The file is whole, its checksums fit; the sums in it were weighted otherwise."""
    arrays = saved(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", **resealed(arrays | {array: arrays[array] + 1}))
    with damaged("a.npz", match="belong"):
        xc.State.load(tmp_path / "a.npz")


def stored(path) -> dict:
    with np.load(path) as arrays:
        return dict(arrays)


def saved(path) -> dict:
    """The arrays of a file with a state of everything."""
    Y, top, w, counts, n_relevant = rows(16)
    empty(w, counts).update(Y, top, 0, n_relevant).save(path)
    return stored(path)


def resealed(arrays: dict) -> dict:
    """What another hand would write: the digest is that of the changed arrays."""
    return serialization.sealed(json.loads(arrays["header"].tobytes()), arrays)


def test_no_number_of_a_file_can_change_unseen(tmp_path):
    """Archives that are whole, with other numbers in one array or in the header."""
    arrays = saved(tmp_path / "a.npz")
    header = json.loads(arrays["header"].tobytes())
    assert resealed(arrays)["header"].tolist() == arrays["header"].tolist()
    for name in arrays.keys() - {"header"}:
        data = bytearray(arrays[name].tobytes())
        for place in sorted({0, len(data) // 2, len(data) - 1} if data else ()):
            data[place] ^= 1
            changed = np.frombuffer(bytes(data), arrays[name].dtype).reshape(arrays[name].shape)
            np.savez(tmp_path / "b.npz", **arrays | {name: changed})
            with damaged("b.npz", match="another content"):
                xc.State.load(tmp_path / "b.npz")
            data[place] ^= 1
    for name in header.keys() - {"format", "version"}:
        said = json.dumps(header | {name: "0"}).encode()
        np.savez(tmp_path / "b.npz", **arrays | {"header": np.frombuffer(said, np.uint8)})
        with damaged("b.npz", match="another content"):
            xc.State.load(tmp_path / "b.npz")


@pytest.mark.parametrize("metric", ["P", "R", "nDCG", "PSP", "abandonment"])
def test_sums_that_cannot_be_are_refused_whoever_sealed_them(metric, tmp_path):
    Y, top, w, *_ = rows(16)
    made = xc.State((1, 3), metric, w if metric == "PSP" else None).update(Y, top)
    fold = made._folds["rows"]
    of_hits = np.repeat(fold.columns == fold.columns[0], 2) if metric == "PSP" else np.ones(2, bool)
    sums = fold._sums
    sums._totals[of_hits] *= -30 if metric == "abandonment" else 30
    made.save(tmp_path / "a.npz")
    with damaged("a.npz", match=rf"{metric}@[13] = .* share"):
        xc.State.load(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("name", "value"), [("n_resamples", 10**9), ("n_resamples", 2**40), ("n_labels", 2**40), ("bins", 2**40)]
)
def test_a_header_that_claims_terabytes_costs_nothing(name, value, tmp_path):
    Y, top, *_ = rows(16)
    xc.State((1, 3), ["P", "macro-F1", "ECE"], n_resamples=4).update(Y, top, 0).save(tmp_path / "a.npz")
    arrays = stored(tmp_path / "a.npz")
    header = json.loads(arrays["header"].tobytes()) | {name: value}
    np.savez(tmp_path / "a.npz", **serialization.sealed(header, arrays))
    with damaged("a.npz", match="cannot be"):
        xc.State.load(tmp_path / "a.npz")


@pytest.mark.parametrize("array", ["rows.sums", "rows.n_rows", "pairs.count", "pairs.score", "pairs.dtype", "header"])
@pytest.mark.parametrize("how", ["missing", "dtype", "shape", "negative"])
def test_arrays_that_cannot_be_are_named(array, how, tmp_path):
    arrays = saved(tmp_path / "a.npz")
    if how == "missing":
        del arrays[array]
    elif how == "dtype":
        arrays[array] = arrays[array].astype("f4") if arrays[array].dtype.kind != "U" else np.array("f16")
    elif how == "shape":
        arrays[array] = np.stack([arrays[array]] * 2)
    else:
        if arrays[array].dtype.kind == "U" or array in ("header", "rows.sums"):
            pytest.skip("has no sign")
        arrays[array] = arrays[array] - 10**6
    for same_digest in (True, False):
        np.savez(tmp_path / "b.npz", **(arrays if same_digest or array == "header" else resealed(arrays)))
        with damaged("b.npz"):
            xc.State.load(tmp_path / "b.npz")


def test_of_an_iterable_needs_no_top():
    Y, top, *_ = rows(17)
    blocks = ((Y[i : i + 7], top.rows(slice(i, i + 7))) for i in range(0, 60, 7))
    assert state.of(blocks, metrics=["P", "smECE"]).compute().equals(state.of(Y, top, metrics=["P", "smECE"]).compute())
    with refused("top"):
        state.of(Y, metrics="P")


# ---------------------------------------------------------------- calibration and intervals


def test_intervals_merge_as_all_else_does(tmp_path):
    Y, top, w, *_ = rows(20, n=120)
    options = {"inverse_propensity": w, "n_resamples": 200, "seed": 3}
    names = ["P", "PSP@3", "nDCG@5", "coverage"]
    whole = xc.State((1, 5), names, **options).update(Y, top, 0)
    one, other = (
        xc.State((1, 5), names, **options).update(Y[s], top.rows(s), s.start) for s in (slice(70, 120), slice(0, 70))
    )
    merged = one.merge(other)
    assert merged.intervals().equals(whole.intervals())
    assert bits(merged, tmp_path) == bits(whole, tmp_path)
    assert xc.State.load(tmp_path / "state.npz").intervals(0.9).equals(whole.intervals(0.9))
    found = whole.intervals()
    assert found["metric"].tolist() == ["P", "P", "PSP", "nDCG"]
    # the samples are those of rows copied as often as their weights say
    times = poisson_weights(3, np.arange(120), 200)
    copied = (np.repeat(np.arange(120), times[:, s]) for s in range(200))
    ends = np.quantile([xc.metrics.precision(Y[at], top.rows(at), 5)[0] for at in copied], [0.025, 0.975])
    assert found[["low", "high"]].iloc[1].tolist() == pytest.approx(ends.tolist(), abs=1e-12)
    usual = xc.evaluate(Y, top, metrics="P@5", confidence_level=0.95).iloc[0]
    assert found["high"][1] - found["low"][1] == pytest.approx(usual.high - usual.low, rel=0.35)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda Y, top: xc.State(1, "coverage", n_resamples=50), "n_resamples .*sums"),
        (lambda Y, top: xc.State(1, "P", n_resamples=50).update(Y, top), "first_row .*n_resamples"),
        (lambda Y, top: xc.State(1, "P").update(Y, top).intervals(), "n_resamples .*front"),
        (lambda Y, top: xc.State(1, "P").update(Y, top).counts(), "label-wise"),
    ],
)
def test_what_was_not_kept_is_named(call, message):
    Y, top, *_ = rows(21)
    with pytest.raises(ArgumentError, match=message):
        call(Y, top)
