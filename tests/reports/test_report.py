"""What a report is written as: the page, the LaTeX, the folder; and what it does with less than it likes to have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, save_npz

import xcrepro as xc
from xcrepro.__main__ import main
from xcrepro.errors import ArgumentError, DataError, DataMissing
from xcrepro.reports import html, latex
from xcrepro.reports import report as reports
from xcrepro.reports.grid import Cell, Grid
from xcrepro.repro import figures

VOID = {"meta", "link", "br", "img", "input", "hr"}
FOREIGN = '<script>alert("1")</script> & $x_1^2$ \\input{a} 50% #é~中"'


class Page(HTMLParser):
    """Holds a page to what it must be: every tag closed in order, no id twice; keeps what leads out of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.texts = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [
            value for name, value in attrs if name in ("href", "src", "xlink:href", "action", "data", "srcset")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def page(made) -> str:
    return made.to_html()


QUICK = {"samples": 20, "price": False}


@pytest.fixture
def no_figures(monkeypatch):
    """Where a test is about something else: to draw takes longest."""
    monkeypatch.setattr(reports.Report, "_svg", lambda report, part: b'<svg id="a"></svg>')


@pytest.fixture
def only_held(monkeypatch):
    """Figures are drawn and held to their tables, but not rendered."""

    def svg(report, part: str) -> bytes:
        figures.held(*report.parts[part].draw())
        return b'<svg id="a"></svg>'

    monkeypatch.setattr(reports.Report, "_svg", svg)


def test_the_page_is_balanced_asks_for_nothing_and_is_small(page):
    found = Page(page)
    assert found.links
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)
    assert "http" not in page
    assert "@import" not in page
    assert not re.findall(r"url\((?!#)", page)
    assert len(page.encode()) < 3_000_000
    assert {"main", "header", "nav", "section", "figure", "table", "caption", "footer"} <= set(found.tags)
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


@pytest.mark.skipif(not shutil.which("node"), reason="there is no Node")
def test_a_table_sorts_by_click_and_key_and_shows_the_rows_with_a_text():
    argv = ["node", Path(__file__).with_name("page_test.js"), Path(html.__file__).with_name("page.js")]
    seen = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    assert seen == {
        "falling": [*range(11, -1, -1), None],
        "rising": [*range(12), None],
        "filtered": [5, 7, 10],
        "names": ["none", "model 9", "model 8"],
    }


def test_every_figure_and_table_has_its_words(made, page):
    for name, part in made.parts.items():
        assert part.said, name
        assert all(html.escape(said) in page for said in part.said)
    assert page.count('<svg role="img"') == sum(part.draw is not None for part in made.parts.values()) == 7
    assert page.count("<desc id=") == 7
    assert page.count("<caption>") >= page.count("<table>") == sum(len(part.grids) for part in made.parts.values()) + 1
    assert all(word in page for word in ("numpy", "SHA-256", "seed = 0", "confidence = 0.95", "coverage, eq. 13"))
    assert "Manning" not in page  # the source of AP, which is none of its metrics


def test_every_value_of_the_page_is_one_of_the_tables(made, page):
    """The ranking table, cell by cell."""
    table = made.frame("ranking").set_index(["model", "metric", "k"])
    section = page[page.index('id="part-ranking"') : page.index('id="part-labelwise"')]
    head = re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', section)
    for row in re.findall(r"<tr><td.*?</tr>", section):
        cells = re.findall(r'<td[^>]*?(?: data-v="([^"]*)")?>(.*?)</td>', row)
        model = cells[0][1]
        for name, (exact, text) in zip(head[1:], cells[1:], strict=True):
            metric, k = name.removesuffix(", %").split("@")
            one = table.loc[(model, metric, int(k))]
            assert float(exact) == one["value"]
            shown = re.sub(r"<[^>]*>|°", "", text).split()
            assert shown == [f"{100 * one['value']:.2f}", f"{100 * one['low']:.1f}–{100 * one['high']:.1f}"]


