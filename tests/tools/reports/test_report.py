"""What a report is written as: the page, the LaTeX, the folder; and what it does with less than it likes to have."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from scipy.sparse import save_npz

import xcrepro as xc
from tests.refused import damaged, refused
from xcrepro.__main__ import main
from xcrepro.core.errors import ArgumentError, DataMissing
from xcrepro.repro.drawing import latex
from xcrepro.tools.reports import html
from xcrepro.tools.reports import report as reports
from xcrepro.tools.reports.given import collect
from xcrepro.tools.reports.grid import Cell, Grid

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
        leads = ("href", "src", "xlink:href", "action", "data", "srcset")
        self.links += [value for name, value in attrs if name in leads]
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


QUICK = {"n_resamples": 20, "price": False}
_WITHOUT = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("IPython", "nbformat", "nbconvert", "papermill", "psutil", "filelock", "yaml"):
            raise ImportError(name)
sys.meta_path.insert(0, Refused())
import numpy as np
import xcrepro as xc
top = xc.TopK.from_ids(np.arange(40)[:, None], np.full((40, 1), 0.9), n_labels=40)
report = xc.report(np.eye(40), {"a": top, "b": top}, ks=1, n_resamples=20)
print(len(report.parts), report.sentences("first")[0])
"""


def test_a_report_needs_nothing_that_runs_notebooks():
    done = subprocess.run([sys.executable, "-c", _WITHOUT], check=True, capture_output=True, text=True)
    parts, said = done.stdout.split(maxsplit=1)
    assert int(parts) > 5
    assert said.startswith("In P@1")


def test_the_page_is_balanced_asks_for_nothing_and_is_small(made, page):
    found = Page(page)
    inside = [link for link in found.links if link.startswith("#")]
    assert {link[1:] for link in inside} == {"first", "examples", *made.parts, "notes", "method"}
    assert inside
    assert all(link[1:] in found.ids for link in inside)
    assert {link for link in found.links if not link.startswith(("#", "data:image/svg+xml;base64,"))} <= set(made.files)
    assert "http" not in re.sub(r"base64,[\w+/=]*", "", page)
    assert "@import" not in page
    assert not re.findall(r"url\((?!#)", page)
    assert len(page.encode()) < 1_000_000
    assert {"main", "nav", "figure", "table", "caption"} <= set(found.tags)
    assert found.tags.count("script") == 1
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


@pytest.mark.skipif(not shutil.which("node"), reason="there is no Node")
def test_a_table_sorts_by_click_and_key_and_shows_the_rows_that_are_chosen():
    argv = ["node", Path(__file__).with_name("page_test.js"), Path(html.__file__).with_name("page.js")]
    seen = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    rows = {"falling": [*range(11, -1, -1), None], "rising": [*range(12), None], "filtered": [5, 7, 10], "chosen": 6}
    assert seen == rows | {"choices": ["head 2: all", "few", "many"], "names": ["none", "model 9", "model 8"]}


def test_every_figure_and_table_has_its_words(made, page):
    texts = "".join(Page(page).texts)
    pictures = [".svg", ".png", ".pdf"]
    for name, part in made.parts.items():
        assert part["heading"]
        assert all(said in texts for said in (part["heading"], *part["said"]))
        assert all((f"figures/{name}{suffix}" in made.files) == part["figure"] for suffix in pictures)
        assert {f"latex/{table}.tex" for table in part["tables"]} <= set(made.files)
    drawn = {name for name, part in made.parts.items() if part["figure"]}
    assert drawn == {"ranking", "bins", "bands", "calibration", "price"}
    assert all(f"figures/first{suffix}" in made.files for suffix in pictures)
    assert len(re.findall(r'<img alt="([^"]+)"', page)) == page.count("<img") == 6
    tables = sum(len(part["tables"]) for part in made.parts.values()) + len(made.about["examples"]) + 2
    assert page.count("<caption>") == page.count("<table>") == tables
    assert page.count("<thead>") == tables
    assert not re.search("<thead><tr>(?!<th scope)", page)
    assert all(word in page for word in ("numpy", "SHA-256", "seed = 0", "confidence_level = 0.95", "coverage, eq. 13"))
    assert "Manning" not in page  # the source of AP, which is none of its metrics


