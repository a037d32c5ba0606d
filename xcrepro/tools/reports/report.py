"""The report: what is measured of models, as one page, and the folder that it becomes."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import inspect
import io
import json
import os
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from xcrepro.core import extras, paths
from xcrepro.core.arguments import did_you_mean, one_of
from xcrepro.core.errors import ArgumentError, DataError, DataMissing, DataWarning
from xcrepro.core.metrics.registry import METRICS, family
from xcrepro.core.version import __version__
from xcrepro.tools.formats import reader
from xcrepro.tools.formats.csv import without_formulas
from xcrepro.tools.reports import html
from xcrepro.tools.reports.asked import OPTIONS, Asked
from xcrepro.tools.reports.given import collect, without_folders
from xcrepro.tools.reports.grid import of_table

FORMAT = "xcrepro report 2"
FILE = "report.json"
PICTURES = (".svg", ".png", ".pdf")
LIBRARIES = ("numpy", "scipy", "numba", "pandas", "matplotlib")
SCHEMA = Path(__file__).with_name("report.schema.json")
"""What ``report.json`` holds; its version is that of :data:`FORMAT`."""


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that is measured of one or several models on one truth. Made by :func:`report`.

    Attributes
    ----------
    about : dict
        What it was made from and with: title, origin, models, options, versions, digest, notes (what it lacks, and why),
        warnings (doubts about the input), parts.
    files : dict of str to bytes
        Path in the folder -> content: ``report.html``, ``csv/``, ``latex/``, ``figures/``. :meth:`save` also writes
        ``report.json``: ``about`` and the files' digests, by the schema ``xcrepro/tools/reports/report.schema.json``.
    folder : Path, optional
        Where it was saved.
    """

    about: dict[str, Any]
    files: dict[str, bytes] = field(repr=False)
    folder: Path | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Report({self.title!r}, models={self.about['models']}, parts={list(self.parts)})"

    def _about_with_digests(self) -> bytes:
        """What the report was made from, with what tells later whether somebody wrote into its files."""
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}
        text = json.dumps(self.about | {"files": digests}, indent=1, ensure_ascii=False, allow_nan=False)
        return f"{text}\n".encode()

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
        """What the numbers come to: of one part, of ``"first"``, the first screen, or of all parts."""
        if part == "first":
            return [*self.about["sentences"].values()]
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
        """The first screen, with a link to the page."""
        page = self.to_html()
        inside = page[page.index("<header") : page.index("</header>")] + "</header>"
        link = "<p><code>report.save(folder)</code> writes the whole page.</p>"
        if self.folder is not None:
            link = f'<p><a href="{html.escape(os.path.relpath(self.folder / "report.html"))}">The whole report</a></p>'
        return f'<style>{html.style()}</style><div class="xcrepro-report">{inside}{link}</div>'

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
    progress: bool = False,
    **options: Any,
) -> Report:
    """Everything there is to measure of one or several models on one truth, on one page with the answer on its first screen.

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
        hierarchy : Hierarchy or path_like, optional
            What is above each label, as :func:`xcrepro.formats.read_hierarchy` takes it: adds hierarchical precision, recall
            and F. ``levels``: of a file, how many levels above a label count.
        others : sequence of path or Report
            Reports of the same models on other datasets: adds ranks over all of them.
        price : bool
            Whether to choose labels for coverage as well; it goes through the points one by one, once a beta and model.
        calibrator : {"isotonic", "platt", "beta"}
            What "after" is calibrated by, cross-fitted over the test points. With few points isotonic regression says 0 or 1
            where it met only misses or only hits, which can raise NLL.
        metrics : sequence of str
            What the models are compared in, as :func:`xcrepro.compare` takes it. All comparisons are corrected together; the
            first metric ranks the models. By default P at the first k, at the last nDCG, PSP and macro-F1, and ECE if all have
            probabilities.
        extra : mapping of str to callable
            Metrics of your own, as :func:`xcrepro.evaluate` takes them: functions of truth and TopK. They have a section, and
            the models are compared in them, too. The higher value is taken as the better one, so return the negative of a loss.
        per_point : sequence of str
            Metrics that are means over points, such as ``"nDCG"``: ``csv/points.csv`` gets their values at the last k.
        n_resamples : int, optional
            Of the bootstrap, and ten times the partitions of all other intervals, 20 or more; by default 1,000, for more than
            20,000 points 200.
        seed : int
            Of all that is drawn.
        confidence_level : float
            Of the intervals, between 0 and 1.
        about : mapping of str to mapping, or path
            What you say of a model beside its predictions, such as training seconds, model MB, hardware or cost: model ->
            name -> number or text; or a TOML file with a table for each model. It is shown, and nothing of it is measured.
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
        Where matplotlib is not installed.

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
    if importlib.util.find_spec("matplotlib") is None:  # before the work, not after it
        raise extras.missing("matplotlib")
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
    if progress:
        print(f"{given.origin}: {', '.join(given.models)}", file=sys.stderr, flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # what they say is on the page
        made = make(asked)
    files = [truth, *(options.get(name) for name in ("train_truth", "texts", "exclude", "label_names"))]
    files += predictions if isinstance(predictions, list | tuple) else [predictions]
    made = _without_folders(made, files)
    if progress:
        print(f"{time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    if out is None:
        return made
    return dataclasses.replace(made, folder=made.save(out, force).parent)


def make(asked: Asked) -> Report:
    """The page and its files. A part that fails is said in its place, and the rest is there."""
    from xcrepro.repro.drawing import figures
    from xcrepro.tools.reports import first, sentences
    from xcrepro.tools.reports.measured import Measured
    from xcrepro.tools.reports.parts import NOTES, PARTS

    m, missing, files = Measured(asked), [], {}
    given = asked.given

    def attempt(title: str, work: Callable, *about) -> Any:
        try:
            return work(*about)
        except Exception as error:
            missing.append(f"{title!r} is not whole: {type(error).__name__}: {error}.")
            return None

    def drawn(name: str, figure) -> bytes:
        found = figure and figure()
        made = figures.render(*found, origin=given.origin, suffixes=PICTURES) if found else {}
        files.update({f"figures/{name}{suffix}": made[suffix] for suffix in PICTURES if suffix in made})
        return made.get(".svg", b"")

    answers = {name: attempt("The first screen", make, m) for name, make in first.SENTENCES.items()}
    answers = {name: text for name, text in answers.items() if text}
    board = attempt("The scoreboard", first.board, m)
    picture = attempt("The picture", drawn, "first", lambda: first.picture(m)) or b""
    examples = attempt("Five test points", first.examples, m) or []
    files["csv/metrics.csv"] = _csv(m.values)
    boards, parts, body = [board] if board else [], {}, {}
    for name, part in PARTS.items():
        before, title = len(missing), NOTES[name]["title"]
        found = attempt(title, part, m)
        if found is not None:
            tables = {**({name: found.table} if found.heading else {}), **found.more}
            files |= {f"csv/{file}.csv": _csv(table) for file, table in tables.items()}
        if found is not None and found.heading:
            svg, said = attempt(title, drawn, name, found.figure) or b"", [text for text in found.said if text]
            own = [dataclasses.replace(one, file=_file(files, one.name, name)) for one in found.grids]
            picture_of = html.picture(svg, " ".join([f"{found.heading}.", *said[:1]]))
            shown = [picture_of, html.said([*said[:2], NOTES[name]["note"], *missing[before:]])]
            shown += [html.folded("Table", html.said(said[2:]), *(one.html() for one in own))]
            boards, body[name] = [*boards, *own], html.section(name, found.heading, *shown)
            names = [one.name for one in own]
            parts[name] = {"heading": found.heading, "said": said, "tables": names, "figure": bool(svg)}
        elif missing[before:]:
            body[name] = html.section(name, title, html.said(missing[before:]))
    if asked.about:
        said_of = pd.DataFrame([{"model": model, **said} for model, said in asked.about.items()])
        of_models = of_table("about", "As given with the report; nothing of it was measured here", said_of)
        boards, body["about"] = [*boards, of_models], html.section("about", NOTES["about"]["title"], of_models.html())
        files["csv/about.csv"] = _csv(said_of)
    files |= {f"latex/{one.name}.tex": one.latex(given.origin).encode() for one in boards}
    found = {one for table in (m.values, m.pairs) for one in table["metric"]}
    used = [METRICS[name] for name in (*METRICS, *sorted(filter(family, found))) if name in found]
    used += asked.own.values()
    versions = {"xcrepro": __version__, "Python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in LIBRARIES if importlib.util.find_spec(name)}
    doubts = [*asked.warnings, *(attempt("Do truth and predictions fit?", lambda: m.doubts) or []), *missing]
    about = {"format": FORMAT, "title": given.title, "origin": given.origin, "about": first.about(m)}
    about |= {"models": given.models, "compared": [f"{metric}@{k}" for metric, k in m.wanted]}
    about |= {"metrics": [metric.name for metric in used], "sentences": answers}
    about |= {"scoreboard": board.records() if board else [], "examples": examples, "parts": parts}
    options = {"ks": m.ks, **m.drawn, "calibrator": asked.calibrator, "A": given.A, "B": given.B}
    about |= {"truth": m.recognised.text, "digest": given.digest(), "options": options, "versions": versions}
    notes = sentences.reports_without(given, m.ks, attempt("A first look", lambda: m.first_look) or ())
    about |= {"command": asked.command, "notes": notes, "warnings": doubts, "given": asked.about}
    files["report.html"] = _page(about, board, picture, body, used).encode()
    return Report(about, files)


def _csv(table: pd.DataFrame) -> bytes:
    return without_formulas(table).to_csv(index=False, lineterminator="\n").encode()


def _file(files: Mapping[str, bytes], *names: str) -> str:
    """The CSV file behind a table: its own, or its part's."""
    return next((file for file in (f"csv/{name}.csv" for name in names) if file in files), "")


