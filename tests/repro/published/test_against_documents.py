"""The record beside the text of the documents: every row of every table, and the numbers of the sentences.

The documents are not part of the project; where their text does not lie beside it these tests are skipped.
"""

from __future__ import annotations

import re

import pandas as pd
import pytest

import xcrepro as xc

RECORD = {source: xc.published.table(source) for source in xc.published.sources()}
FILES = {"xcrepo": "000_*", "reeval": "001_*", "calibration": "002_*", "jain16": "003_*", "coverage": "004_*"}


@pytest.fixture(scope="session")
def document(root):
    """``document("jain16")``: the lines of its text, or a skip."""

    def lines(name: str) -> list[str]:
        folder = root.parent / "shared" / "seeds"
        path = next(iter(folder.glob(FILES[name])), None)
        if path is None:
            pytest.skip(f"the text of {name} is not in {folder}: none of its numbers is compared with it")
        return path.read_text(encoding="utf-8").split("\n")

    return lines


def printed_names(source: str, what: str) -> dict[str, str]:
    """Name of the record -> what ``source`` prints, where it differs."""
    names = xc.published.names()
    rows = names[(names["source"] == source) & (names["what"] == what)]
    return dict(zip(rows["name"], rows["printed"], strict=True))


def once(token: str) -> str:
    """A number of the converted text, which repeats what is set in bold or in mathematics four times."""
    quarter = len(token) // 4
    return token[:quarter] if token[:quarter] and token == 4 * token[:quarter] else token


def words_of(lines: list[str]) -> list[str]:
    """The document word by word, without the marks of its conversion."""
    text = re.sub(r"</?b>|± ", "", "\n".join(lines)).replace("COV𝛽 -PLT", "COV𝛽-PLT")
    return [once(token) for token in text.split()]


def rows_of(source: str) -> list[tuple[str, list[str]]]:
    """The record's rows of a table as a reader sees them: what stands before the numbers, and what is printed."""
    names, found = printed_names(source, "method"), []
    marks = {"isotonic": "-I"} if source.startswith("calibration") else {}
    for _, cells in RECORD[source].groupby("row", sort=True):
        first, printed = cells.iloc[0], [text or "-" for text in cells["printed"]]
        label = names.get(first["method"], first["method"]) + marks.get(first["variant"], "")
        if source.startswith("xcrepo:"):
            label += first["variant"]
            printed = printed[: SHORT.get((source, first["method"]), len(printed))]
        elif source == "coverage:table1":
            label = SHOWN.get(first["metric"], first["metric"])
        elif source.startswith("coverage:table"):
            beta = "𝛽" if source.endswith("2") else "𝛽" + first["variant"].removeprefix("beta")
            label = first["method"].replace("beta", beta)
            printed = [text for pair in zip(cells["printed"], cells["stderr"], strict=True) for text in pair]
        if source in OF_DATASETS:
            label, printed = (
                OF_DATASETS[source].get(first["dataset"], first["dataset"]),
                [t for t in printed if t != "-"],
            )
        found.append((label, printed))
    return found


SHORT = {("xcrepo:Wikipedia-500K", "CascadeXML"): 11, ("xcrepo:Wikipedia-500K", "DEXA"): 13,
         ("xcrepo:Delicious-200K", "FastXML"): 13}  # fmt: skip
"""Rows whose cells the page does not print all; what is in the note is what the record makes of them."""
OF_DATASETS = {"xcrepo:dataset-table": {}, "reeval:table2": {}, "jain16:table2": {"EURLex-4K": "EUR-Lex"}}
"""Tables with a row a dataset, and what they call it."""
SHOWN = {"P": "Precision", "N": "nDCG", "Cov": "Coverage", "macro_P": "Macro-Precision", "macro_R": "Macro-Recall",
         "macro_F1": "Macro-F1"}  # fmt: skip
TABLES = [
    source
    for source in RECORD
    if (source.startswith("xcrepo:") or "table" in source)
    if source != "calibration:table3" and not source.endswith("-headings")
]


@pytest.mark.parametrize("source", TABLES)
def test_every_row_stands_in_its_document(document, source):
    """All of a row's numbers side by side behind its name, and the rows in the order of the record."""
    words, at = words_of(document(source.partition(":")[0])), 0
    rows = rows_of(source)
    for place, (label, printed) in enumerate(rows, start=1):
        starts = (i for i in range(at, len(words)) if words[i] == printed[0] and words[i : i + len(printed)] == printed)
        found = next((i for i in starts if label in " ".join(words[max(0, i - 12) : i])), None)
        assert found is not None, f"{source}, row {place}: {label} {' '.join(printed)}"
        at = found + len(printed) if source != "xcrepo:dataset-table" else 0
    print(f"{source}: {len(rows)} rows stand in the document in this order")


@pytest.mark.parametrize("source", ["coverage:table2", "coverage:table3"])
def test_headings_of_the_coverage_tables(document, source):
    names = printed_names(source, "dataset")
    wide = xc.published.table(f"{source}-headings").pivot(index="dataset", columns="metric", values="printed")
    for dataset, (A, B) in zip(wide.index, wide.to_numpy(), strict=True):
        assert f"{names.get(dataset, dataset)},𝐴 = {A}, 𝐵 = {B}" in document("coverage"), dataset


