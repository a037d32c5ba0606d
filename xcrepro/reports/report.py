"""The report itself: its parts, and the folder, the page and the tables that they become."""

from __future__ import annotations

import contextlib
import importlib.metadata
import itertools
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import xcrepro
from xcrepro import diagnose, extras, looks, paths
from xcrepro.arguments import cut_offs, one_of, real_number, whole_number
from xcrepro.errors import ArgumentError, DataError, DataMissing
from xcrepro.metrics.registry import METRICS
from xcrepro.reports import compute, html, latex, parts, sentences
from xcrepro.reports import given as inputs
from xcrepro.reports.grid import Grid, of_table
from xcrepro.reports.parts import Part
from xcrepro.repro import figures as drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "xcrepro report 1"
FILE = "report.json"
LIBRARIES = ("numpy", "scipy", "numba", "pandas", "matplotlib")


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that is measured of one or several models on one truth. Made by :func:`report`.

    Attributes
    ----------
    title : str
        Of the data.
    parts : dict of str to Part
        Section by section.
    exports : dict of str to DataFrame
        Larger tables that are only saved: ``labels`` and ``points``, a row each.
    about : dict
        What it was made from and with: origin, models, options, versions, command, digest.
    notes : tuple of str
        What it lacks, and why.
    warnings : tuple of str
        Doubts about the input, at its head.
    """

    title: str
    parts: dict[str, Part]
    exports: dict[str, pd.DataFrame] = field(repr=False)
    about: dict[str, object] = field(repr=False)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    _drawn: dict[str, bytes] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"Report({self.title!r}, models={self.about['models']}, parts={list(self.parts)})"

    def _part(self, part: str) -> Part:
        return self.parts[one_of("part", part, list(self.parts))]

    def frame(self, part: str | None = None) -> pd.DataFrame:
        """Numbers, tidy: fractions (entropy and NLL in nats).

        Parameters
        ----------
        part : str, optional
            A name of ``parts`` or of ``exports``; by default all metrics of all models: model, metric, k, value, low, high,
            interval, seeds, seed low, seed high.

        Returns
        -------
        DataFrame
            A copy.

        Raises
        ------
        ArgumentError
            For another name.
        """
        if part is None:
            return pd.concat([self.parts[name].table for name in parts.METRIC_PARTS], ignore_index=True)
        known = {name: one.table for name, one in self.parts.items()} | self.exports
        return known[one_of("part", part, list(known))].copy()

    def plot(self, part: str = "ranking") -> Figure:
        """The figure of a part.

        Raises
        ------
        ArgumentError
            For a name that is none of ``parts``, or one without a figure.
        """
        return self._draw(part)[0]

    def drawn(self, part: str = "ranking") -> pd.DataFrame:
        """The table that holds every number that :meth:`plot` shows."""
        return self._draw(part)[1]

    def _draw(self, part: str) -> tuple[Figure, pd.DataFrame]:
        draws = [name for name, one in self.parts.items() if one.draw]
        return self.parts[one_of("part", part, draws)].draw()

    def sentences(self, part: str | None = None) -> list[str]:
        """What the numbers come to: of one part, or of all."""
        chosen = self.parts.values() if part is None else [self._part(part)]
        return [said for one in chosen for said in one.said]

    def show(self, part: str = "ranking") -> list[Grid]:
        """The tables of a part as people read them."""
        return list(self._part(part).grids)

    def latex(self, part: str = "ranking") -> str:
        """The tables of a part as LaTeX (packages booktabs and graphicx): percent, the best in bold."""
        return "\n".join(latex.tabular(grid, self.about["origin"]) for grid in self._part(part).grids)

    def to_html(self) -> str:
        """The report as one HTML file's text; it asks for no other file."""
        return html.page(f"Report: {self.title}", self._body())

    def _repr_html_(self) -> str:
        return f"<style>{html.style()}</style>{self._body()}"

    # ------------------------------------------------------------------ on disk

    def save(
        self,
        folder: str | os.PathLike,
        force: bool = False,
        extra: Mapping[str, bytes] | None = None,
        progress: bool = False,
    ) -> Path:
        """Write the report: all of it, or nothing.

        ``report.html``; ``csv/`` the tidy tables; ``latex/`` the tables and a document that shows them; ``figures/`` SVG;
        ``report.json`` what it was made from.

        Parameters
        ----------
        folder : path
            A new one, or one that holds a report of the same input, which is replaced.
        force : bool
            Replace a report of other input too. What is no report is never replaced.
        extra : mapping of str to bytes, optional
            More files: name -> content.
        progress : bool
            Say on stderr how long it took.

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
        note = _Progress(progress)
        note("figures and files")
        with atomic_folder(target) as home:
            for name, content in itertools.chain(self._files(), (extra or {}).items()):
                path = home / name
                path.parent.mkdir(exist_ok=True)
                if isinstance(content, pd.DataFrame):
                    content.to_csv(path, index=False, lineterminator="\n")
                else:
                    path.write_bytes(content)
        note()
        return target / "report.html"

    def _files(self) -> Iterator[tuple[str, bytes | pd.DataFrame]]:
        yield "report.html", self.to_html().encode()
        for name, part in self.parts.items():
            yield f"csv/{name}.csv", part.table
            if part.draw:
                yield f"figures/{name}.svg", self._svg(name)
            for grid in part.grids:
                yield f"latex/{grid.name}.tex", latex.tabular(grid, self.about["origin"]).encode()
        captions = {
            f"{grid.name}.tex": (grid.caption, " ".join(part.said) if grid is part.grids[0] else "")
            for part in self.parts.values()
            for grid in part.grids
        }
        yield "latex/report.tex", latex.document(f"Report: {self.title}", captions).encode()
        for name, table in self.exports.items():
            yield f"csv/{name}.csv", table
        yield "csv/metrics.csv", self.frame()
        about = {"format": FORMAT, "title": self.title, **self.about, "notes": self.notes, "warnings": self.warnings}
        yield FILE, (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()

    def _svg(self, part: str) -> bytes:
        """The figure's file; drawn once."""
        if part not in self._drawn:
            fig, table = self._draw(part)
            self._drawn[part] = drawing.render(fig, table, origin=self.about["origin"], suffixes=(".svg",))[".svg"]
        return self._drawn[part]

    # ------------------------------------------------------------------ the page

    def _body(self) -> str:
        escape, about = html.escape, self.about
        first = "".join(
            f'<li><a href="#part-{name}">{escape(part.title)}</a></li>' for name, part in self.parts.items()
        )
        doubts = "".join(f"<li>{escape(text)}</li>" for text in self.warnings)
        notes = "".join(f"<li>{escape(text)}</li>" for text in self.notes)
        shown = [
            f"<header><h1>Report: {escape(self.title)}</h1>",
            f'<p class="about">{escape(about["origin"])}. Models: {escape(", ".join(about["models"]))}. '
            f"The truth is {escape(about['truth'])}.</p></header>",
            f'<div class="warnings" role="note"><p><strong>To doubt</strong></p><ul>{doubts}</ul></div>'
            if doubts
            else "",
            f"<ul>{notes}</ul>" if notes else "",
            f'<nav aria-label="Parts"><ul>{first}</ul></nav>',
            *(self._section(part) for part in self.parts.values()),
            self._foot(),
        ]
        inside = "\n".join(filter(None, shown))
        return f'<main class="xcrepro-report" lang="en">\n{inside}\n</main>'

    def _section(self, part: Part) -> str:
        escape = html.escape
        said = "\n".join(f'<p class="said">{escape(text)}</p>' for text in part.said)
        lines = [
            f'<section id="part-{part.name}"><h2>{escape(part.title)}</h2>',
            f'<p class="about">{escape(part.about)}</p>',
        ]
        if part.draw:
            words = " ".join(part.said) or part.about
            lines.append(f"<figure>{html.picture(self._svg(part.name), part.name, part.title, words)}</figure>")
        lines += [said, *map(html.table, part.grids), "</section>"]
        return "\n".join(lines)

    def _foot(self) -> str:
        escape, about = html.escape, self.about
        used = [METRICS[name] for name in about["metrics"]]
        defined = of_table(
            "definitions",
            "The metrics; xcrepro.metrics has their definitions",
            pd.DataFrame(
                [(m.name, m.unit, m.better or "-", m.averages or "-", m.source) for m in used],
                columns=["metric", "unit", "better", "mean over", "source"],
            ),
        )
        options = ", ".join(f"{name} = {value}" for name, value in about["options"].items())
        versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
        command = f"<p>Command: <code>{escape(about['command'])}</code></p>" if about["command"] else ""
        return (
            f'<footer id="part-definitions"><h2>Definitions, versions, options</h2>\n{html.table(defined)}\n'
            f"<p>{escape(_INTERVALS)}</p>\n<p>Options: {escape(options)}.</p>\n<p>Versions: {escape(versions)}.</p>\n"
            f"<p>Input: SHA-256 {escape(about['digest'])}.</p>\n{command}</footer>"
        )


