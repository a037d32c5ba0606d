"""``xcrepro reproduce``: which notebooks, what it will take, printed beside ours, and that what was stopped goes on."""

from __future__ import annotations

import csv
import math
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xcrepro as xc
from tests.refused import damaged
from tests.repro.conftest import project as own_project
from xcrepro.__main__ import main
from xcrepro.core.data import load, locate, registry
from xcrepro.core.errors import ArgumentError, DataMissing
from xcrepro.repro.engine import manifest, processes, recorded
from xcrepro.repro.inputs import baselines, download
from xcrepro.repro.published import compare_with_print
from xcrepro.tools.reports import reproduce

ROOT = Path(__file__).resolve().parents[3]


# ---------------------------------------------------------------- which


@pytest.mark.parametrize("name", ["eurlex-4k", "bibtex", "wiki10-31k", "lf-amazontitles-131k"])
def test_every_table_with_a_row_of_a_dataset_brings_its_notebooks(name):
    """Counted again from the files: a source's rows, the listing's items, the notebooks' parameters."""
    called = {entry_name.casefold() for entry_name in registry.get(name).all_names}
    sources = set()
    for file in sorted((ROOT / "data/published").glob("*.csv")):
        with file.open(encoding="utf-8") as lines:
            sources |= {
                row["source"]
                for row in csv.DictReader(lines)
                if row.get("dataset", "").casefold() in called and "metric" in row
            }
    with (ROOT / "notebooks/reproduced.csv").open(encoding="utf-8") as lines:
        listing = [row for row in csv.DictReader(lines) if row["kind"] == "table"]
    wanted = {
        item
        for row in listing
        for item in row["items"].split()
        if f"{row['document']}:{row['name'].split(' of ')[-1].replace(' ', '')}".casefold()
        in {one.casefold() for one in sources}
    }
    entries = manifest.load(ROOT)
    wanted = {item for item in wanted if {"dataset", "folder"} <= entries[item].official().keys()}
    steps = reproduce.plan([name])
    assert wanted
    assert wanted <= {step.entry.id for step in steps}
    assert {step.dataset for step in steps} == {name}
    assert {id for step in steps for id in step.sources} >= {
        id for id in sources if id.endswith(registry.get(name).printed_name)
    }


def test_datasets_and_items_restrict_each_other():
    steps = reproduce.plan(["jain16/table3_table4", "EUR-Lex", "wiki10-31k"])
    assert [step.dataset for step in steps] == ["eurlex-4k", "wiki10-31k"]
    assert {step.entry.id for step in steps} == {"jain16/table3_table4"}
    assert steps[0].sources == ("jain16:table4a",)
    assert steps[1].sources == ("jain16:table3c", "jain16:table4c")
    assert {step.entry.id.partition("/")[0] for step in reproduce.plan(["reeval"])} == {"reeval"}
    alone = {step.entry.id: step for step in reproduce.plan(["eurlex-4k"])}
    assert alone["jain16/fig3c_fig3d_training"].given["trees"] == 50  # as in the paper; 20 in the committed run
    assert {"SLEEC", "kNN", "PD-Sparse"} <= {*alone["xcrepo/tables_benchmarks"].given["models"]}
    assert "XT" not in alone["xcrepo/tables_benchmarks"].given["models"]
    assert "calibration/table4_table8_fig13_to_16" not in alone
    assert not any("unfiltered" in name for name in alone["xcrepo/tables_benchmarks"].given["models"])
    words = {step.entry.id: step for step in reproduce.plan(["lf-amazontitles-131k"])}
    for item in ("xcrepo/tables_benchmarks", "calibration/table4_table8_fig13_to_16"):
        models = words[item].given["models"]
        assert {"PLT", "PLT, unfiltered"} <= {*models}
        assert len({*models}) == len(models)