def test_figures_show_the_numbers_of_their_tables_alone(made):
    for name, part in made.parts.items():
        if part.draw:
            figures.held(made.plot(name), made.drawn(name))  # raises DrawingFault otherwise
            with pytest.raises(figures.DrawingFault):
                figures.held(made.plot(name), made.drawn(name).iloc[:1])


def unescaped(text: str) -> list[str]:
    """TeX's special signs that a small tokenizer finds outside commands, groups and mathematics."""
    text = re.sub(r"(?<!\\)%.*", "", text) if text.startswith("%") else text
    found = []
    tokens = re.findall(r"\\[A-Za-z]+|\\.|\$[^$]*\$|[#%&$_^~{}]|[^\x00-\x7f]", text, re.DOTALL)
    depth = 0
    for token in tokens:
        depth += (token == "{") - (token == "}")
        assert depth >= 0
        if token in "#%$_^~" or not token.isascii():
            found.append(token)
    assert depth == 0
    return found


def columns_of(tabular: str) -> set[int]:
    body = tabular[tabular.index(r"\toprule") : tabular.index(r"\bottomrule")]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    return {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines}


def test_latex_tables_have_as_many_cells_in_each_line_and_nothing_unescaped(made):
    for name in made.parts:
        for grid in made.show(name):
            text = latex.tabular(grid, made.about["origin"])
            assert columns_of(text) == {len(grid.columns)}
            assert len(re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)[1]) == len(grid.columns)
            body = "\n".join(text.splitlines()[1:])
            assert [sign for sign in unescaped(body) if sign != "^"] == []
    assert r"\textbf{" in made.latex("ranking")
    assert made.latex("differences").count(r"\begin{tabular}") == 3


@pytest.mark.usefixtures("only_held")
def test_foreign_names_are_escaped_everywhere(small):
    tops = {FOREIGN: small.good, "b": small.bad}
    names = [f"</td><b>{label} & $" for label in range(30)]
    report = xc.report(
        small.Y, tops, train_truth=small.train, label_names=names, title=FOREIGN, warnings=["<i>doubt</i>"]
    )
    page = report.to_html()
    found = Page(page)
    assert found.tags.count("script") == 1  # the page's own
    assert not {"b", "i"} & set(found.tags)
    assert any("<script>alert" in text for text in found.texts)
    for name in report.parts:
        for grid in report.show(name):
            text = latex.tabular(grid, report.about["origin"])
            assert columns_of(text) == {len(grid.columns)}
            assert [sign for sign in unescaped("\n".join(text.splitlines()[1:])) if sign != "^"] == []
            assert r"\input" not in text
    assert "<i>doubt" not in page
    assert "doubt" in page


def test_latex_escapes_to_ascii():
    assert latex.escape("a_b{c}%#&~^\\<>|") == (
        r"a\_b\{c\}\%\#\&\textasciitilde{}\textasciicircum{}\textbackslash{}\textless{}\textgreater{}\textbar{}"
    )
    assert latex.escape("[1] Łódź\n\x00ü") == r"{[}1{]} {[}U+0141{]}\'{o}d\'{z} \"{u}"
    grid = Grid("x", "", ["a"], [[Cell("[", bold=True)], [Cell("b", "c", 1.0, unclear=True)]])
    assert r"\textbf{{[}} \\" in latex.tabular(grid)
    assert r"b$^\circ$ {\scriptsize c} \\" in latex.tabular(grid)


# ---------------------------------------------------------------- less than it likes to have


@pytest.mark.usefixtures("no_figures")
def test_without_train_truth_there_are_no_propensities_and_it_says_so(small):
    report = xc.report(small.Y, small.tops, **QUICK)
    assert not {"PSP", "PSnDCG"} & set(report.frame()["metric"])
    assert not {"bins", "bands"} & set(report.parts)
    assert any("No train truth was given" in note for note in report.notes)
    assert "No train truth was given" in report.to_html()
    assert report.frame("labels")["train points"].eq(-1).all()


