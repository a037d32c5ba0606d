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
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?|-")


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


def rows_of(source: str, label) -> list[list[str]]:
    """The record's rows of a table as a reader sees them: ``label(first cell)``, then what is printed."""
    return [
        [*label(cells.iloc[0]), *(text or "-" for text in cells["printed"])]
        for _, cells in RECORD[source].groupby("row", sort=True)
    ]


def named(source: str):
    """A label: the method as ``source`` prints it."""
    names = printed_names(source, "method")
    return lambda cell: [names.get(cell["method"], cell["method"])]


def agree(source: str, ours: list[list[str]], theirs: list[list[str]]) -> None:
    """Same rows in the same order, every token alike; says which row is not."""
    for place, (a, b) in enumerate(zip(ours, theirs, strict=False), start=1):
        assert a == b, f"{source}, row {place}"
    assert len(ours) == len(theirs), source
    cells = len(RECORD[source])
    print(f"{source}: {cells} of {cells} cells stand in the document in this order")


# -- xcrepo ------------------------------------------------------------------------------------------------------------


def page_tables(lines: list[str]) -> dict[str, list[list[str]]]:
    """The page's benchmark tables: heading -> rows of [method with its mark, cells]."""
    lines = [line.strip() for line in lines]
    heads = [i for i, line in enumerate(lines) if line == "Method"]
    tables = {}
    for head, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        start = lines.index("Train time (hr)", head) + 1
        rows: list[list[str]] = []
        name: list[str] = []
        for token in " ".join(lines[start:end]).split():
            if token.startswith(("LF-Wikipedia-500K", "[01]")):
                break
            if not NUMBER.fullmatch(token):
                name = [*name, token] if name else [token]
                continue
            if name:
                rows.append([" ".join(name)])
                name = []
            if len(rows[-1]) < 15:
                rows[-1].append(token)
        heading = next(line for line in reversed(lines[:head]) if line)
        tables[heading] = rows
    return tables


def test_benchmarks(document):
    tables = page_tables(document("xcrepo"))
    sources = [s for s in xc.published.sources() if s.startswith("xcrepo:") and s != "xcrepo:dataset-table"]
    assert [s.removeprefix("xcrepo:") for s in sources] == list(tables)
    # Rows whose cells the page does not print all; what is in the note is what the record makes of them.
    short = {("xcrepo:Wikipedia-500K", "CascadeXML"): 11, ("xcrepo:Wikipedia-500K", "DEXA"): 13,
             ("xcrepo:Delicious-200K", "FastXML"): 13}  # fmt: skip
    for source in sources:
        names = printed_names(source, "method")
        ours = []
        for _, cells in RECORD[source].groupby("row"):
            first = cells.iloc[0]
            tokens = [text or "-" for text in cells["printed"]]
            shown = short.get((source, first["method"]), 14)
            assert set(tokens[shown:]) <= {"-"}
            assert (shown == 14) or cells["note"].ne("").any()
            ours.append([names.get(first["method"], first["method"]) + first["variant"], *tokens[:shown]])
        agree(source, ours, tables[source.removeprefix("xcrepo:")])


def test_dataset_table_of_the_page(document):
    text = [line.strip() for line in document("xcrepo")]
    start = next(i for i, line in enumerate(text) if line.startswith("MM-AmazonTitles-300K"))
    end = text.index("Method")
    tokens = " ".join(text[start:end]).split()
    for (_, dataset), cells in RECORD["xcrepo:dataset-table"].groupby(["row", "dataset"]):
        wanted = [text for text in cells["printed"] if text]
        runs = [i for i in range(len(tokens)) if tokens[i : i + len(wanted)] == wanted]
        assert runs, (dataset, wanted)
        before = [" ".join(tokens[max(0, i - 12) : i]) for i in runs]
        assert any(dataset in text for text in before), (dataset, before)
    print(f"xcrepo:dataset-table: {len(RECORD['xcrepo:dataset-table'])} of "
          f"{len(RECORD['xcrepo:dataset-table'])} cells stand in the document in this order")  # fmt: skip


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