def test_a_method_of_which_nothing_is_printed_is_not_trained():
    """Mediamill's table has rows of PD-Sparse and Parabel, and they are empty."""
    for id, name in (("xcrepo:Mediamill", "mediamill"), ("xcrepo:Delicious-200K", "deliciouslarge-200k")):
        table = xc.published.table(id)
        told = {*table[(table["printed"] != "") & table["metric"].isin(["P", "N", "PSP", "PSN"])]["method"]}
        empty = {*table["method"]} - told
        assert empty
        assert not empty & {*reproduce.trained(id, name)}
        assert {*reproduce.trained(id, name)} == told & (baselines.RECIPES | baselines.VARIANTS).keys()


@pytest.mark.parametrize("words", [["jain61"], ["eurlex-4m"], ["jain16/table9"], ["coverage/theorem51_bound"], ["tib"]])
def test_what_no_document_prints_is_refused(words):
    with pytest.raises(ArgumentError):
        reproduce.plan(words)


# ---------------------------------------------------------------- what it will take


def cost(dataset, points, labels, item, training, seconds, gb=1.0) -> dict:
    return dict(zip(reproduce.COST_COLUMNS, (dataset, points, labels, item, training, seconds, gb), strict=True))


def test_an_estimate_grows_by_the_measured_power_and_counts_a_training_once():
    costs = [
        *(cost("small", 10, 10, item, training, 2.0, 1.0) for item in ("a/x", "a/y") for training in ("", "PLT 1")),
        *(cost("large", 100, 100, item, training, 20.0, 4.0) for item in ("a/x", "a/y") for training in ("", "PLT 2")),
    ]
    assert reproduce.estimate(costs, ["a/x", "a/y"], 100, 100) == (pytest.approx(60.0), pytest.approx(4.0), [])
    time, memory = (100**power for power in reproduce.GROWTH)
    found = reproduce.estimate(costs, ["a/x", "a/y"], 1000, 1000)[:2]
    assert found == (pytest.approx(60.0 * time), pytest.approx(4.0 * memory))
    assert reproduce.estimate(costs, ["a/x"], 10, 10)[0] == pytest.approx(4.0)
    assert reproduce.estimate(costs, ["a/x", "a/z"], 10, 10)[2] == ["a/z"]
    assert reproduce.estimate([], ["a/x"], 10, 10) == (0.0, 0.0, ["a/x"])
    said = "5 s, 10 minutes, 2 hours, 10 days"
    assert ", ".join(map(reproduce.clock, (5, 600, 7200, 864_000))) == said


def test_what_runs_at_once_adds_up_and_long_training_offers_another_way(monkeypatch):
    monkeypatch.setattr(reproduce.threads, "count", lambda: 4)
    monkeypatch.setattr(processes, "room", lambda: 8.0)
    steps = reproduce.plan(["eurlex-4k"])
    gb = sorted(map(reproduce.memory, steps), reverse=True)
    costs = [row for row in reproduce.read_costs(ROOT / reproduce.COSTS) if row["dataset"] == "eurlex-4k"]
    assert gb[0] == pytest.approx(1.4 * max(row["gb"] for row in costs))
    for jobs, at_once in ((1, 1), (None, 4), (9, 4)):
        told = reproduce.ahead("eurlex-4k", steps, jobs)
        assert f"{sum(gb[:at_once]):.1f} GB of memory for the {at_once} largest" in told
        assert ("fewer at once" in told) == (sum(gb[:at_once]) > 8)
        assert "saved predictions" not in told
        assert "times as small" not in told
    told = reproduce.ahead("amazon-670k", reproduce.plan(["amazon-670k"]))
    assert told.index("-p predictions PATH") < told.index("an estimate")
    assert " days" in told
    assert "times as small, so it may be several times as much" in told


def test_the_time_of_recordings_counts_splits_and_a_training_once(monkeypatch):
    size = ("tib", 13305, 8862)
    rows = [cost(*size, "a/x", "", 60.0), cost(*size, "a/x", "PLT 1", 30.0), cost(*size, "a/y", "PLT 1", 30.0)]
    monkeypatch.setattr(reproduce, "read_costs", lambda _: rows)

    def of(item, splits):
        return types.SimpleNamespace(dataset="tib", runs=range(splits), entry=types.SimpleNamespace(id=item))

    assert reproduce.time_of([of("a/x", 1)]) == (pytest.approx(90), [])
    assert reproduce.time_of([of("a/x", 10), of("a/y", 10), of("a/z", 1)]) == (pytest.approx(900), ["a/z"])
    assert reproduce.costs_for("gutenberg") == [], "a dataset of the kit tells of itself only"