def test_every_value_of_the_page_is_one_of_the_tables(made, page):
    """The tables of the rankings, cell by cell; each pair once."""
    table = made.frame("ranking").set_index(["model", "metric", "k"])
    section = page[page.index('<section id="ranking">') : page.index('<section id="labelwise">')]
    models = re.findall(r'<th[^>]*scope="col"[^>]*>([^<]*)</th>', section)[1:]
    rows = re.findall(r"<tr><td.*?</tr>", section)
    assert len(rows) == len(table) / 2
    for row in rows:
        cells = re.findall(r'<td[^>]*?(?: data-v="([^"]*)")?>(.*?)</td>', row)
        metric, k = cells[0][1].split("@")
        for model, (exact, text) in zip(models, cells[1:], strict=True):
            one = table.loc[(model, metric, int(k))]
            assert float(exact) == one["value"]
            shown = re.sub(r"<[^>]*>|[▲≈]", "", text).split()
            assert shown == [f"{100 * one['value']:.2f}", f"{100 * one['low']:.1f}–{100 * one['high']:.1f}"]
    pairs = made.frame("pairs").set_index(["left", "right", "metric", "k"])["value"]
    section = page[page.index('<section id="pairs">') : page.index('<section id="t_test">')]
    cell = r"<td>([^<]*)</td>"
    found = re.findall(f'<tr>{cell}{cell}{cell}<td[^>]*data-v="([^"]*)"', section)
    assert len(found) == section.count("<tr><td>") == len(pairs)
    for left, right, metric, value in found:
        name, k = metric.split("@")
        assert float(value) == pairs[left, right, name, int(k)]


def unescaped(text: str) -> list[str]:
    """TeX's special signs that a small tokenizer finds outside commands, groups and mathematics."""
    text = re.sub(r"(?<!\\)%.*", "", text) if text.startswith("%") else text
    tokens = re.findall(r"\\[A-Za-z]+|\\.|\$[^$]*\$|[#%&$_^~{}]|[^\x00-\x7f]", text, re.DOTALL)
    depths = [*itertools.accumulate((token == "{") - (token == "}") for token in tokens)] or [0]
    assert min(depths) >= depths[-1] == 0
    return [token for token in tokens if token in "#%$_^~" or not token.isascii()]


def columns_of(tabular: str) -> set[int]:
    body = tabular[tabular.index(r"\toprule") : tabular.index(r"\bottomrule")].splitlines()
    return {len(re.findall(r"(?<!\\)&", line)) + 1 for line in body if line.endswith(r"\\")}


def sound(text: str) -> None:
    """A LaTeX table with as many cells in each line, and nothing unescaped."""
    assert columns_of(text) == {len(re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)[1])}
    assert [sign for sign in unescaped("\n".join(text.splitlines()[1:])) if sign != "^"] == []
    assert r"\input" not in text


def test_latex_tables_are_sound(made):
    tables = [name for name in made.files if name.startswith("latex/")]
    assert {"latex/ranking.tex", "latex/pairs.tex"} <= {*tables}
    head = made.latex("ranking").splitlines()[3]
    assert head.split(" & ") == ["model", "P@1", "nDCG@5", "PSP@5", "macro-F1@5", r"ECE@5 \\"]  # what is asked for
    rows = [line for line in made.latex("pairs").splitlines() if line.startswith(("good &", "bad &"))]
    assert len(rows) == len(made.frame("pairs"))  # each pair once
    for name in tables:
        sound(made.files[name].decode())
    assert r"\textbf{" in made.latex("ranking")


@pytest.mark.usefixtures("no_figures")
def test_foreign_names_are_escaped_everywhere(small):
    tops = {FOREIGN: small.good, "b": small.bad}
    names = [f"=</td><b>{label} & $" for label in range(30)]
    report = xc.report(
        small.Y, tops, train_truth=small.train, label_names=names, texts=[FOREIGN] * 120, title=FOREIGN,
        warnings=["<i>doubt</i>"], n_resamples=20, ks=(1, 5),
    )  # fmt: skip
    page = report.to_html()
    found = Page(page)
    assert found.tags.count("script") == 1  # the page's own
    assert not {"b", "i"} & set(found.tags)
    assert any("<script>alert" in text for text in found.texts)
    for name in report.files:
        if name.startswith("latex/"):
            sound(report.files[name].decode())
    assert "<i>doubt" not in page
    assert page.index("doubt") < page.index("</header>")  # on the first screen
    assert report.frame("points")["text"].eq(FOREIGN).all()
    assert report.frame("labels")["name"].str.startswith("'=").all()  # no formula, if a spreadsheet opens it


