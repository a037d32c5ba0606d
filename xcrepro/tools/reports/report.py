"""The report: the notebook ``kit/your_predictions`` run on a reader's data, and the folder that it becomes."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import importlib.util
import inspect
import io
import json
import os
import pickle
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from xcrepro.core import extras, paths
from xcrepro.core.arguments import did_you_mean, one_of
from xcrepro.core.errors import ArgumentError, DataError, DataMissing, XCError
from xcrepro.tools.formats import reader
from xcrepro.tools.reports import html
from xcrepro.tools.reports.asked import OPTIONS, Asked
from xcrepro.tools.reports.given import collect, without_folders
from xcrepro.tools.reports.page import FILE, FORMAT, Said

NOTEBOOK = "notebooks/kit/your_predictions.ipynb"
ABOUT_THE_EXAMPLE = ("answer", "conclusion", "example", "parameters")
"""Tags of cells that are about the committed run, and on no page of a reader's own."""
PART = "part"
"""The tag of cells without which there is still a report."""


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that is measured of one or several models on one truth. Made by :func:`report`.

    Attributes
    ----------
    about : dict
        What it was made from and with: title, origin, models, options, versions, digest, notes (what it lacks, and why),
        warnings (doubts about the input), parts.
    files : dict of str to bytes
        Path in the folder -> content: ``report.html``, ``report.ipynb``, ``csv/``, ``latex/``, ``figures/``, ``report.json``.
    """

    about: dict[str, object]
    files: dict[str, bytes] = field(repr=False)

    def __repr__(self) -> str:
        return f"Report({self.title!r}, models={self.about['models']}, parts={list(self.parts)})"

    def _about_with_digests(self) -> bytes:
        """What the report was made from, with what tells later whether somebody wrote into its files."""
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items() if name != FILE}
        return (json.dumps(self.about | {"files": digests}, indent=1, ensure_ascii=False) + "\n").encode()

    @property
    def title(self) -> str:
        return self.about["title"]

    @property
    def parts(self) -> dict[str, dict[str, object]]:
        return self.about["parts"]

    @property
    def notes(self) -> list[str]:
        return self.about["notes"]

    @property
    def warnings(self) -> list[str]:
        return self.about["warnings"]

    def _named(self, folder: str, ending: str, name: str) -> bytes:
        names = [Path(file).stem for file in self.files if file.startswith(f"{folder}/")]
        return self.files[f"{folder}/{one_of('part', name, names)}{ending}"]

    def frame(self, part: str = "metrics") -> pd.DataFrame:
        """Numbers, tidy: fractions (entropy and NLL in nats); by default all metrics of all models.

        Raises
        ------
        ArgumentError
            For a name of which there is no CSV file.
        """
        text = self._named("csv", ".csv", part)
        return pd.read_csv(io.BytesIO(text), keep_default_na=False, na_values=[""])

    def sentences(self, part: str | None = None) -> list[str]:
        """What the numbers come to: of one part, or of all."""
        chosen = list(self.parts) if part is None else [one_of("part", part, list(self.parts))]
        return [said for name in chosen for said in self.parts[name]["said"]]

    def latex(self, table: str = "ranking") -> str:
        """A table as LaTeX (package booktabs): percent, the best in bold."""
        return self._named("latex", ".tex", table).decode()

    def svg(self, part: str = "ranking") -> bytes:
        """The figure of a part."""
        return self._named("figures", ".svg", part)

    def to_html(self) -> str:
        """The report as one HTML file's text; it asks for no other file."""
        return self.files["report.html"].decode()

    def _repr_html_(self) -> str:
        page = self.to_html()
        return f"<style>{html.style()}</style>{page[page.index('<main') : page.index('</main>')]}</main>"

    def save(self, folder: str | os.PathLike, force: bool = False) -> Path:
        """Write the report: all of it, or nothing.

        Parameters
        ----------
        folder : path
            A new one, or one that holds a report of the same input, which is replaced.
        force : bool
            Replace a report of other input too. What is no report is never replaced.

        Returns
        -------
        Path
            Of ``report.html``.

        Raises
        ------
        ArgumentError
            Where something else stands in the folder.
        """
        target = Path(folder).expanduser()
        check_target(target, self.about["digest"], force)
        with atomic_folder(target) as home:
            for name, content in (self.files | {FILE: self._about_with_digests()}).items():
                (home / name).parent.mkdir(exist_ok=True)
                (home / name).write_bytes(content)
        return target / "report.html"


