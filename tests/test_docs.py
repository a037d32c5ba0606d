"""The pages say what is so: their tables are the lists of the package, their commands run, in the order of the page."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import xcrepro as xc
from xcrepro.__main__ import _parser, main
from xcrepro.tools import formats
from xcrepro.tools.reports import report

PAGES = sorted(Path(__file__).parents[1].glob("docs/*.md"))
OF_THEIR_OWN = {"formats.md", "own_dataset.md", "evaluate.md", "tib.md", "training_loop.md", "scale.md"}  # tests below


def blocks(root, page: str) -> list[tuple[str, str]]:
    """(language, code) of each fenced block; one in a list item without its indent."""
    text = (root / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^( *)```(\w*)\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [(language, re.sub(f"^{indent}", "", code, flags=re.MULTILINE)) for indent, language, code in found]


def run(found: list[tuple[str, str]], names: dict) -> None:
    for language, code in found:
        if language == "bash":
            for line in code.strip().splitlines():
                program, *arguments = shlex.split(line, comments=True)
                assert program == "xcrepro", line
                try:
                    code = main(arguments)
                except SystemExit as end:  # such as after --list
                    code = end.code
                assert not code, line
        elif language == "python":
            exec(compile(code, "<page>", "exec"), names)


def small_files() -> None:
    """What the commands of the pages name, in this folder: truth, train labels, scores, predictions, a filter, a table."""
    rng = np.random.default_rng(0)
    for name in ("truth.txt", "train_labels.txt"):
        xc.data.write.write_sparse(name, sparse.csr_matrix((rng.random((40, 3)) < 0.5).astype(np.float32)))
    scores = sparse.csr_matrix(rng.random((40, 3)).astype(np.float32))
    for name in ("scores.npz", "predictions.npz", "Yt_pred.npz"):
        sparse.save_npz(name, scores)
    Path("filter_labels_test.txt").write_text("0 1\n")
    Path("results.csv").write_text("method,P@1,P@3,P@5,nDCG@1\nmine,69.2,50.0,40.1,69.2\n")


@pytest.mark.parametrize("page", [path.name for path in PAGES if path.name not in OF_THEIR_OWN])
def test_commands_run_and_print_what_the_page_shows(root, page, tmp_path, monkeypatch):
    """Python and commands of a page in their order, in an empty folder; a block of text is what the block before it prints.

    A report that a page ends with is asked for, with all that it reads; the pages on reports make theirs.
    """
    monkeypatch.chdir(tmp_path)
    asked = {"models": [], "parts": {}, "sentences": {}, "warnings": [], "digest": ""}
    monkeypatch.setattr(report, "make", lambda *_: report.Report(asked, {"report.html": b"a page"}))
    small_files()
    names: dict = {}
    printed = ""
    for block in blocks(root, page):
        if block[0] == "text":
            assert lines(printed) == lines(block[1]), f"{page} shows another output:\n{printed}"
        else:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                run([block], names)
            printed = out.getvalue()


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def understood(parser, arguments: list[str]) -> bool:
    try:
        parser.parse_args(arguments)
    except SystemExit as end:
        return not end.code
    return True


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_on_a_page_is_one(path):
    """Those that are not run, because they need data or minutes, are read by the command line's own parser."""
    text = path.read_text(encoding="utf-8")
    fenced = "".join(re.findall(r"^ *```(?:bash)?\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE))
    said = re.findall(r"`(xcrepro [^`]+)`", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE))
    shown = [line.strip().partition(" && ")[0] for line in fenced.splitlines() if line.strip().startswith("xcrepro ")]
    parser = _parser()
    (commands,) = (action.choices for action in parser._actions if isinstance(action.choices, dict))
    for command in shown:
        assert understood(parser, shlex.split(command, comments=True)[1:]), f"{path.name}: {command}"
    for command in said:  # a sentence may name a command, or one of its options, without the rest
        _, name, *arguments = shlex.split(command)
        if name != "--help":
            unknown = {word for word in arguments if re.match(r"--?[a-zA-Z]", word)} - {
                *commands[name]._option_string_actions
            }
            assert not unknown, f"{path.name}: {command}"


def test_p_at_1_is_computed_as_the_architecture_says(root):
    code = re.search(r"```python\n(.*?)```", (root / "ARCHITECTURE.md").read_text(), re.DOTALL)[1]
    *steps, formula = code.strip().splitlines()
    here = {"Y": np.eye(4, 6), "top": xc.TopK.from_ids([[0, 1], [1, 0], [5, 2], [0, 3]], n_labels=6)}
    exec("\n".join(steps), here)
    found = eval(formula.partition("  # ")[0], here)
    assert found == xc.evaluate(here["Y"], here["top"], metrics=["P@1"])["value"].item() == 0.5


def test_the_table_of_formats_is_the_list(root):
    lines = ["| " + " | ".join(line.values()) + " |" for line in formats.table()]
    page = (root / "docs" / "formats.md").read_text()
    assert [line for line in page.splitlines() if line.startswith("| ")][1 : len(lines) + 1] == lines, "\n".join(lines)


def test_formats_page(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "predictions.run").write_text("0 Q0 1 1 0.9 a\n1 Q0 5 1 0.9 a\n2 Q0 2 1 0.9 a\n")
    (tmp_path / "qrels.txt").write_text("0 0 1 1\n1 0 4 1\n2 0 2 1\n")
    run(blocks(root, "formats.md"), {})
    printed = capsys.readouterr().out
    assert len(re.findall(r"^P +1 +0.666667$", printed, re.MULTILINE)) == 2


def test_own_dataset_page(root, tmp_path, monkeypatch, capsys, in_process):
    found = blocks(root, "own_dataset.md")
    monkeypatch.chdir(tmp_path)
    (raw,) = (code for language, code in found if language == "json")
    more = [f'{{"title": "{words}", "labels": [{labels}]}}\n' for words, labels in (
        ("Herring in the Baltic Sea", '"fisheries"'), ("Butter and milk in schools", '"dairy", "schools"'),
        ("Wine from the north", '"wine"'), ("School books and their price", '"schools"'),
        ("Cod quotas for the Baltic Sea", '"fisheries", "quotas"'), ("Wine quotas", '"wine", "quotas"'),
    )]  # fmt: skip
    (tmp_path / "laws.jsonl").write_text(raw + "".join(more))
    names: dict = {}
    run(found, names)
    ds, top = names["ds"], names["top"]
    assert (ds.n_train, len(top), ds.validation.Y.shape) == (4, 2, (2, 5))
    assert ds.label_names == ("dairy", "fisheries", "quotas", "schools", "wine")
    printed = capsys.readouterr().out
    assert "PSP" in printed
    assert "ECE" in printed
    # The dataset.toml on the page is one by which the data load, the same data.
    (toml,) = (code for language, code in found if language == "toml")
    assert tomllib.loads(toml)["name"] == "laws"
    (tmp_path / "laws" / "dataset.toml").write_text(toml)
    again = xc.load("laws", "laws")
    assert (again.train.X != ds.train.X).nnz == 0
    assert (again.validation.Y != ds.validation.Y).nnz == 0


def test_commands_of_the_evaluate_page(root, tmp_path, monkeypatch, capsys, in_process):
    """Its commands, on small files of the names that it uses, and its Python."""
    monkeypatch.chdir(tmp_path)
    ds = xc.twin("bibtex", scale=0.05)
    xc.data.write.write_sparse("truth.txt", ds.test.Y)
    xc.data.write.write_sparse("train_labels.txt", ds.train.Y)
    top = xc.models.PLT(trees=1).fit(ds.train.X, ds.train.Y).predict(ds.test.X, k=20)
    (tmp_path / "predictions").mkdir()
    top.save("predictions.npz")
    top.save("predictions/PLT.npz")
    commands = [block for block in blocks(root, "evaluate.md") if block[0] == "bash"]
    assert sum(len(code.splitlines()) for _, code in commands) == 4
    run(commands, {})
    assert "P@1 of PLT is" in capsys.readouterr().out
    assert (tmp_path / "report").is_dir()
    names: dict = {}
    run([block for block in blocks(root, "evaluate.md") if block[0] == "python"], names)
    assert {"stderr", "low", "high"} <= {*names["sure"]}
    assert {*names["pairs"]["metric"]} == {"P", "PSP"}


def test_page_of_the_open_dataset(root, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(blocks(root, "tib.md"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("TIB, 2,000 of 17,740 records (1500, 17843) (100, 2580) (400, 2580)")
    assert "Architecture" in printed
    assert "PSP" in printed


def test_training_loop_page(root, capsys):
    """With PyTorch where it is installed; without, the blocks that do not need it."""
    found = blocks(root, "training_loop.md")
    names: dict = {"xc": xc}
    run([block for block in found if "torch" not in block[1]], names)
    assert re.search(r"0 +P +1 +0.5\b", capsys.readouterr().out)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its blocks are compiled, not run")
    run([block for block in found if "torch" in block[1]], names)
    rng = np.random.default_rng(0)
    X = torch.tensor(rng.random((40, 8)), dtype=torch.float32)
    Y = torch.tensor(rng.random((40, 6)) < 0.3, dtype=torch.float32)
    batches = [(X[i : i + 16], Y[i : i + 16]) for i in range(0, 40, 16)]
    model = torch.nn.Linear(8, 6)
    history = names["train"](model, batches, batches, 6)
    scores = model(X)
    expected = xc.evaluate(Y, xc.TopK.from_scores(scores, 5), metrics=["P", "nDCG", "coverage"])
    assert np.allclose(history[-1]["value"], expected["value"])


def test_scale_page(root, tmp_path, monkeypatch, capsys):
    """What is said to run here does; the recipes for clusters are compiled."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    Y = sparse.random(250, 30, 0.1, "csr", np.float32, rng)
    Y.data[:] = 1
    scores = sparse.random(250, 30, 0.5, "csr", np.float32, rng)
    xc.data.write.write_sparse("truth.txt", Y)
    xc.data.write.write_sparse("scores.txt", scores)
    found = blocks(root, "scale.md")
    names: dict = {"__name__": "__main__"}
    run([block for block in found if "on_" not in block[1] and "one_task" not in block[1]], names)
    printed = capsys.readouterr().out
    assert "3 blocks in blocks" in printed
    assert names["state"].compute().equals(xc.evaluate(Y, xc.TopK.from_scores(scores, 5), metrics=["P", "coverage"]))
    run([block for block in found if "one_task" in block[1]], names)
    for i in range(2):
        xc.scale.state(sorted((tmp_path / "blocks").iterdir())[i::2], metrics=["P"]).save(tmp_path / f"{i}.npz")
    merged = names["merge"]([tmp_path / "0.npz", tmp_path / "1.npz"])
    assert merged.equals(xc.evaluate(Y, xc.TopK.from_scores(scores, 10), metrics=["P"]))


def test_counts_of_the_audit_page(root):
    """Those that no block of the page prints, from the tables that the notebooks write."""
    text = " ".join((root / "docs/audit.md").read_text(encoding="utf-8").split())
    typos = (pd.read_csv(root / "figures/beyond/audit-findings.csv")["judgement"] == "typo").sum()
    assert f"In {typos} of them, the printed cell cannot be right" in text
    leads = pd.read_csv(root / "figures/beyond/certainty-pairs.csv")
    best = leads[leads["place"] == 1]
    assert f"is certain in {(best['verdict'] == 'certain').sum()} of {len(best)} tables" in text
    cells = pd.read_csv(root / "figures/beyond/noise_floor-printed.csv")
    assert f"Of {len(cells)} ECEs" in text
    assert f"{(cells['verdict'] != 'above').sum()} are not above" in text


def test_memory_of_training_is_what_the_benchmark_measured(root):
    results = (root / "benchmarks/results.md").read_text(encoding="utf-8")
    found = re.search(r"(?ms)^## PLT, twin of amazon-670k, [^\n]* x ([\d,]+) labels.*?(?=^##)", results)
    ours, omikuji = re.findall(r"^\| (?:xcrepro|omikuji, beam 10) +\|.*?([\d,]+) \|[^|]*\|$", found[0], re.MULTILINE)
    said = f"has {found[1]} labels: {ours} MB for the kit's PLT and {omikuji} MB for omikuji"
    assert said in " ".join((root / "docs/memory.md").read_text(encoding="utf-8").split())


def test_every_python_block_compiles(root):
    for page in sorted((root / "docs").glob("*.md")):
        for language, code in blocks(root, page.name):
            if language == "python":
                compile(code, page.name, "exec")


def test_a_table_is_committed_as_markdown_only_where_a_page_links_it(root):
    """All others are made by `xcrepro table`: git rm them."""
    pages = [path for part in ("docs", "notebooks", "data") for path in (root / part).rglob("*") if path.is_file()]
    texts = [
        path.read_text(encoding="utf-8") for path in (*pages, *root.glob("*.md")) if path.suffix in (".md", ".ipynb")
    ]
    linked = {name for text in texts for name in re.findall(r"figures/([\w/-]+\.md)\b", text)}
    committed = {path.relative_to(root / "figures").as_posix() for path in (root / "figures").rglob("*.md")}
    assert sorted(committed - linked) == []