# -- reeval ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "width"), [("reeval:table3", 10), ("reeval:table4", 7)])
def test_reeval_tables(document, source, width):
    lines = [line.split("\t") for line in document("reeval")]
    rows, dataset = [], ""
    for cells in lines:
        if cells[0].endswith("K") and not any(cells[1:]) and len(cells) == width:
            dataset = cells[0]
        elif dataset and len(cells) == width and cells[1].replace(".", "").isdigit():
            rows.append([dataset, *cells])
    method = named(source)
    agree(source, rows_of(source, lambda cell: [cell["dataset"], *method(cell)]), rows)


def test_reeval_datasets(document):
    lines = [line.split("\t") for line in document("reeval")]
    start = next(i for i, cells in enumerate(lines) if cells[0] == "Dataset")
    agree("reeval:table2", rows_of("reeval:table2", lambda cell: [cell["dataset"]]), lines[start + 1 : start + 4])


# -- calibration -------------------------------------------------------------------------------------------------------


def once(token: str) -> str:
    """A number of the converted text, which repeats what is set in bold or in mathematics four times."""
    quarter = len(token) // 4
    return token[:quarter] if token[:quarter] and token == 4 * token[:quarter] else token


def calibration_rows(lines: list[str], title: str) -> list[list[str]]:
    """Rows [label, numbers] of the table whose caption begins with ``title``; blocks keep their heading in front."""
    start = next(i for i, line in enumerate(lines) if line.startswith(title))
    rows, block = [], ""
    for line in lines[start + 1 :]:
        tokens = [once(token) for token in line.split()]
        if not tokens or line.startswith(("Refer to", "Table ")):
            break
        if tokens[0].startswith("k="):
            block, *tokens = tokens
        numbers = [bool(NUMBER.fullmatch(token)) for token in tokens]
        if len(tokens) > 1 and not numbers[0] and all(numbers[1:]):
            rows.append([block, *tokens])
        elif len(tokens) == 1:
            block = tokens[0]
    return rows


@pytest.mark.parametrize("number", [2, 4, 7, 8])
def test_calibration_errors(document, number):
    source = f"calibration:table{number}"
    theirs = calibration_rows(document("calibration"), f"Table {number}. ")
    block = "k={}" if number in (7, 8) else ""
    suffix = {"none": "", "isotonic": "-I"}
    label = lambda cell: [block.format(cell["k"]), cell["method"] + suffix[cell["variant"]]]  # noqa: E731
    agree(source, rows_of(source, label), theirs)


@pytest.mark.parametrize("number", [5, 6])
def test_calibration_comparisons(document, number):
    source = f"calibration:table{number}"
    datasets, method = printed_names(source, "dataset"), named(source)
    label = lambda cell: [datasets.get(cell["dataset"], cell["dataset"]), *method(cell)]  # noqa: E731
    agree(source, rows_of(source, label), calibration_rows(document("calibration"), f"Table {number}. "))


def test_calibration_example(document):
    lines = document("calibration")
    start = next(i for i, line in enumerate(lines) if line.startswith("Table 1. "))
    rows = [line.split() for line in lines[start + 3 : start + 5]]
    theirs = [[once(token) for token in tokens if once(token).startswith("0.")] for tokens in rows]
    agree("calibration:table1", rows_of("calibration:table1", lambda cell: []), theirs)


def test_calibration_datasets(document):
    source = "calibration:table3"
    datasets = printed_names(source, "dataset") | {"EURLex-4K": "Eurlex-4K", "Wikipedia-500K": "Wiki-500K"}
    text = document("calibration")
    for tokens in rows_of(source, lambda cell: [datasets.get(cell["dataset"], cell["dataset"])]):
        # The conversion writes 15,449 as 15,449 15449 15,449 15 , 449, without the first three blanks.
        cells = [
            t + t.replace(",", "") + t + t.replace(",", " , ") if "," in t else 4 * t for t in tokens[1:]
        ]  # fmt: skip
        assert " ".join([tokens[0], *cells]) in text, tokens
    print(f"{source}: {len(RECORD[source])} of {len(RECORD[source])} cells stand in the document in this order")


# -- jain16 ------------------------------------------------------------------------------------------------------------