@pytest.mark.usefixtures("no_figures")
def test_scores_that_are_no_probabilities_have_no_calibration_and_it_says_so(small):
    margins = xc.TopK(small.good.ids, small.good.scores * 3 - 1, 30)
    report = xc.report(small.Y, {"margins": margins, "bad": small.bad}, samples=20)
    assert set(report.frame("calibration")["model"]) == {"bad"}
    assert (
        "The scores of margins do not all lie in [0, 1]: no calibration and no price of coverage of those."
        in report.notes
    )
    report = xc.report(small.Y, {"margins": margins}, samples=20)
    assert not {"calibration", "reliability", "price"} & set(report.parts)
    assert any(note.startswith("No model's scores all lie in [0, 1]") for note in report.notes)
    Page(report.to_html())


@pytest.mark.usefixtures("no_figures")
def test_one_model_has_no_pairs(small):
    report = xc.report(small.Y, small.good, **QUICK)
    assert not {"pairs", "t_test", "differences"} & set(report.parts)
    assert report.sentences("ranking")[0].startswith("P@1 of model is ")
    Page(report.to_html())
    assert "°" not in report.to_html().split("<footer")[0]


def test_no_more_places_than_k_have_no_price(small):
    report = xc.report(small.Y, {"five": small.good.head(5)}, samples=20)
    assert "price" not in report.parts
    assert any(note.startswith("No price of coverage of five") for note in report.notes)
    assert "price" not in xc.report(small.Y, small.tops, **QUICK).parts