_INTERVALS = (
    "Intervals hold the value that is to be expected on a fresh test set of as many points: of sums over points by the "
    "bootstrap, of metrics of labels and of calibration errors from disjoint halves and quarters of the points. A lead is "
    "clear where p, corrected over the pairs of models (Holm), is below 5 %. Bold: best; °: chance may keep it from being best."
)


def report(
    truth,
    predictions,
    *,
    train_truth=None,
    A: float | None = None,
    B: float | None = None,
    ks: Sequence[int] = (1, 3, 5),
    title: str = "",
    label_names: Sequence[str] = (),
    exclude: tuple[np.ndarray, np.ndarray] | None = None,
    others: Sequence[str | os.PathLike | Report] = (),
    price: bool = True,
    calibrator: str = "isotonic",
    samples: int | None = None,
    seed: int = 0,
    confidence: float = 0.95,
    warnings: Sequence[object] = (),
    command: str = "",
    progress: bool = False,
) -> Report:
    """Everything there is to measure of one or several models on one truth, in one report.

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
    train_truth
        Training labels, of a truth that is no dataset: a matrix or a file. Without them there are no propensity-scored metrics
        and no bins of train frequency.
    A, B : float, optional
        Of the propensity model; by default the dataset's, else 0.55 and 1.5.
    ks : int or sequence of int
        The cut-offs; the largest is that of the detailed parts.
    title : str
        By default what the data are called.
    label_names : sequence of str
        Of all L labels; by default the dataset's.
    exclude : tuple of (rows, labels), optional
        Pairs that may not be predicted, for files of score matrices.
    others : sequence of path or Report
        Reports of the same models on other datasets: adds ranks over all of them.
    price : bool
        Whether to choose labels for coverage as well; it goes through the points one by one, once a beta and model.
    calibrator : {"isotonic", "platt", "beta"}
        What "after" is calibrated by, cross-fitted over the test points. With few points isotonic regression says 0 or 1 where
        it met only misses or only hits, which can raise NLL.
    samples : int, optional
        Of the bootstrap, and ten times the partitions of all other intervals, 20 or more; by default by the number of points
        and models (:func:`xcrepro.reports.compute.samples_for`).
    seed : int
        Of all that is drawn.
    confidence : float
        Of the intervals, between 0 and 1.
    warnings : sequence
        Doubts about the input, shown at the head: texts, or what has a ``message``.
    command : str
        What made it, shown at its foot.
    progress : bool
        Say on stderr what is being computed.

    Returns
    -------
    Report

    Raises
    ------
    ArgumentError, DataError, DataMissing
        For input that cannot belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from xcrepro import TopK
    >>> Y = np.eye(40)
    >>> tops = {"right": TopK.from_ids(np.arange(40)[:, None], n_labels=40)}
    >>> tops["half"] = TopK.from_ids(np.arange(40)[:, None] // 2 * 2, n_labels=40)
    >>> found = report(Y, tops, ks=1)
    >>> found.sentences("ranking")[0]
    'right leads P@1 with 100.0 % [100.0, 100.0], clearly: 50.0 points [35.0, 65.0] above half (p = 0.002).'
    """
    ks = tuple(sorted(cut_offs(ks).tolist()))
    whole_number("seed", seed)
    real_number("confidence", confidence, above=0, below=1)
    one_of("calibrator", calibrator, list(compute.CALIBRATORS))
    extras.library("matplotlib.figure")  # before the work, not after it
    note = _Progress(progress)
    note("reading")
    given = inputs.collect(
        truth, predictions, train_truth=train_truth, A=A, B=B, title=title, label_names=label_names, exclude=exclude
    )
    for model, runs in given.runs.items():
        for top in runs.values():
            if top.k < ks[-1]:
                raise ArgumentError("ks", f"must not exceed the {top.k} places that {model!r} holds", ks[-1])
    n_drawn = compute.samples_for(given.truth.n_rows, len(given.models))
    if samples is not None:
        n_drawn = (whole_number("samples", samples, 20),) * 2
    drawn = {"seed": seed, "confidence": confidence}
    k, look = ks[-1], looks.distinct(given.models)
    made: list[Part] = []

    note("metrics and pairs")
    metrics, pairs = compute.metrics_and_pairs(given, ks, n_drawn, **drawn)
    made += parts.of_metrics(metrics, pairs, ks, look)
    if len(given.models) > 1:
        note("t-tests")
        made += parts.of_pairs(metrics, pairs, compute.t_tests(given, ks, seed), k)
    if given.label_counts is not None:
        note("bins and bands of train frequency")
        made += parts.of_frequency(compute.bins(metrics, given), compute.bands(given, k), k, look)
    if given.with_probabilities:
        note("calibration")
        errors = compute.calibration(given, ks, n_drawn[1], **drawn, calibrator=calibrator)
        made += parts.of_calibration(*errors, k, look, calibrator)
        if price:
            note("price of coverage")
            made += parts.of_price(compute.price(given, k, n_drawn, **drawn), look)
    note("labels and points")
    labels, points = compute.by_label(given, k), compute.by_point(given, k)
    if len(given.models) > 1:
        made += parts.of_differences(given, metrics, labels, points, k)
    made += parts.of_printed(given)
    if others:
        note("other datasets")
        made += parts.of_ranks({given.title: metrics}, others_of(others), k, look)
    note()
    about = {
        "origin": given.origin,
        "models": given.models,
        "metrics": [
            name for name in METRICS if name in {*compute.metric_names(given), *parts.calibration_metrics(made)}
        ],
        "truth": diagnose.recognise(given.truth, given.dataset).text,
        "digest": given.digest(),
        "options": {
            "ks": list(ks),
            "samples": n_drawn[0],
            "partitions": max(20, n_drawn[1] // 10),
            "seed": seed,
            "confidence": confidence,
            **({"calibrator": calibrator} if given.with_probabilities else {}),
            **({} if given.label_counts is None else {"A": given.A, "B": given.B}),
        },
        "versions": {"xcrepro": xcrepro.__version__, "Python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in LIBRARIES},
        "command": command,
    }
    doubts = tuple(str(getattr(one, "message", one)) for one in warnings) + alignment(given, exclude)
    notes = tuple(sentences.reports_without(given, ks))
    exports = {"labels": labels, "points": points}
    return Report(given.title, {part.name: part for part in made}, exports, about, notes, doubts)


def alignment(given: inputs.Given, exclude=None) -> tuple[str, ...]:
    """What says that a model's predictions and the truth do not belong together (:func:`xcrepro.diagnose.check`)."""
    return tuple(
        f"{model if len(runs) == 1 else f'{model}.seed{seed}'}: {finding}"
        for model, runs in given.runs.items()
        for seed, top in runs.items()
        for finding in diagnose.check(given.truth, top, Y_train=given.train, exclude=exclude)
    )


class _Progress:
    """Says what is being computed, and how long what came before took."""

    def __init__(self, shown: bool) -> None:
        self._shown, self._what, self._since = shown, "", time.perf_counter()

    def __call__(self, what: str = "") -> None:
        now = time.perf_counter()
        if self._shown and self._what:
            print(f"{self._what}: {now - self._since:.1f} s", file=sys.stderr, flush=True)
        self._what, self._since = what, now


# ---------------------------------------------------------------- on disk


def others_of(others: Sequence[str | os.PathLike | Report]) -> list[tuple[str, pd.DataFrame]]:
    """Title and metrics of reports, as they are or as they were saved."""
    return [(one.title, one.frame()) if isinstance(one, Report) else read(one) for one in others]


def read(folder: str | os.PathLike) -> tuple[str, pd.DataFrame]:
    """Title and metrics of a saved report.

    Parameters
    ----------
    folder : path

    Returns
    -------
    title : str
    metrics : DataFrame

    Raises
    ------
    DataMissing
        Where none is there.
    DataError
        For one of another form.
    """
    about = _about(Path(folder).expanduser())
    if about is None:
        raise DataMissing(f"{folder}: no report there; give a folder that `xcrepro report --out` wrote")
    path = Path(folder).expanduser() / "csv" / "metrics.csv"
    do = "Make the report again"
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError) as error:  # pandas' own errors are ValueErrors
        raise DataError(path, f"no table ({error})", "what a report writes", do=do) from None
    if not {"model", "metric", "k", "value"} <= set(table) or not all(
        pd.api.types.is_numeric_dtype(table[name]) for name in ("k", "value")
    ):
        raise DataError(
            path, f"the columns {', '.join(map(str, table))}", "model, metric, k, value, with numbers", do=do
        )
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
        if digest and not force and found.get("digest") != digest:
            do = "take another folder, or replace it with --force (force=True)"
            raise ArgumentError("out", "must not hold a report of other input", target, do)


@contextlib.contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """A folder beside ``target`` that takes its place when the block ends well, and is gone when it does not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part, old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent)), None
    try:
        with paths.faults_named(target):
            yield part
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o777 & ~umask)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
            os.replace(target, old)
        os.replace(part, target)
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        if old is not None and not target.exists():
            os.replace(old, target)
        raise