def report(
    truth,
    predictions,
    *,
    out: str | os.PathLike | None = None,
    force: bool = False,
    code: bool = False,
    progress: bool = False,
    **options: Any,
) -> Report:
    """Everything there is to measure of one or several models on one truth: the notebook ``kit/your_predictions``, run on it.

    Ranking, label-wise and coverage metrics; all pairs of models; macro-F1 by train frequency below its ceiling; what each
    band of train frequency contributes; calibration before and after; the price of coverage; where models differ; the printed
    rows of the dataset; ranks over several datasets. Each value with its interval.

    Parameters
    ----------
    truth
        A :class:`xcrepro.Dataset`; a label matrix (n, L); or a path or name: a file of labels, a dataset's folder, its name.
    predictions
        Model -> :class:`xcrepro.TopK`; one TopK; or a path or several: a file, or a folder with a file a model. ``NAME.seed0``,
        ``NAME.seed1``, ... are runs of one model.
    out : path, optional
        The folder to save it in (:meth:`Report.save`, with ``force``); one that may not be written to is refused at once.
    code : bool
        Whether the page has the notebook's code, folded.
    progress : bool
        Say on stderr what is being done.
    **options
        Of the input, of what is measured, and of what stands beside it:

        train_truth
            Training labels, of a truth that is no dataset: a matrix or a file. Without them there are no propensity-scored
            metrics and no bins of train frequency.
        A, B : float, optional
            Of the propensity model; by default the dataset's, else 0.55 and 1.5.
        ks : int or sequence of int
            The cut-offs; the largest is that of the detailed parts.
        title : str
            By default what the data are called.
        label_names : sequence of str
            Of all L labels, or a file of them; by default the dataset's.
        texts : sequence of str
            Of all test points, or a file with a line for each: an id, a title, whatever a reader knows a point by; by default
            the dataset's, such as Gutenberg's titles.
        exclude : tuple of (rows, labels), optional
            Pairs that may not be predicted, or a filter file, for files of score matrices (:meth:`TopK.load`).
        split, points : int, optional
            Of a dataset given by its name (:func:`xcrepro.load`).
        others : sequence of path or Report
            Reports of the same models on other datasets: adds ranks over all of them.
        price : bool
            Whether to choose labels for coverage as well; it goes through the points one by one, once a beta and model.
        calibrator : {"isotonic", "platt", "beta"}
            What "after" is calibrated by, cross-fitted over the test points. With few points isotonic regression says 0 or 1
            where it met only misses or only hits, which can raise NLL.
        metrics : sequence of str
            What the models are compared in, as :func:`xcrepro.compare` takes it; all comparisons are corrected together. By
            default P at the first k, and at the last P, nDCG, PSP, macro-F1 and coverage.
        per_point : sequence of str
            Metrics that are means over points, such as ``"nDCG"``: ``csv/points.csv`` gets their values at the last k.
        samples : int, optional
            Of the bootstrap, and ten times the partitions of all other intervals, 20 or more; by default 1,000, for more than
            20,000 points 200.
        seed : int
            Of all that is drawn.
        confidence : float
            Of the intervals, between 0 and 1.
        warnings : sequence
            Doubts about the input, shown at the head: texts, or what has a ``message``.
        command : str
            What made it, shown at its foot.

        And how files are read, as :func:`xcrepro.tools.formats.reader.read` takes it: ``row_ids``, ``n_labels``,
        ``truth_format``, ``predictions_format``, ``unknown``, ``match``, ``labels_are``, ``judged_only``, ``by_rank``,
        ``one_based``.

    Raises
    ------
    ArgumentError, DataError, DataMissing
        For input that cannot belong together, and a folder that holds something else.
    LibraryMissing
        Where matplotlib, papermill or nbconvert is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.eye(40)
    >>> tops = {"right": TopK.from_ids(np.arange(40)[:, None], n_labels=40)}
    >>> tops["half"] = TopK.from_ids(np.arange(40)[:, None] // 2 * 2, n_labels=40)
    >>> found = report(Y, tops, ks=1)                                                          # doctest: +SKIP
    >>> found.sentences("ranking")[0]                                                          # doctest: +SKIP
    'right leads P@1 with 100.0 % [100.0, 100.0]: 50.0 points [35.0, 65.0] above half (p < 0.001, over test points).'
    """
    for library in ("matplotlib", "papermill", "nbconvert"):  # before the work, not after it
        if importlib.util.find_spec(library) is None:
            raise extras.missing(library)
    known = {name for door in (collect, reader.read) for name in inspect.signature(door).parameters}
    known = OPTIONS | known - {"truth", "predictions", "reading", "k"}
    for name in options.keys() - known:
        raise TypeError(f"report() has no option {name!r}: {did_you_mean(name, known) or 'its docstring lists them'}")
    started = time.perf_counter()
    reading = {name: value for name, value in options.items() if name not in OPTIONS}
    given = collect(truth, predictions, **reading)
    others = [(one.title, one.frame()) if isinstance(one, Report) else read(one) for one in options.get("others", ())]
    asked = Asked(given, **{name: options[name] for name in options.keys() & OPTIONS} | {"others": others})
    if out is not None:
        check_target(out, given.digest(), force)
    # What leads to the same run where the reader has files; what is in memory is only handed over.
    files = {"truth": truth, "labels": options.get("label_names")}
    files |= {name: options.get(name) for name in ("train_truth", "texts", "exclude")}
    named = {name: _path(value) for name, value in files.items() if isinstance(value, str | os.PathLike)}
    if progress:
        print(f"running {NOTEBOOK} on {given.origin}: {', '.join(given.models)}", file=sys.stderr, flush=True)
    made = _run(asked, named, code)
    if progress:
        print(f"{time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    if out is not None:
        made.save(out, force)
    return made


def _path(value: str | os.PathLike) -> str:
    """A path in full, a dataset's name as it is."""
    path = Path(value).expanduser()
    return str(path.resolve()) if path.exists() else str(value)


def _run(asked: Asked, files: Mapping[str, str], code: bool) -> Report:
    """The notebook, run on what is asked, and its page; ``files`` are parameters that say where it came from."""
    import nbformat

    given = list(files.values())
    with tempfile.TemporaryDirectory(prefix="xcrepro-report-") as place:
        home, out = Path(place), Path(place) / "out"
        out.mkdir()
        (home / "handed").write_bytes(pickle.dumps(asked))
        values = asked.parameters | {"models": [], **files, "out": str(out), "handed": str(home / "handed")}
        notebook = execute(values, home)
        about = json.loads((out / FILE).read_text(encoding="utf-8"))
        about["warnings"] += said_of_missing(notebook)
        (out / FILE).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        files = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    files["report.html"] = without_folders(to_html(notebook, f"Report: {about['title']}", code), given).encode()
    for cell in notebook["cells"]:
        if "injected-parameters" in cell.metadata.get("tags", []):  # the folder of this run is gone
            cell.source = re.sub(r"^(out|handed) = .*\n?", "", cell.source, flags=re.MULTILINE)
    files["report.ipynb"] = nbformat.writes(notebook).encode()
    return Report(about, files)


def execute(values: Mapping[str, object], home: Path):
    """The notebook, executed with these parameters by a kernel of its own, in a folder that may be written to."""
    import nbformat
    import yaml

    from xcrepro.repro.engine import processes

    source, executed, log = home / "source.ipynb", home / "report.ipynb", home / "log"
    committed = paths.committed(NOTEBOOK)
    nbformat.write(for_readers(committed), source)
    quick = ["--no-progress-bar", "--no-request-save-on-cell-execute", "--autosave-cell-every", "0"]
    arguments = [str(source), str(executed), *quick, "-y", yaml.safe_dump(dict(values))]
    # The project that the notebook belongs to, whatever folder one stands in, and this environment's kernel.
    environment = {**os.environ, "XCREPRO_ROOT": str(committed.parents[2]), "JUPYTER_PREFER_ENV_PATH": "1"}
    environment["XCREPRO_OWN"] = "1"
    process = processes.start_here(arguments, environment, log)
    try:
        import nbconvert  # noqa: F401  it takes seconds, in which the notebook runs

        process.wait()
    finally:
        processes.stop([process])
    # papermill ends with 1 after any error, also one after which the cells ran on.
    notebook = nbformat.read(executed, 4) if executed.is_file() else None
    if notebook is None or (process.returncode and not _whole(notebook)):
        found = [] if notebook is None else [error for _, error in _errors(notebook)]
        words = f"{found[0].ename}: {found[0].evalue}" if found else log.read_text(errors="replace").strip()
        raise XCError(f"the notebook failed; its last words: {words[-800:]}")
    notebook.cells = [cell for cell in notebook.cells if not _marks_an_error(cell)]
    return notebook


def for_readers(path: Path):
    """The notebook without the checks of the committed run, going on where a part of it fails."""
    import nbformat

    if not path.is_file():
        raise DataMissing(f"{path}: a report needs the project's notebooks, as a clone and the wheel have them")
    notebook = nbformat.read(path, 4)
    notebook.cells = [c for c in notebook.cells if c.cell_type != "code" or "example" not in c.metadata.get("tags", [])]
    for cell in notebook.cells:
        if PART in cell.metadata.get("tags", []):
            cell.metadata.tags.append("raises-exception")  # for papermill: the next cells run all the same
    return notebook


def _errors(notebook) -> list[tuple]:
    """The cells that failed, each with its error."""
    return [(cell, out) for cell in notebook.cells for out in cell.get("outputs", []) if out.output_type == "error"]


def _marks_an_error(cell) -> bool:
    return any(tag.startswith("papermill-error") for tag in cell.metadata.get("tags", []))


def _whole(notebook) -> bool:
    """Whether every cell ran, and all that failed are parts."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    failed = [cell for cell, _ in _errors(notebook)]
    return all(cell.execution_count for cell in code) and all(PART in cell.metadata.get("tags", []) for cell in failed)


def said_of_missing(notebook) -> list[str]:
    """Put a sentence where a part failed, in place of its traceback; return these sentences."""
    import nbformat

    said, heading = [], ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = next((line[3:] for line in cell.source.splitlines() if line.startswith("## ")), heading)
            continue
        for at, out in enumerate(cell.get("outputs", [])):
            if out.output_type == "error":
                follows = bool(said) and out.ename == "NameError"  # it needs what an earlier part did not make
                why = "it needs a part that is missing" if follows else f"{out.ename}: {out.evalue.strip()}"
                said.append(f"{heading!r} is not whole: {why}.")
                data = {"text/html": Said(said[-1:])._repr_html_(), "text/plain": said[-1]}
                cell.outputs[at] = nbformat.v4.new_output("display_data", data)
    return said


_TEMPLATE = """
{%- extends 'basic/index.html.j2' -%}
{% block input_group %}<details><summary>Code</summary>
<pre><code>{{ cell.source | escape_html }}</code></pre></details>{% endblock %}
{% block data_svg %}<figure><img alt="{{ output | get_metadata('alt', 'image/svg+xml') | escape_html }}"
src="data:image/svg+xml;base64,{{ output.data['image/svg+xml'] | text_base64 }}"></figure>{% endblock %}
{% block stream_stderr %}{% endblock %}
"""


def to_html(notebook, title: str, code: bool = False) -> str:
    """An executed notebook as one page that asks for no other file: its prose, tables and pictures, and its code if asked for.

    Cells about the committed example, and sections whose cells show nothing, are left out.
    """
    import nbformat

    body, _ = _exporter(code).from_notebook_node(nbformat.from_dict({**notebook, "cells": _shown(notebook.cells)}))
    head, *parts = body.split("<h2>")
    body = head + "".join(f'<h2 id="part-{at}">{part}' for at, part in enumerate(parts))
    links = (f'<li><a href="#part-{at}">{part[: part.index("</h2>")]}</a></li>' for at, part in enumerate(parts))
    return html.titled(title, f'<nav aria-label="Parts"><ul>{"".join(links)}</ul></nav>', body)


@functools.cache
def _exporter(code: bool):
    """Nbconvert's, which reads its templates once."""
    from nbconvert import HTMLExporter

    how = {f"exclude_{what}": True for what in ("input_prompt", "output_prompt", "anchor_links")}
    return HTMLExporter(raw_template=_TEMPLATE, exclude_input=not code, **how)


def _shown(cells: Sequence) -> list:
    """The cells of a page, section by section."""
    sections: list[list] = [[]]
    for cell in cells:
        if set(cell.metadata.get("tags", [])) & {*ABOUT_THE_EXAMPLE, "injected-parameters"}:
            continue
        if cell.cell_type == "markdown":
            if cell.source.startswith("## "):
                sections.append([])
            # Links into the project lead nowhere from a folder of the reader's.
            cell = copy.copy(cell)
            cell.source = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", cell.source)
        sections[-1].append(cell)
    return [cell for part in sections if any(one.get("outputs") for one in part) for cell in part]


# ---------------------------------------------------------------- on disk


def read(folder: str | os.PathLike) -> tuple[str, pd.DataFrame]:
    """Title and metrics of a saved report; DataMissing if there is none, DataError for one of another form."""
    folder, do = Path(folder).expanduser(), "Make the report again"
    about, path = _about(folder), folder / "csv" / "metrics.csv"
    if about is None:
        raise DataMissing(f"{folder}: no report there; give a folder that `xcrepro report --out` wrote")
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError) as error:  # pandas' own errors are ValueErrors
        raise DataError(path, f"no table ({error})", "what a report writes", do=do) from None
    numeric = table.select_dtypes("number").columns
    if not {"model", "metric"} <= set(table) or not {"k", "value"} <= set(numeric):
        found = f"the columns {', '.join(map(str, table))}"
        raise DataError(path, found, "model, metric, k, value, with numbers", do=do)
    return about["title"], table