@pytest.mark.usefixtures("only_held")
def test_one_point_is_reported_without_intervals(small, tmp_path):
    tops = {name: top.rows([3]) for name, top in small.tops.items()}
    report = xc.report(small.Y[3], tops, train_truth=small.train)
    expected = xc.evaluate(small.Y[3], tops["bad"], 5, metrics=["P"])["value"][0]
    table = report.frame().set_index(["model", "metric", "k"])
    assert table.loc[("bad", "P", 5), "value"] == expected
    assert table["low"].isna().all()
    assert any(note.startswith("1 test points: with fewer than 8") for note in report.notes)
    assert "nobody can say whether by more than chance" in report.sentences("ranking")[0]
    Page(report.save(tmp_path / "one").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("only_held")
@pytest.mark.parametrize("rows", [2, 8, 9])
def test_few_points_are_reported(small, rows):
    tops = {name: top.rows(np.arange(rows)) for name, top in small.tops.items()}
    report = xc.report(small.Y[:rows], tops, ks=(1, 5), samples=20)
    assert report.frame()["low"].isna().all() == (rows < 8)
    Page(report.to_html())


@pytest.mark.usefixtures("only_held")
def test_points_without_labels_and_without_predictions_are_reported(small):
    empty = xc.TopK(np.full((120, 5), -1, np.int32), np.full((120, 5), -np.inf, np.float32), 30)
    report = xc.report(
        csr_matrix((120, 30), dtype=np.float32), {"empty": empty, "good": small.good}, train_truth=small.train
    )
    assert report.frame().query("metric == 'P'")["value"].eq(0).all()
    Page(report.to_html())


@pytest.mark.usefixtures("only_held")
def test_ten_models_stand_beside_each_other(small):
    tops = {f"model {i}": small.drawn(i) for i in range(10)}
    report = xc.report(small.Y, tops, ks=5, **QUICK)
    assert len(report.frame("pairs")[["model", "other"]].drop_duplicates()) == 45
    assert report.about["options"]["samples"] == 20
    page = report.to_html()
    Page(page)
    assert len(page.encode()) < 3_000_000
    # Whole tables, so that a click sorts all of their rows.
    section = page[page.index('id="part-pairs"') : page.index('id="part-t_test"')]
    assert (section.count("<tbody>"), section.count("<tr><td")) == (1, 45)


# ---------------------------------------------------------------- input


@pytest.fixture
def files(small, tmp_path):
    (tmp_path / "predictions").mkdir()
    for name, top in small.tops.items():
        top.save(tmp_path / "predictions" / f"{name}.npz")
    save_npz(tmp_path / "truth.npz", small.Y)
    save_npz(tmp_path / "train.npz", small.train)
    return tmp_path


def test_files_give_the_same_report_as_what_is_in_memory(made, files):
    report = xc.report(
        files / "truth.npz", files / "predictions", train_truth=files / "train.npz", title="Small", samples=60
    )
    assert report.about["models"] == ["bad", "good"]
    one, other = (r.frame().sort_values(["model", "metric", "k"]).reset_index(drop=True) for r in (report, made))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.usefixtures("no_figures")
def test_a_dataset_brings_its_labels_and_its_printed_rows():
    ds = xc.twin("eurlex-4k", scale=0.05)
    top = xc.TopK.from_scores(ds.test.observed_marginals, 10)
    report = xc.report(ds, {"truth": top}, ks=(1, 5), **QUICK)
    assert report.title == "EURLex-4K"
    assert "TWIN" in report.to_html().upper()
    assert "34.25†" in report.frame("printed").to_numpy().ravel().tolist()
    assert "†" in report.sentences("printed")[0] or "in doubt" in report.sentences("printed")[0]
    assert (report.about["options"]["A"], report.about["options"]["B"]) == (ds.A, ds.B)
    with pytest.raises(ArgumentError, match="train_truth goes with a truth that is no dataset"):
        xc.report(ds, {"truth": top}, train_truth=ds.train.Y)


@pytest.mark.usefixtures("no_figures")
def test_real_labels_have_their_names(real_data):
    folder = real_data("delicious")
    names = (folder / "labels.txt").read_text(encoding="utf-8").splitlines()
    ds = xc.load("delicious", folder)
    top = xc.models.Popularity().fit(ds.train.X, ds.train.Y).predict(ds.test.X[:400], 10)
    report = xc.report(ds.test.Y[:400], {"popular": top}, label_names=names, ks=(1, 5), **QUICK)
    assert report.frame("labels")["name"].isin(names).all()
    Page(report.to_html())


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"ks": (1, 11)}, ArgumentError, "ks must not exceed the 10 places that 'good' holds"),
        ({"predictions": {}}, ArgumentError, "predictions must be those of one model or more"),
        ({"predictions": {"a": 3}}, ArgumentError, r"predictions\['a'\] must be a TopK"),
        ({"A": 0.5}, ArgumentError, "A and B go with train_truth"),
        ({"label_names": ["a"]}, ArgumentError, "label_names must name each of the 30 labels"),
        ({"truth": "nowhere/truth.npz"}, DataMissing, "no such file"),
        ({"predictions": "nowhere.npz"}, DataMissing, "holds no predictions"),
        ({"confidence": 95}, ArgumentError, "confidence must be"),
        ({"others": ["nowhere"]}, DataMissing, "no report there"),
    ],
)
def test_what_cannot_be_is_refused_by_name(small, change, error, words):
    given = {"truth": small.Y, "predictions": small.tops, "ks": (1,)} | QUICK | change
    with pytest.raises(error, match=words):
        xc.report(given.pop("truth"), given.pop("predictions"), **given)


def test_predictions_for_other_points_are_refused_with_their_file(small, files):
    small.good.rows(np.arange(50)).save(files / "predictions" / "short.npz")
    with pytest.raises(
        DataError, match=r"short\.npz: found predictions for 50 points and 30 labels, expected the truth's 120"
    ):
        xc.report(small.Y, files / "predictions")
    with pytest.raises(ArgumentError, match=r"predictions\['short'\] must be for the truth's 120 points"):
        xc.report(small.Y, {"short": small.good.rows([1])})


@pytest.mark.usefixtures("no_figures")
def test_warnings_stand_at_the_head(small):
    class Doubt:
        message = "rows may be shifted by one"

    report = xc.report(small.Y, small.tops, ks=1, **QUICK, warnings=[Doubt(), "and another"])
    assert report.warnings == ("rows may be shifted by one", "and another")
    page = report.to_html()
    assert page.index("rows may be shifted by one") < page.index("<nav")