def jain16_tables(lines: list[str]) -> dict[str, list[list[str]]]:
    """``"3a"`` -> rows of [method, cells]."""
    tables: dict[str, list[list[str]]] = {}
    number = part = ""
    for line in lines:
        if caption := re.match(r"Table ([34]):", line):
            number = caption.group(1)
        elif heading := re.match(r"\(([a-f])\) ", line):
            part = heading.group(1)
        else:
            cells = re.sub(r"</?b>", "", line).split("\t")
            if number and part and len(cells) > 3 and all(NUMBER.fullmatch(cell) for cell in cells[1:]):
                tables.setdefault(number + part, []).append(cells)
    return tables


def test_jain16_tables(document):
    tables = jain16_tables(document("jain16"))
    assert sorted(tables) == [f"{n}{part}" for n in "34" for part in "abcdef"]
    for place, theirs in tables.items():
        source = f"jain16:table{place}"
        agree(source, rows_of(source, named(source)), theirs)


def test_jain16_datasets(document):
    lines = [line.split("\t") for line in document("jain16")]
    start = next(i for i, cells in enumerate(lines) if cells[0] == "Dataset")
    label = lambda cell: ["EUR-Lex" if cell["dataset"] == "EURLex-4K" else cell["dataset"]]  # noqa: E731
    agree("jain16:table2", rows_of("jain16:table2", label), lines[start + 1 : start + 7])


def test_jain16_formulas(document):
    text = "\n".join(document("jain16"))
    for formula in xc.published.formulas().itertuples():
        assert formula.formula in text, formula.name


# -- coverage ----------------------------------------------------------------------------------------------------------


def test_coverage_table1(document):
    shown = {"P": "Precision", "N": "nDCG", "Cov": "Coverage", "macro_P": "Macro-Precision", "macro_R": "Macro-Recall",
             "macro_F1": "Macro-F1"}  # fmt: skip
    lines = document("coverage")
    start = next(i for i, line in enumerate(lines) if line.startswith("Metric full labels"))
    theirs = [line.split() for line in lines[start : start + 20] if len(line.split()) == 7]
    label = lambda cell: [shown.get(cell["metric"], cell["metric"])]  # noqa: E731
    agree("coverage:table1", rows_of("coverage:table1", label), theirs)


@pytest.mark.parametrize("number", [2, 3])
def test_coverage_tables(document, number):
    source = f"coverage:table{number}"
    lines = document("coverage")
    start = next(i for i, line in enumerate(lines) if f"Table {number}: Mean performance" in line)
    theirs, heading = [], ["", "", ""]
    for line in lines[start:]:
        if found := re.fullmatch(r"(\S+),𝐴 = ([\d.]+), 𝐵 = ([\d.]+)", line):
            heading = list(found.groups())
        elif "PLT" in line and "±" in line:
            method, numbers = line.replace("COV𝛽 -PLT", "COV𝛽-PLT").split(" ", 1)
            theirs.append([*heading, method, *numbers.replace("± ", "").split()])
        elif heading[0] and re.match(r"[A-Z] ADD|6\.2 |REFER", line):
            break
    propensity = xc.published.table(f"{source}-headings").pivot(index="dataset", columns="metric", values="printed")
    names = printed_names(source, "dataset")
    ours = []
    for _, cells in RECORD[source].groupby("row"):
        first = cells.iloc[0]
        beta = "𝛽" if number == 2 else "𝛽" + first["variant"].removeprefix("beta")
        ours.append([names.get(first["dataset"], first["dataset"]), *propensity.loc[first["dataset"]],
                     first["method"].replace("beta", beta),
                     *(text for pair in zip(cells["printed"], cells["stderr"], strict=True) for text in pair)])  # fmt: skip
    agree(source, ours, theirs[: len(ours)] if number == 2 else theirs)


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
    compared = {s for s in RECORD if s.startswith("xcrepo:")} | set(SENTENCES)
    compared |= {"reeval:table2", "reeval:table3", "reeval:table4"}
    compared |= {f"calibration:table{n}" for n in range(1, 9)}
    compared |= {"jain16:table2", *(f"jain16:table{n}{part}" for n in "34" for part in "abcdef")}
    compared |= {f"coverage:table{n}" for n in (1, 2, 3)} | {f"coverage:table{n}-headings" for n in (2, 3)}
    assert set(RECORD) == compared


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