def test_methods_and_references(document):
    text = re.sub(r"\s+", " ", " ".join(document("xcrepo")))
    at = 0
    for method in xc.published.methods().itertuples():
        entry = f"{method.method} ({method.authors}, {method.venue_printed})"
        # The page's own spacing around commas and brackets differs from entry to entry.
        loose = r"\s?".join(re.escape(c) for c in re.sub(r"\s", "", entry)) + r"\s*" + r"\s*".join(
            re.escape(word) for word in (method.category, method.features, method.language)
        )  # fmt: skip
        found = re.compile(loose).search(text, at)
        assert found, entry
        at = found.end()
    at = 0
    for reference in xc.published.references().itertuples():
        entry = re.sub(r"\s", "", f"{reference.ref}{reference.text}")
        found = re.compile(r"\s?".join(map(re.escape, entry))).search(text, at)
        assert found, reference.ref
        assert str(reference.year) in found.group() or pd.isna(reference.year)
        at = found.end()
    print(f"xcrepo: {len(xc.published.methods())} methods and {len(xc.published.references())} references found")


def test_calibration_datasets(document):
    source = "calibration:table3"
    datasets = printed_names(source, "dataset") | {"EURLex-4K": "Eurlex-4K", "Wikipedia-500K": "Wiki-500K"}
    text = document("calibration")
    for _, row in RECORD[source].groupby("row", sort=True):
        tokens = [datasets.get(row["dataset"].iloc[0], row["dataset"].iloc[0]), *row["printed"]]
        # The conversion writes 15,449 as 15,449 15449 15,449 15 , 449, without the first three blanks.
        cells = [
            t + t.replace(",", "") + t + t.replace(",", " , ") if "," in t else 4 * t for t in tokens[1:]
        ]  # fmt: skip
        assert " ".join([tokens[0], *cells]) in text, tokens
    print(f"{source}: {len(RECORD[source])} of {len(RECORD[source])} cells stand in the document in this order")


def test_jain16_formulas(document):
    text = "\n".join(document("jain16"))
    for formula in xc.published.formulas().itertuples():
        assert formula.formula in text, formula.name


# -- sentences ---------------------------------------------------------------------------------------------------------

# Where each number of a sentence stands: a pattern around it, in the order of the record.
SENTENCES = {
    "reeval:sec1": [r"only (\d+)% of labels", r"more than (\d+)% of all", r"(\d+)% of labels only", r"less than (\d+)%"],
    "reeval:sec5": [r"pick \$k = (\d+)\$", r"and \$k = (\d+)\$ for the rest", r"and \$k = (\d+)\$ for the rest"],
    "reeval:sec4": [r"datasets cover ([\d.]+)%", r", ([\d.]+)% and", r"and (\d+)% of training labels"],
    "jain16:fig1-caption": [r"in a dataset: (\d+) and", r"and (\d+) labels occur"],
    "jain16:fig3": [r"A \\neq ([\d.]+)"],
    "jain16:sec5": [r"45\) = ([\d.]+)", r"Wikipedia \( \$A = ([\d.]+)", r"A = 0.5, B = ([\d.]+)",
                    r"Amazon\*\* \( \$A = ([\d.]+)", r"A = 0.6, B = ([\d.]+)", r"Wiki10 dataset \( \$A = ([\d.]+)",
                    r"A = 0.55, B = ([\d.]+)", r"\)/2 = ([\d.]+)\$ and", r"2\.6\)/2 = ([\d.]+)"],
    "jain16:sec6.1": [r"required (\d+) and", r"required 4 and (\d+) hours"],
    "jain16:sec6.2": [r"only ([\d.]+) Gigabytes", r"place in ([\d.]+) milliseconds"],
    "jain16:sec7": [r"less than (\d+) minutes", r"and (\d+) hours", r"extra (\d+) seconds", r"and (\d+) minutes",
                    r"alpha = ([\d.]+)", r"gamma = (\d+)"],
    "calibration:sec2.2": [r"ECE would be ([\d.]+),", r"the ECE becomes ([\d.]+),"],
    "calibration:appendixA/fig6": [r"ECE@5 of ([\d.]+)%", r"P@5 of only ([\d.]+)%",
                                   r"an ECE@5 of (15[\d.]+)%", r"higher P@5 of ([\d.]+)%",
                                   r"\(ECE@5 of ([\d.]+)%", r"\(P@5 of ([\d.]+)%"],
    "calibration:appendixB": [r"decreases from ([\d.]+)%", r"to ([\d.]+)% with separate", r"improves from ([\d.]+)%",
                              r"85\.90% to ([\d.]+)%"],
    "calibration:appendixC": [r"ECE@1 of ([\d.]+) compared", r"compared to ([\d.]+) for Platt"],
    "coverage:sec6.3": [r"reached ([\d.]+)%", r"% and ([\d.]+)%"],
}  # fmt: skip


@pytest.mark.parametrize("source", SENTENCES)
def test_sentences(document, source):
    text = re.sub(r"\s+", " ", " ".join(document(source.split(":")[0])))
    found = [re.search(pattern, text) for pattern in SENTENCES[source]]
    missing = [pattern for pattern, match in zip(SENTENCES[source], found, strict=True) if not match]
    assert not missing
    printed = RECORD[source]["printed"]
    assert [match.group(1) for match in found] == [number for number in printed if number]
    print(f"{source}: {len(found)} of {len(found)} numbers found")


def test_all_sources_are_compared():
    """No table of the record is left out above."""
    more = {"calibration:table3", *(f"coverage:table{n}-headings" for n in (2, 3))}
    assert set(RECORD) == {*TABLES, *SENTENCES, *more}


# -- words -------------------------------------------------------------------------------------------------------------


def test_words_are_in_their_documents(document):
    said = xc.published.words()
    assert not said.duplicated(["document", "place", "said", "what"]).any()
    for name, rows in said.groupby("document"):
        text = re.sub(r"\s+", " ", " ".join(document(name)))
        for row in rows.itertuples():
            assert row.said in text, (name, row.said)
            assert (
                row.quantity == ""
                or row.what.partition(": ")[2] in re.sub(r" ([KM])\b| million", r"\1M", row.said) + row.said
            )
    print(f"{len(said)} numbers of sentences are in the documents")