@pytest.mark.usefixtures("no_figures")
def test_predictions_for_the_train_points_are_named_with_a_file_of_train_labels_too(small):
    dense = small.train.toarray()[:120] + np.linspace(0.5, 0, 30)
    wrong = xc.TopK.from_scores(dense, 10)
    report = xc.report(small.Y, {"good": small.good, "wrong": wrong}, train_truth=small.train, ks=5, **QUICK)
    [doubt] = report.warnings
    assert doubt.startswith("wrong: training points: ")
    assert not xc.report(small.Y, small.good, train_truth=small.train, ks=5, **QUICK).warnings


# ---------------------------------------------------------------- the folder


def test_a_report_is_saved_whole_and_read_back(made, tmp_path):
    path = made.save(tmp_path / "out")
    home = path.parent
    assert path.read_text(encoding="utf-8") == made.to_html()
    assert {p.name for p in home.iterdir()} == {"report.html", "report.json", "csv", "latex", "figures"}
    for name, part in made.parts.items():
        pd.testing.assert_frame_equal(pd.read_csv(home / f"csv/{name}.csv"), part.table, check_dtype=False)
        assert (home / f"figures/{name}.svg").is_file() == (part.draw is not None)
    assert sorted(p.stem for p in (home / "latex").iterdir()) == sorted(
        [grid.name for part in made.parts.values() for grid in part.grids] + ["report"]
    )
    inputs = re.findall(r"\\input\{([^}]*)\}", (home / "latex/report.tex").read_text())
    assert all((home / "latex" / name).is_file() for name in inputs)
    about = json.loads((home / "report.json").read_text(encoding="utf-8"))
    assert about["models"] == ["good", "bad"]
    title, table = reports.read(home)
    assert title == "Small"
    pd.testing.assert_frame_equal(table, made.frame(), check_dtype=False)


@pytest.mark.usefixtures("no_figures")
def test_the_same_input_gives_the_same_files(small, tmp_path):
    made, again = (xc.report(small.Y, small.tops, train_truth=small.train, ks=5, samples=20) for _ in range(2))
    one, other = (r.save(tmp_path / name).parent for r, name in ((made, "a"), (again, "b")))
    for path in one.rglob("*.*"):
        assert path.read_bytes() == (other / path.relative_to(one)).read_bytes(), path.name


@pytest.mark.usefixtures("no_figures")
def test_another_report_is_kept_unless_forced_and_other_files_always(small, made, tmp_path):
    home = tmp_path / "out"
    made.save(home)
    made.save(home)  # the same input
    other = xc.report(small.Y, small.bad, ks=1, **QUICK)
    with pytest.raises(ArgumentError, match="out must not hold a report of other input"):
        other.save(home)
    assert reports.read(home)[0] == "Small"
    other.save(home, force=True)
    assert reports.read(home)[0] == "Your data"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    for force in (False, True):
        with pytest.raises(ArgumentError, match="out must be a new folder, or hold a report"):
            made.save(tmp_path / "mine", force=force)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "out"]