def test_costs_are_kept_and_damage_is_named(tmp_path):
    path = tmp_path / "costs.csv"
    assert reproduce.read_costs(path) == []
    first = [cost("b", 10, 10, "a/x", "", 2.5, 0.25), cost("b", 10, 10, "a/y", "PLT 1", 3.0)]
    reproduce.keep_costs(path, first)
    assert reproduce.read_costs(path) == first
    reproduce.keep_costs(path, [cost("b", 10, 10, "a/x", "", 7.0)])
    assert [row["seconds"] for row in reproduce.read_costs(path)] == [7.0, 3.0]
    text = path.read_text()
    path.write_text(text.replace("7.0", "soon"))
    with damaged(path, 2):
        reproduce.read_costs(path)
    path.write_text(text.replace("seconds", "time"))
    with damaged(path, 1):
        reproduce.read_costs(path)


# ---------------------------------------------------------------- printed beside ours


def test_ours_is_what_the_notebook_itself_sets_beside_print():
    """The notebook of the benchmark tables computes the same comparison from its own data frames."""
    of = pd.read_csv(ROOT / "figures/xcrepo/tables_benchmarks-beside.csv")
    for name in ("bibtex", "delicious"):
        made = recorded.read(ROOT / f"data/recorded/xcrepo/tables_benchmarks/{name}.csv")
        found = {"xcrepo/tables_benchmarks": [*compare_with_print.cells("xcrepo/tables_benchmarks", made.tables)]}
        rows, missing = reproduce.beside(
            name, f"xcrepo:{name.title()}", ["xcrepo/tables_benchmarks"], found, {}, 2515, found
        )
        code = {"P": "P", "nDCG": "N", "PSP": "PSP", "PSnDCG": "PSN"}
        mine = {(row["method"].removesuffix(" *"), row["metric"]): row for row in rows}
        part = of[of["dataset"] == name.title()]
        assert len(part) >= 36
        for line in part.itertuples():
            row = mine[line.model, f"{code[line.metric]}@{line.k}"]
            assert float(row["printed"]) == line.printed
            assert float(row["ours"]) == pytest.approx(line.ours, abs=0.006)
            assert float(row["difference"]) == pytest.approx(line.difference, abs=0.006)
            assert float(row["test points"].removeprefix("± ")) == pytest.approx((line.high - line.low) / 2, abs=0.006)
        assert not {method for method, _ in missing} & {*part["model"]}
    missing = reproduce.beside(
        "eurlex-4k", "xcrepo:EURLex-4K", ["xcrepo/tables_benchmarks"], {}, {}, 3809, ["xcrepo/tables_benchmarks"]
    )[1]
    sizes = [number for (_, why), number in missing.items() if "size or a time" in why]
    of = xc.published.table("xcrepo:EURLex-4K").query("metric in ['model_size_gb', 'train_time_hr'] and printed != ''")
    assert sum(sizes) == len(of) > 10