def _page(about: Mapping[str, Any], board, picture: bytes, body: Mapping[str, str], used: list) -> str:
    """The page: the first screen, five points, the parts, and at the end what it was made with."""
    from xcrepro.tools.reports import sentences
    from xcrepro.tools.reports.parts import NOTES

    lead, *others = about["sentences"].values() or [""]
    low = [name for name in (board.columns if board else ()) if sentences.is_lower(name.rpartition("@")[0])]
    marks = " · ".join(
        ["bold: the best", "▲ leads clearly", "≈ too close to call", *(f"{one}: lower is better" for one in low)]
    )
    marks = f"<p><small>{marks}</small></p>" * (len(about["models"]) > 1)
    doubts, (who, bracket, by) = about["warnings"], lead.partition(" (")
    rest = html.folded(f"{len(doubts) - 1} more", html.said(doubts[1:]))
    sign = f'<div class="warnings" role="note">{html.said(["Warning: " + doubts[0]])}{rest}</div>' if doubts else ""
    first = [
        f'<header id="first">\n<h1>{html.escape(about["title"])}</h1>',
        f'<p class="about">{html.escape(about["about"])}</p>{sign}',
        f'<div class="answer"><div>\n<p class="lead"><strong>{html.escape(who)}</strong>{bracket}{html.escape(by)}</p>',
        f"{board.html() + marks if board else ''}\n{html.said(others)}</div>",
        html.picture(picture, f"{lead} The table has the numbers.") + "</div>",
        "</header>",
    ]
    cards = "\n".join(map(html.card, about["examples"]))
    links = {"first": "The answer"}
    if cards:
        links["examples"] = "Five test points"
        more = '<p>More: <a href="csv/points.csv">all points</a>, <a href="csv/labels.csv">all labels</a>.</p>'
        cards = f'<div class="cards">{cards}</div>'
        first.append(html.section("examples", "Five test points, drawn by rule", cards, more))
    rows = [(m.name, m.unit, m.better or "-", m.averages or "-", m.source) for m in used]
    defined = pd.DataFrame(rows, columns=["metric", "unit", "better", "mean over", "source"])
    said = [NOTES["method"]["note"], f"The truth is {about['truth']}.", f"Input: SHA-256 {about['digest']}."]
    for what in ("options", "versions"):
        said.append(f"{what.title()}: {', '.join(f'{name} = {value}' for name, value in about[what].items())}.")
    said += [f"Command: {about['command']}"] if about["command"] else []
    table = of_table("definitions", "The metrics; xcrepro.metrics has their definitions", defined).html()
    sections = [*body.values()]
    if about["notes"]:
        sections += [html.section("notes", "What this report lacks, and why", html.said(about["notes"]))]
    sections += [html.section("method", NOTES["method"]["title"], html.said(said), html.folded("The metrics", table))]
    links |= {name: NOTES[name]["title"] for name in body} | ({"notes": "What it lacks"} if about["notes"] else {})
    links["method"] = "Definitions"
    inside = "\n".join([*first, *sections])
    whole = f'<div class="xcrepro-report page" lang="en">\n{html.navigation(links)}\n<main>\n{inside}\n</main>\n</div>'
    return html.page(f"Report: {about['title']}", whole)


def _without_folders(made: Report, given: list) -> Report:
    """The report without the folders of the files that it was made from."""

    texts = {name: made.files[name] for name in made.files if Path(name).suffix in (".html", ".csv", ".tex")}
    files = {name: without_folders(content.decode(), given).encode() for name, content in texts.items()}
    about = without_folders(json.dumps(made.about, ensure_ascii=False), given)
    return Report(json.loads(about), made.files | files)


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