def test_latex_escapes_to_ascii():
    assert latex.escape("a_b{c}%#&~^\\<>|") == (
        r"a\_b\{c\}\%\#\&\textasciitilde{}\textasciicircum{}\textbackslash{}\textless{}\textgreater{}\textbar{}"
    )
    assert latex.escape("[1] Łódź\n\x00ü") == r"{[}1{]} {[}U+0141{]}\'{o}d\'{z} \"{u}"
    grid = Grid("x", "", ["a"], [[Cell("[", bold=True)], [Cell("b", "c", 1.0, mark="≈")]])
    assert r"\textbf{{[}} \\" in grid.latex()
    assert r"b$^\circ$ {\scriptsize c} \\" in grid.latex()


# ---------------------------------------------------------------- less than it likes to have


@pytest.mark.usefixtures("no_figures")
def test_what_is_not_known_is_left_out_and_said(small):
    margins = xc.TopK(small.good.ids, small.good.scores * 3 - 1, 30)
    report = xc.report(small.Y, {"margins": margins, "five": small.bad.head(5)}, n_resamples=20)
    assert not {"PSP", "PSnDCG"} & set(report.frame()["metric"])
    assert not {"bins", "bands", "price"} & set(report.parts)
    assert set(report.frame("calibration")["model"]) == {"five"}
    assert report.frame("labels")["train points"].eq("not known").all()
    page = report.to_html()
    Page(page)
    for words in ("No train truth was given", "The scores of margins do not all lie", "No price of coverage of five"):
        assert any(note.startswith(words) for note in report.notes), words
        assert words in page
    assert '<section id="bins">' not in page  # a section that shows nothing has no heading
    one = xc.report(small.Y, margins, **QUICK)
    assert not {"pairs", "t_test", "differences", "calibration", "reliability", "price"} & set(one.parts)
    assert one.sentences("ranking")[0].startswith("P@1 of model is ")
    assert not set("▲≈") & set(one.to_html())  # the signs of chance
    Page(one.to_html())


# ---------------------------------------------------------------- input


def by_model(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values(["model", "metric", "k"], ignore_index=True)


@pytest.fixture
def files(small, tmp_path):
    (tmp_path / "predictions").mkdir()
    for name, top in small.tops.items():
        top.save(tmp_path / "predictions" / f"{name}.npz")
    save_npz(tmp_path / "truth.npz", small.Y)
    save_npz(tmp_path / "train.npz", small.train)
    return tmp_path


@pytest.mark.usefixtures("no_figures")
def test_files_give_the_same_report_as_what_is_in_memory(made, files):
    (files / "texts.txt").write_text("\n".join(f"point {i}" for i in range(120)))
    report = xc.report(
        files / "truth.npz", files / "predictions", train_truth=files / "train.npz", title="Small", n_resamples=60,
        texts=files / "texts.txt",
    )  # fmt: skip
    assert report.about["models"] == ["bad", "good"]
    assert_frame_equal(by_model(report.frame()), by_model(made.frame()))
    assert report.frame("points")["text"].tolist() == [f"point {i}" for i in range(120)]


@pytest.mark.usefixtures("no_figures")
def test_a_dataset_brings_its_labels_and_its_printed_rows():
    ds = xc.twin("eurlex-4k", scale=0.05)
    top = xc.TopK.from_scores(ds.test.observed_marginals, 10)
    report = xc.report(ds, {"truth": top}, ks=(1, 5), **QUICK)
    assert report.title == "EURLex-4K (synthetic)"
    assert "TWIN" in report.to_html().upper()
    assert "34.25†" in report.frame("printed").to_numpy().ravel().tolist()
    assert "in doubt" in report.parts["printed"]["heading"]
    assert (report.about["options"]["A"], report.about["options"]["B"]) == (ds.A, ds.B)
    with refused("train_truth"):
        xc.report(ds, {"truth": top}, train_truth=ds.train.Y)


def test_a_datasets_titles_name_its_points_unless_others_are_given():
    ds = xc.load("gutenberg", points=100)
    top = xc.models.Popularity().fit(ds.train.X, ds.train.Y).predict(ds.test.X, 5)
    titles, own = tuple(ds.test.texts["title"]), tuple(map(str, ds.test.numbers))
    assert len({*titles}) > 10
    assert collect(ds, top).texts == collect("gutenberg", top, points=100).texts == titles
    assert collect(ds, top, texts=own).texts == own


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
        ({"confidence_level": 95}, ArgumentError, "confidence_level must be"),
        ({"others": ["nowhere"]}, DataMissing, "no report there"),
        ({"texts": ["a"]}, ArgumentError, "texts must have one for each of the 120 points"),
        ({"per_point": ["macro-F1"]}, ArgumentError, "per_point must be"),
        ({"metrics": ["Q@1"]}, ArgumentError, "metric"),
    ],
)
def test_what_cannot_be_is_refused_by_name(small, change, error, words):
    given = {"truth": small.Y, "predictions": small.tops, "ks": (1,)} | QUICK | change
    with pytest.raises(error, match=words):
        xc.report(given.pop("truth"), given.pop("predictions"), **given)


