"""The registry: what the documents print, whole and consistent."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from xcrepro.data import registry
from xcrepro.errors import ArgumentError, DataMissing

ALL = registry.names(proprietary=True)
ROWS = [(name, source) for name in ALL for source in registry.get(name).published]


def bases_that_fit(name: str, source: str) -> list[str]:
    """Oracle: for which points do labels per point x points / labels and points per label round to what is printed?"""
    row = registry.published(name, source)
    points = registry.interval(name, "avg_points_per_label", source)
    labels = registry.interval(name, "avg_labels_per_point", source)
    sizes = {"train": row["n_train"], "all": row["n_train"] + row["n_test"]}
    scale = {basis: n / row["n_labels"] for basis, n in sizes.items()}
    return [basis for basis, s in scale.items() if s * labels[0] <= points[1] and points[0] <= s * labels[1]]


@pytest.mark.parametrize(("name", "source"), ROWS)
def test_basis_follows_from_the_printed_numbers(name, source):
    row = registry.published(name, source)
    if "avg_points_per_label" not in row:
        assert "points_per_label_basis" not in row
        return
    fits = bases_that_fit(name, source)
    assert len(fits) <= 1
    assert row["points_per_label_basis"] == (fits[0] if fits else "neither")
    assert fits or row["note"], "an average that contradicts the other one needs a note"


def test_bases_known_by_hand():
    assert registry.get("amazon-670k").points_per_label_basis == "train"
    assert registry.get("eurlex-4k").points_per_label_basis == "all"
    assert registry.get("bibtex").points_per_label_basis == "all"
    assert registry.published("amazon-670k", "jain16:table2")["points_per_label_basis"] == "all"
    assert [n for n in ALL if registry.get(n).points_per_label_basis == "neither"] == ["delicious", "rcv1-2k", "ads-9m"]


def test_same_rows_as_the_published_table(root):
    tables = [root / "data" / "published" / "datasets.csv", root.parent / "shared" / "published" / "datasets.csv"]
    table = next((path for path in tables if path.is_file()), None)
    if table is None:
        pytest.skip(f"datasets.csv is in none of {', '.join(map(str, tables))}")
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(ROWS)
    page = [row["name"] for row in rows if row["source"] == "xcrepo:dataset-table"]
    assert [registry.get(name).printed_name for name in registry.names()] == page
    # The registry's own text, so that digits count: 5.30 is not 5.3.
    printed = registry._printed()
    for row in rows:
        entry = registry.get(row["name"])
        ours = printed[entry.name, row["source"]]
        assert entry.group == row["group"]
        for number in ("n_features", "n_labels", "n_train", "n_test", "avg_points_per_label", "avg_labels_per_point"):
            assert str(ours.get(number, "")) == row[number], (row["source"], row["name"], number)
        bins = [row[column] for column in ("bin1_1_9", "bin2_10_99", "bin3_100_999", "bin4_ge1000")]
        assert list(map(str, ours.get("bins", [""] * 4))) == bins


def test_names_are_unique_and_27():
    assert len(registry.names()) == len(set(registry.names())) == 27
    assert set(ALL) - set(registry.names()) == {"ads-9m"}
    assert registry.get("ads-9m").proprietary
    assert not any(registry.get(name).proprietary for name in registry.names())


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("EURLex-4K", "eurlex-4k"),
        ("eurlex", "eurlex-4k"),
        ("EUR-Lex", "eurlex-4k"),
        ("eurlex_4k", "eurlex-4k"),
        ("EURLex-4.3K", "eurlex-4.3k"),
        ("Wikipedia-500K", "wikipedialarge-500k"),
        ("Wiki-500K", "wikipedialarge-500k"),
        ("LF-Wikipedia-500K", "lf-wikipedia-500k"),
        ("DeliciousLarge-200K", "deliciouslarge-200k"),
        ("Delicious-200K", "deliciouslarge-200k"),
        ("Delicious", "delicious"),
        ("wiki10", "wiki10-31k"),
        ("RCV1-X", "rcv1-2k"),
    ],
)
def test_aliases(alias, name):
    assert registry.get(alias).name == name


def test_no_name_means_two_datasets():
    seen = {}
    for name in ALL:
        entry = registry.get(name)
        for text in (name, entry.printed_name, *entry.aliases, *(r["printed_name"] for r in entry.published.values())):
            assert seen.setdefault(registry._plain(text), name) == name, text


def test_unknown_name_says_what_is_near():
    with pytest.raises(ArgumentError, match=r"'eurlx-4k'.*did you mean 'eurlex-4k'"):
        registry.get("eurlx-4k")
    with pytest.raises(ArgumentError, match=r"registry\.names"):
        registry.get("qqqqqq")
    with pytest.raises(ArgumentError, match="name must be"):
        registry.get(3)
    with pytest.raises(ArgumentError, match="'xcrepo:dataset-table'"):
        registry.published("bibtex", "jain16:table2")


def test_intervals_know_the_printed_digits():
    assert registry.interval("eurlex-4k", "avg_labels_per_point", "reeval:table2") == (5.295, 5.305)
    assert registry.interval("amazoncat-14k", "avg_points_per_label") == (1330.05, 1330.15)
    assert registry.interval("bibtex", "n_train") == (4880, 4880)
    assert registry.interval("orcas-800k", "n_features") is None


def test_propensity_parameters():
    expected = {
        (0.5, 0.4): "wikilshtc-325k wikipedialarge-500k lf-wikipedia-500k wikititles-500k lf-wikititles-500k",
        (0.6, 2.6): "amazon-670k amazon-3m amazontitles-670k amazontitles-3m lf-amazon-131k lf-amazontitles-131k "
        "lf-amazontitles-1.3m mm-amazontitles-300k",
    }
    by_name = {name: pair for pair, names in expected.items() for name in names.split()}
    for name in ALL:
        entry = registry.get(name)
        assert by_name.get(name, (0.55, 1.5)) == (entry.A, entry.B), name
        assert entry.propensity_source


def test_archives_are_napkinxc_s():
    datasets = pytest.importorskip("napkinxc.datasets").DATASETS
    without = {"mm-amazontitles-300k", "orcas-800k", "bibtex", "delicious", "ads-9m"}
    for name in ALL:
        entry = registry.get(name)
        if name in without:
            assert entry.archive is None
            assert entry.archive_format is None
            continue
        table = datasets[entry.archive]
        assert entry.archive_format == ("bow-v1" if "bow-v1" in table["formats"] else "bow")
        assert {"url", "dir", "train", "test"} <= set(table[entry.archive_format])
        # Only the twice-named Wikipedia set borrows another's archive.
        assert entry.archive == name or name == "lf-wikipedia-500k"


def test_what_comes_out_is_a_copy():
    registry.published("bibtex")["n_train"] = 0
    assert registry.published("bibtex")["n_train"] == 4880


def test_bins():
    with_bins = {name: registry.get(name).bins for name in ALL if registry.get(name).bins}
    assert with_bins == {
        "eurlex-4k": dict(zip(registry.BINS, (2413, 1205, 182, 1), strict=True)),
        "wiki10-31k": dict(zip(registry.BINS, (26545, 3084, 300, 16), strict=True)),
        "amazoncat-13k": dict(zip(registry.BINS, (3936, 5813, 2862, 719), strict=True)),
    }
    assert registry.get("eurlex-4k").bins_source == "reeval:table2"
    # Bins cannot hold more labels than there are; AmazonCat's hold them all.
    for name, bins in with_bins.items():
        assert sum(bins.values()) <= registry.published(name, "reeval:table2")["n_labels"]
    assert sum(with_bins["amazoncat-13k"].values()) == 13330


# --- the committed label counts ---


def test_eurlex_counts_meet_the_published_averages():
    counts = registry.label_counts("EURLex-4K")["count"].to_numpy()
    low, high = registry.interval("eurlex-4k", "avg_points_per_label")
    assert len(counts) == 3993
    assert counts.sum() == 102_741
    assert low <= counts.sum() / 3993 <= high
    low, high = registry.interval("eurlex-4k", "avg_labels_per_point")
    # The page's 15,539 + 3,809 points: the source of the counts has 34 fewer, and they carry no labels here.
    assert low <= counts.sum() / 19_348 <= high


def test_eurlex_counts_explain_the_other_version():
    counts = registry.label_counts("eurlex-4k")["count"].to_numpy()
    # Of the page's 3,993 ids, 3,956 have a point: as many labels as reeval and calibration have.
    assert np.count_nonzero(counts) == registry.published("eurlex-4k", "reeval:table2")["n_labels"] == 3956
    # Their bins are those of a train draw, so compare with what a draw of that size gives on average: every bin within
    # 2% of the labels. The real split is not in the source, and reeval prints another number of train points.
    from scipy.stats import hypergeom

    edges = [1, 10, 100, 1000, np.inf]
    expected = []
    for low, high in itertools.pairwise(edges):
        draw = hypergeom(19_314, counts, 15_449)
        expected.append((draw.cdf(high - 1) - draw.cdf(low - 1)).sum())
    difference = np.array(expected) - list(registry.get("eurlex-4k").bins.values())
    assert np.abs(difference).max() < 0.02 * 3956, expected


def test_bibtex_counts_meet_the_published_averages():
    counts = registry.label_counts("bibtex")
    assert list(counts.columns) == ["train", "test"]
    assert counts.shape == (159, 2)
    assert round(counts.to_numpy().sum() / 159, 2) == 111.71
    assert round(counts.to_numpy().sum() / (4880 + 2515), 2) == 2.40


def test_committed_counts_are_those_of_the_data(real_data):
    from xcrepro.data.read import read_sparse, read_xc

    Y = read_sparse(real_data("eurlex-4k-labels") / "Y_all_xcids_3993.txt")
    assert Y.shape == (19_314, 3993)
    assert np.array_equal(np.bincount(Y.indices, minlength=3993), registry.label_counts("eurlex-4k")["count"])
    counts = registry.label_counts("bibtex")
    for half in ("train", "test"):
        _, Y = read_xc(real_data("bibtex") / f"{half}.txt")
        assert np.array_equal(np.bincount(Y.indices, minlength=159), counts[half])


def test_no_counts_says_which_there_are():
    with pytest.raises(DataMissing, match="bibtex, eurlex-4k"):
        registry.label_counts("amazon-670k")


def test_the_counts_have_a_readme(root: Path):
    text = (root / "data" / "label_counts" / "README.md").read_text()
    assert re.search(r"eurlex-4k\.csv", text)
    assert re.search(r"bibtex\.csv", text)