def cells(part: str = "ours", **columns: list) -> list[compare_with_print.Cell]:
    """Those of a recorded table, whose cells are texts with an error beside them."""
    rows = zip(*columns.values(), strict=True)
    made = [{name: (str(value), "") for name, value in zip(columns, row, strict=True)} for row in rows]
    return [*compare_with_print.cells("a/x", {part: made})]


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (
            {"P@1": 70.0, "PSnDCG@3 (ideal k)": 30.0, "Cov@5 (reachable)": 20.0, "Cov@5 (test labels)": 10.0},
            {"none P@1": 70.0, "none PSN@3": 30.0, "none Cov_norm@5": 20.0, "none Cov@5": 10.0},
        ),
        ({"PSP@1 (unnormalised)": 1.0, "macro-F1 (10-99)": 2.0, "n": 5, "low": 0.1}, {}),
        (
            {"k": 5, "ECE": 3.0, "ECE-I": 1.0, "Brier platt": 9.0, "ACE before": 2.0, "ACE after": 1.5},
            {"none ECE@5": 3.0, "isotonic ECE@5": 1.0, "platt Brier@5": 9.0, "none ACE@5": 2.0, "isotonic ACE@5": 1.5},
        ),
    ],
)
def test_each_form_of_a_wide_table_is_read(columns, found):
    one = {name: [value] for name, value in columns.items()}
    assert {f"{c.state} {c.metric}@{c.k}": c.value for c in cells(model=["PLT"], **one) if c.method == "PLT"} == found
    assert cells("evidence", model=["PLT"], **one) == cells(name=["PLT"], **one) == []


def test_a_long_table_has_intervals_and_its_rules_are_methods():
    ends = {"value": [60.0, "nan"], "low": [59.0, 1], "high": [62.0, 2]}
    [cell] = cells(rule=["COV-PLT", "BR"], metric=["coverage", "P"], k=[1, 1], **ends)
    assert (cell.method, cell.metric, cell.half) == ("COV-PLT", "Cov", 1.5)


def test_what_chance_allows():
    """Test points, else their largest error; splits in place of both errors of one; seeds; the printed error; rounding."""

    def row(metric="P", k="1", stderr="", half=math.nan, sd=math.nan, spread=None, points=2500):
        line = types.SimpleNamespace(source="xcrepo:Mediamill", method="PLT", variant="", metric=metric)
        vars(line).update(printed="50.00", value=50.0, stderr=stderr, doubt=False)
        cell = compare_with_print.Cell("a/x", "", "PLT", "none", metric, k, 52.0, sd, half)
        return compare_with_print.row(line, k, cell, [cell], points, spread)

    # The most that a mean of 2,500 numbers from 0 to 1 may be off is 1.96 * 100 * sqrt(.52 * .48 / 2500) = 1.958.
    assert (row()["chance"], row()["test points"]) == ("beyond", "at most ± 1.96")
    assert row(points=2300)["chance"] == "within"
    assert row(half=1.99)["chance"] == "beyond"
    assert row(half=1.999)["chance"] == "within"  # and half a unit of the last digit
    assert row(half=1.0, sd=1.1)["split"] == "± 2.16"
    assert row(half=1.0, sd=1.1)["chance"] == "within"
    assert row(half=1.6, sd=0.8)["chance"] == "beyond"  # the larger of 1.6 and 1.57, not both
    assert row(half=1.0, spread={"PLT": 0.9})["chance"] == "within"
    assert row(half=1.0, spread={"PLT": 0.5})["chance"] == "beyond"
    assert row(half=1.0, spread={"PLT": 0.9}, k="3")["training"] == ""
    assert row(half=1.0, stderr="0.9")["chance"] == "within"
    assert row(metric="PSP")["chance"] == "cannot tell"
    assert row(half=1.0)["difference"] == "+2.00"


# ---------------------------------------------------------------- from the word to the page

PARAMETERS = 'dataset = "tib"\nfolder = ""\nsplit = None\nmodels = ["FastXML"]'
CELL = """
import pandas as pd
from pathlib import Path
from xcrepro import repro
item = repro.item("demo/{name}", globals())
shift = float(Path(folder, "number.txt").read_text())
Path(folder).parent.joinpath("ran.txt").open("a").write("{name} ")
{more}
item.check(pd.DataFrame({{"model": models, "P@1": [76.37 + shift] * len(models)}}), "ours")
"""


project = own_project