def test_predictions_for_other_points_are_refused_with_their_file(small, files):
    small.good.rows(np.arange(50)).save(files / "predictions" / "short.npz")
    with damaged("short.npz", match="predictions for 50 points and 30 labels, expected the truth's 120"):
        xc.report(small.Y, files / "predictions")
    with refused("predictions['short']", match="120"):
        xc.report(small.Y, {"short": small.good.rows([1])})


# ---------------------------------------------------------------- the folder


def test_a_report_is_saved_whole_and_read_back(made, tmp_path):
    path = made.save(tmp_path / "out")
    home = path.parent
    assert path.read_text(encoding="utf-8") == made.to_html()
    assert sorted(p.name for p in home.iterdir()) == ["csv", "figures", "latex", "report.html", "report.json"]
    for name in made.parts:
        assert_frame_equal(pd.read_csv(home / f"csv/{name}.csv"), made.frame(name), check_dtype=False)
    title, table = reports.read(home)
    assert title == "Small"
    assert_frame_equal(table, made.frame(), check_dtype=False)
    saved, schema = (json.loads(path.read_text(encoding="utf-8")) for path in (home / reports.FILE, reports.SCHEMA))
    jsonschema.validate(saved, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(saved | {"format": "xcrepro report 1"}, schema)


@pytest.mark.usefixtures("no_figures")
def test_the_same_input_gives_the_same_files(small, tmp_path):
    made, again = (xc.report(small.Y, small.tops, train_truth=small.train, ks=5, n_resamples=20) for _ in range(2))
    one, other = (r.save(tmp_path / name).parent for r, name in ((made, "a"), (again, "b")))
    for path in one.rglob("*.*"):
        assert path.read_bytes() == (other / path.relative_to(one)).read_bytes(), path.name


@pytest.mark.usefixtures("no_figures")
def test_another_report_is_kept_unless_forced_and_other_files_always(small, made, tmp_path):
    home = tmp_path / "out"
    made.save(home)
    made.save(home)  # the same input
    other = xc.report(small.Y, small.bad, ks=1, **QUICK)
    with refused("out", match="other input"):
        other.save(home)
    assert reports.read(home)[0] == "Small"
    other.save(home, force=True)
    assert reports.read(home)[0] == "Your data"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    for force in (False, True):
        with refused("out", match="new folder"):
            made.save(tmp_path / "mine", force=force)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "out"]


@pytest.mark.parametrize("name", ["sampels", "row_idss", "k", "truth_"])
def test_an_option_that_is_none_is_refused_at_the_door(small, name):
    with pytest.raises(TypeError, match=rf"report\(\) has no option '{name}'"):
        reports.report(small.Y, small.tops, **{name: 3})


@pytest.mark.usefixtures("no_figures")
def test_other_datasets_give_ranks_and_three_no_critical_difference(small, made, tmp_path):
    made.save(tmp_path / "small")
    half = {name: top.rows(np.arange(60)) for name, top in small.tops.items()}
    other = xc.report(small.Y[:60], half, title="Half", **QUICK)
    report = xc.report(small.Y[60:], {n: t.rows(np.arange(60, 120)) for n, t in small.tops.items()}, title="Rest", **QUICK,
                       others=[tmp_path / "small", other])  # fmt: skip
    table = report.frame("ranks").query("metric == 'P@1'")
    assert list(table.columns) == ["model", "Rest", "Small", "Half", "mean rank", "metric"]
    assert table["mean rank"].sum() == 3
    assert "too few" in report.sentences("ranks")[0]
    assert "figures/ranks.svg" in report.files
    with refused("others"):
        xc.report(small.Y, small.tops, title="Small", ks=(1, 3, 5), **QUICK, others=[tmp_path / "small"])