@pytest.mark.usefixtures("no_figures")
def test_a_report_that_fails_leaves_nothing_and_keeps_what_was_there(made, tmp_path, monkeypatch):
    home = tmp_path / "out"
    made.save(home)
    before = {path: path.read_bytes() for path in home.rglob("*.*")}

    def broken(*_):
        raise RuntimeError("no space left")

    monkeypatch.setattr(latex, "document", broken)
    for target in (home, tmp_path / "fresh"):
        with pytest.raises(RuntimeError, match="no space left"):
            made.save(target, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    assert {path: path.read_bytes() for path in home.rglob("*.*")} == before


@pytest.mark.usefixtures("no_figures")
def test_other_datasets_give_ranks_and_three_no_critical_difference(small, made, tmp_path):
    made.save(tmp_path / "small")
    half = {name: top.rows(np.arange(60)) for name, top in small.tops.items()}
    other = xc.report(small.Y[:60], half, title="Half", **QUICK)
    report = xc.report(small.Y[60:], {n: t.rows(np.arange(60, 120)) for n, t in small.tops.items()}, title="Rest", **QUICK,
                       others=[tmp_path / "small", other])  # fmt: skip
    table = report.frame("ranks").query("metric == 'P@5'")
    assert list(table.columns) == ["model", "Rest", "Small", "Half", "mean rank", "metric"]
    assert table["mean rank"].sum() == 3
    assert "too few for a critical difference" in report.sentences("ranks")[0]
    figures.held(report.plot("ranks"), report.drawn("ranks"))
    with pytest.raises(ArgumentError, match="others must be reports of other datasets"):
        xc.report(small.Y, small.tops, title="Small", ks=(1, 3, 5), **QUICK, others=[tmp_path / "small"])


# ---------------------------------------------------------------- the command


@pytest.mark.usefixtures("no_figures")
def test_the_command_names_what_does_not_fit_before_any_lead(small, tmp_path, capsys):
    save_npz(tmp_path / "truth.npz", csr_matrix(small.Y))
    (tmp_path / "tops").mkdir()
    n = small.good.ids.shape[0]
    small.good.save(tmp_path / "tops/good.npz")
    kept = np.where(np.arange(n)[:, None] < n - n // 5, small.good.ids, -1)
    xc.TopK.from_ids(kept, np.where(kept >= 0, small.good.scores, -np.inf), n_labels=small.good.n_labels).save(
        tmp_path / "tops/cut.npz"
    )
    argv = [
        "report",
        str(tmp_path / "truth.npz"),
        str(tmp_path / "tops"),
        "--out",
        str(tmp_path / "out"),
        "--samples",
        "40",
    ]
    assert main([*argv, "--no-price"]) == 0
    said = capsys.readouterr()
    doubt = f"cut: rows without predictions: {n // 5} of {n} rows have no prediction, the last {n // 5} in a row"
    assert f"warning: {doubt}" in said.err
    assert "good: rows" not in said.err
    assert doubt in (tmp_path / "out/report.html").read_text()


@pytest.mark.usefixtures("no_figures")
def test_the_command_writes_the_report_that_the_function_makes(files, made, capsys, monkeypatch):
    given = [str(files / "truth.npz"), str(files / "predictions"), "--train-truth", str(files / "train.npz")]
    out = files / "out"
    argv = ["report", *given, "--out", str(out), "--title", "Small", "--samples", "60"]
    monkeypatch.setattr("sys.argv", ["xcrepro", *argv])
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert "leads" in shown.out or "leader" in shown.out
    assert f"wrote {out / 'report.html'}" in shown.out
    assert "metrics and pairs: " in shown.err
    found = pd.read_csv(out / "csv/metrics.csv").sort_values(["model", "metric", "k"]).reset_index(drop=True)
    expected = made.frame().sort_values(["model", "metric", "k"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert "Command: <code>xcrepro report" in (out / "report.html").read_text(encoding="utf-8")


def test_the_command_refuses_a_folder_before_it_computes(files, capsys, monkeypatch):
    (files / "taken").mkdir()
    (files / "taken" / "a.txt").write_text("mine")
    monkeypatch.setattr(reports, "report", lambda *_, **__: pytest.fail("computed"))
    assert main(["report", str(files / "truth.npz"), str(files / "predictions"), "--out", str(files / "taken")]) == 2
    assert "out must be a new folder" in capsys.readouterr().err


@pytest.mark.usefixtures("no_figures")
def test_label_names_come_from_a_file(files, capsys):
    (files / "names.txt").write_text("\n".join(f"name {i}" for i in range(30)), encoding="utf-8")
    argv = [
        "report",
        str(files / "truth.npz"),
        str(files / "predictions" / "good.npz"),
        "--out",
        str(files / "out"),
        "-k",
        "1",
    ]
    assert main([*argv, "--no-price", "--labels", str(files / "names.txt")]) == 0
    assert pd.read_csv(files / "out/csv/labels.csv")["name"].str.startswith("name ").all()
    assert main([*argv, "--labels", str(files / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err