@pytest.fixture
def demo(project, tmp_path, monkeypatch):
    """A project of two notebooks on EURLex-4K's benchmark table, and its data in a folder: what ran, and their folder."""
    home = tmp_path / "given" / "eurlex-4k"
    home.mkdir(parents=True)
    (home / "number.txt").write_text("0.5")

    def add(name: str, more: str = "") -> None:
        project.add(name, CELL.format(name=name, more=more), parameters=PARAMETERS)

    add("one")
    add("two")
    rows = ["document,kind,name,shows,items,extent,why"]
    rows += ["xcrepo,table,Benchmark table of EURLex-4K,rows,demo/one demo/two,printed,a download"]
    (project.root / "notebooks/reproduced.csv").write_text("\n".join(rows) + "\n")
    here = {"there": True}

    def fetch(name, **_):
        if not here["there"]:
            raise DataMissing(f"{name} is not to be had")

    monkeypatch.setattr(download, "fetch", fetch)
    monkeypatch.setattr(locate, "at_hand", lambda name: here["there"])
    monkeypatch.setattr(locate, "home_of", lambda name, path=None: home)
    monkeypatch.setattr(locate, "count_splits", lambda name, path: 1)
    return project, home, add, here


def ran(home: Path) -> list[str]:
    file = home.parent / "ran.txt"
    names = file.read_text().split() if file.is_file() else []
    file.unlink(missing_ok=True)
    return sorted(names)


def test_from_the_word_to_the_page(demo, capsys, monkeypatch):
    """Run, run again, stopped half-way, a notebook that fails, damaged notes, other data."""
    project, home, add, here = demo
    page = project.root / "build/reproduced/eurlex-4k/page.md"
    assert main(["reproduce", "eurlex-4k", "--dry"]) == 0
    assert ("demo/one  xcrepo:EURLex-4K" in capsys.readouterr().out, ran(home), page.exists()) == (True, [], False)

    # Stopped when the first has ended: the second run does the other one alone.
    with monkeypatch.context() as patch:
        patch.setattr(processes.Child, "ended", lambda self, own=processes.Child.ended: own(self) and stop(self))
        seen = []

        def stop(child):
            if seen:
                raise KeyboardInterrupt
            seen.append(child)
            return True

        assert main(["reproduce", "eurlex-4k", "--jobs", "1"]) == 130
    assert "Traceback" not in capsys.readouterr().err
    assert main(["reproduce", "eurlex-4k"]) == 0
    out = capsys.readouterr().out
    assert ("split 0  unchanged" in out, "split 0  ok" in out) == (True, True)
    ran(home)
    rows = pd.read_csv(page.with_name("rows.csv"))
    row = rows[rows["method"] == "FastXML *"].iloc[0]
    assert (row["metric"], row["printed"], row["ours"], row["difference"]) == ("P@1", 76.37, 76.87, 0.5)
    text = page.read_text()
    assert "xcrepo:EURLex-4K" in text
    assert "not trained here" in text
    assert "demo/one, ours table" in text
    assert str(project.root) not in text

    assert main(["reproduce", "eurlex-4k"]) == 0
    assert ran(home) == []

    # What a run noted and is damaged is made again. A notebook that fails is named, and the others' numbers are there.
    tables = project.root / "build/notebooks/recorded/demo/two/eurlex-4k-0.tables"
    tables.write_text(tables.read_text().replace("76.87", "99.99"))
    add("one", 'raise ValueError("planted")')
    assert main(["reproduce", "eurlex-4k"]) == 1
    text = page.read_text()
    assert ("planted" in text, "demo/two, ours table" in text) == (True, True)
    assert (ran(home), "76.87" in text, "stand-in" in text) == (["one", "two"], True, False)

    # Other data: all anew; none: what fetch says.
    add("one")
    (home / "number.txt").write_text("1.5")
    (home / "stand-in.txt").write_text("made up")
    assert main(["reproduce", "eurlex-4k"]) == 0
    assert (ran(home), "77.87" in page.read_text(), "stand-in" in page.read_text()) == (["one", "two"], True, True)
    here["there"] = False
    assert main(["reproduce", "eurlex-4k"]) == 2
    assert "is not to be had" in capsys.readouterr().err