def _about(folder: Path) -> Mapping[str, object] | None:
    """What a folder's report was made from; None where there is none."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(path, f"no JSON ({error})", "what a report writes") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("title"), str):
        raise DataError(path, "another format, or no title", f"{FORMAT}, with its title")
    return found


def check_target(folder: str | os.PathLike, digest: str = "", force: bool = False) -> None:
    """Refuse a folder that a report may not be written to."""
    target = Path(folder).expanduser()
    if target.is_dir() and not any(target.iterdir()):
        return
    if target.exists():
        found = _about(target) if target.is_dir() else None
        if found is None:
            raise ArgumentError("out", "must be a new folder, or hold a report", target, "nothing is overwritten")
        own = _written_into(target, found.get("files"))
        if own:
            do = "take another folder, or move it away: what people wrote is not replaced"
            raise ArgumentError("out", "must hold nothing but a report as it was written", target / own, do)
        if digest and not force and found.get("digest") != digest:
            do = "take another folder, or replace it with --force (force=True)"
            raise ArgumentError("out", "must not hold a report of other input", target, do)


def _written_into(folder: Path, digests: Mapping[str, str] | None) -> str:
    """The first file of a report's folder that is not as the report wrote it."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in Path(name).parts)  # a system's, an editor's
        if digests is None or name == FILE or hidden:
            continue
        if hashlib.sha256(path.read_bytes()).hexdigest() != digests.get(name):
            return name
    return ""


@contextlib.contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """A folder beside ``target`` that takes its place when the block ends well, and is gone when it does not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    room = {"prefix": f".{target.name}.", "dir": target.parent, "ignore_cleanup_errors": True}
    with paths.faults_named(target), tempfile.TemporaryDirectory(**room) as room:
        part, old = Path(room) / "new", Path(room) / "old"
        part.mkdir()
        yield part
        if target.exists():
            os.replace(target, old)
        try:
            os.replace(part, target)
        except BaseException:
            if old.exists():
                os.replace(old, target)
            raise