# ---------------------------------------------------------------- the command


@pytest.mark.usefixtures("no_figures")
def test_the_command_writes_the_report_that_the_function_makes(files, made, capsys, monkeypatch):
    given = [str(files / "truth.npz"), str(files / "predictions"), "--train-truth", str(files / "train.npz")]
    out = files / "out"
    argv = ["report", *given, "--out", str(out), "--title", "Small", "--n-resamples", "60"]
    monkeypatch.setattr("sys.argv", ["xcrepro", *argv])
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert "lead" in shown.out
    assert f"wrote {out / 'report.html'}" in shown.out
    assert shown.err.startswith("Small, 120 test points: bad, good")
    assert_frame_equal(by_model(pd.read_csv(out / "csv/metrics.csv")), by_model(made.frame()), check_dtype=False)
    assert "Command: xcrepro report" in (out / "report.html").read_text(encoding="utf-8")


def test_what_is_said_of_models_is_shown_and_nothing_of_it_measured(small, tmp_path):
    told = {"good": {"training seconds": 4000, "hardware": "one <GPU>"}, "bad": {"training seconds": 2.5}}
    text = '[good]\n"training seconds" = 4000\nhardware = "one <GPU>"\n[bad]\n"training seconds" = 2.5\n'
    (tmp_path / "about.toml").write_text(text)
    for about in (told, tmp_path / "about.toml"):
        made = xc.report(small.Y, small.tops, about=about, **QUICK)
        assert made.about["given"] == told
        assert "one &lt;GPU&gt;" in made.to_html()
        assert made.frame("about").set_index("model").loc["bad", "training seconds"] == 2.5
    (tmp_path / "torn.toml").write_text("[good\n")
    for about, refusal in (
        ({"goood": {}}, refused("about", "'goood'")),
        ({"good": {"a": [1]}}, refused("about")),
        (tmp_path / "torn.toml", damaged("torn.toml")),
    ):
        with refusal:
            xc.report(small.Y, small.tops, about=about, **QUICK)
    with pytest.raises(DataMissing):
        xc.report(small.Y, small.tops, about=tmp_path / "none.toml", **QUICK)


def test_a_metric_of_one_s_own_is_judged_as_the_kit_s_own_is(small):
    """As fractions of hits it is P; its negative is a loss, and the model that leads P leads it from the other side."""

    def hits(Y, top):
        return np.take_along_axis(Y.toarray(), np.maximum(top.ids, 0), axis=1).astype(bool) & (top.ids >= 0)

    extra = {"mine": lambda Y, top: hits(Y, top).mean(axis=1), "misses": lambda Y, top: float(hits(Y, top).sum() - 1e6)}
    made = xc.report(small.Y, small.tops, extra=extra, **QUICK)
    values, pairs = (made.frame(name).set_index(["metric", "k"]) for name in ("metrics", "pairs"))
    k = max(made.about["options"]["ks"])
    for table in (values, xc.report(small.Y, small.tops, metrics=["P", "mine"], extra=extra, **QUICK).frame("pairs")):
        table = table.reset_index() if table is values else table
        own, kits = (table[table["metric"] == name].drop(columns="metric") for name in ("mine", "P"))
        assert_frame_equal(own.reset_index(drop=True), kits.reset_index(drop=True), rtol=1e-9)
    assert {("mine", k), ("misses", k)} < {*pairs.index}
    assert values.loc[("misses", k), "low"].max() < 0
    assert made.about["parts"]["own"]["tables"] == ["own"]
    assert {f"mine@{k}, own unit", f"misses@{k}, own unit"} < made.about["scoreboard"][0].keys()
    assert {*made.frame("own")["metric"]} == {*extra}
    assert made.latex("own").count(f"@{k}, own unit") == 2
    for one in ({"P": extra["mine"]}, {"mine": lambda Y, top: np.nan}):
        with pytest.raises(ArgumentError, match="extra"):
            xc.report(small.Y, small.tops, extra=one, **QUICK)