BESIDE = """
from types import SimpleNamespace as Made
from xcrepro.core.data import registry
about = {"name": "eurlex-4k", "title": "EURLex-4K", "comparable": True, "notes": (), "test": Made(Y=pd.DataFrame([0] * 9))}
psp = pd.DataFrame({"model": models, "metric": "PSP", "k": 1, "value": 30.0, "low": 28.0, "high": 32.0})
item.beside(Made(entry=registry.get("eurlex-4k"), **about), psp, "xcrepo")
item.check(pd.DataFrame({"model": models, "PSP@1": 30.0}), "psp")
"""


def test_a_restricted_run_adds_to_the_page_and_has_the_intervals_of_its_notebook(demo):
    project, home, add, _ = demo
    add("one", BESIDE)

    def page() -> tuple[str, pd.DataFrame]:
        home = project.root / "build/reproduced/eurlex-4k"
        rows = pd.read_csv(home / "rows.csv", keep_default_na=False)
        return (home / "page.md").read_text(), rows[rows["method"] == "FastXML *"].set_index("metric")

    assert main(["reproduce", "eurlex-4k", "demo/one"]) == 0
    text, rows = page()
    assert rows.loc["PSP@1", ["test points", "chance"]].tolist() == ["± 2.00", "beyond"]  # 26.6 is printed
    assert "demo/two was not asked for" in text
    ran(home)
    assert main(["reproduce", "eurlex-4k", "demo/two"]) == 0
    text, rows = page()
    assert ran(home) == ["two"]
    assert rows.loc["PSP@1", "by"] == "demo/one, psp table"
    assert "not asked for" not in text
    # What is out of date is not on the page, and the page says so.
    add("one", "x = 1")
    assert main(["reproduce", "eurlex-4k", "demo/two"]) == 0
    text, rows = page()
    assert "PSP@1" not in rows.index
    assert "an earlier run is out of date: the notebook's code changed" in text


def test_the_labels_of_each_bin_are_beside_print(monkeypatch):
    """reeval's table 2 on counts that are made up: one label of 9 points, three of 10, none, one of 1,000."""
    counts = np.array([0, 9, 10, 10, 10, 1000])
    Y = np.zeros((1, 6))
    made = types.SimpleNamespace(label_counts=counts, train=types.SimpleNamespace(X=None, Y=sparse.csr_matrix(Y)))
    made.test = made.train
    monkeypatch.setattr(load, "load", lambda *_, **__: made)
    rows = {row["metric"]: row for row in reproduce.counted("eurlex-4k", "reeval:table2")}
    ours = {name: int(row["ours"]) for name, row in rows.items() if name.startswith("labels_")}
    assert ours == {"labels_1-9": 1, "labels_10-99": 3, "labels_100-999": 0, "labels_1000+": 1}
    assert (rows["labels_1-9"]["printed"], rows["labels_1-9"]["difference"]) == ("2,413", "-2412")
    assert (rows["labels_1-9"]["chance"], rows["labels_1000+"]["chance"]) == ("beyond", "within")


def test_what_it_took_and_the_records_are_kept(demo):
    """With ``--costs`` and ``--record``: in data/recorded."""
    project, _, add, _ = demo
    noted = 'run_log.note("training", \'["PLT-12345678", "PLT()", 0.25, true]\')'
    add("two", f"from xcrepro.repro.engine import run_log\n{noted}")
    assert main(["reproduce", "eurlex-4k", "demo/two", "--costs", "--record"]) == 0
    rows = reproduce.read_costs(project.root / reproduce.COSTS)
    of = ("eurlex-4k", 15_539, 3_993, "demo/two")
    assert [tuple(row.values())[:5] for row in rows] == [(*of, ""), (*of, "PLT 12345678")]
    assert rows[1]["seconds"] == pytest.approx(0.2, abs=0.051)
    assert rows[0]["seconds"] > 0
    assert 0.05 < rows[0]["gb"] < 4
    made = recorded.read(project.root / "data/recorded/demo/two/eurlex-4k.csv")
    assert made.provenance["command"].startswith("xcrepro run demo/two -p dataset eurlex-4k -p folder DIR")
    assert main(["reproduce", "eurlex-4k", "--jobs", "0"]) == 2
