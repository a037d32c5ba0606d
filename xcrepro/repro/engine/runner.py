"""Regenerate items: papermill in subprocesses, only what changed, and a clear word about each."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import itertools
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core import extras, paths, threads
from xcrepro.core.arguments import whole_number
from xcrepro.core.errors import ArgumentError, XCError, system_fault
from xcrepro.repro.engine import compare_outputs, manifest, notebooks, prose_numbers, stamps, tidy
from xcrepro.repro.engine import items as items_
from xcrepro.repro.engine.processes import Child, Job, environment_of, finished, let_go, papermill, places, room

if TYPE_CHECKING:
    import pandas as pd


class RunFailed(XCError):
    """Items failed; the message has item, cell, error and the executed notebook of each."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of one item: its outcome, the reason, the seconds it ran, its executed notebook, and what else it has
    to say."""

    id: str
    outcome: str
    why: str
    seconds: float = 0.0
    notebook: Path | None = None
    said: tuple[str, ...] = ()

    @property
    def bad(self) -> bool:
        """Whether there is no result: it failed, or was not run because another did."""
        return self.outcome in ("failed", "not run")


@dataclasses.dataclass(frozen=True)
class Report:
    """The results of one run, in the manifest's order, and how many seconds it took."""

    results: tuple[Result, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether each item ran, and made what is committed."""
        return not any(result.bad or result.outcome == "differs" for result in self.results)

    def summary(self) -> str:
        """One line, such as ``4 items: 1 ok, 3 unchanged (5.0 s)``."""
        outcomes = [result.outcome for result in self.results]
        counts = [f"{outcomes.count(name)} {name}" for name in dict.fromkeys(sorted(outcomes, key=_ORDER.index))]
        said = ", ".join(counts) or "the manifest is empty"
        if set(outcomes) - {"left out"} == {"unchanged"}:
            left = outcomes.count("left out")
            said = "all unchanged, nothing to do" + (f"; {left} left out" if left else "")
        return f"{len(outcomes)} items: {said} ({self.seconds:.1f} s)"

    def failures(self) -> str:
        """A paragraph for every item that failed or differs; empty when none did."""
        parts = [f"{result.id} {result.outcome}: {result.why}" for result in self.results if result.bad]
        for result in self.results:
            if result.outcome == "differs":
                how = f"look at it (git diff); if it is right: xcrepro accept {result.id}"
                parts.append("\n  ".join([f"{result.id} is not as committed:", *result.said, how]))
        return "\n".join(parts)

    def table(self) -> pd.DataFrame:
        """One row per item: item, outcome, why."""
        import pandas as pd

        rows = [(result.id, result.outcome, result.why) for result in self.results]
        return pd.DataFrame(rows, columns=["item", "outcome", "why"])

    def require(self) -> str:
        """``all items are as committed``; raises ``RunFailed`` if an item failed, was not run, or differs from what is
        committed."""
        if not self.ok:
            bad = sum(result.bad or result.outcome == "differs" for result in self.results)
            raise RunFailed(f"{bad} of {len(self.results)} items failed or differ\n{self.failures()}")
        return "all items are as committed"


UNTIL_UP = 20
"""Seconds: a run that was killed as it started a child leaves its lock to that child until it is up."""
_ORDER = ("ok", "would run", "unchanged", "left out", "differs", "not run", "failed")


def run(
    items: str | list[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    parameters: dict | None = None,
    accept: bool = False,
    dry: bool = False,
    long: bool = False,
) -> Report:
    """Run items of the manifest that changed, what they need first; print a line for each; return the :class:`Report`.

    Everything is checked before anything starts. After that an item that fails does not stop the others;
    :meth:`Report.require` raises. Executed notebooks are ``build/notebooks/<id>.ipynb``, with a ``.log`` beside each.

    Parameters
    ----------
    items : str or list of str, optional
        Ids or paper names, as a list or separated by commas; by default all that the manifest does not mark as long.
    force, dry : bool
        Also run what is unchanged; run nothing and say what would run and why.
    jobs : int, optional
        Notebooks at once, by default and at most one per core.
    parameters : dict, optional
        For the named items, in place of the manifest's. Such a run is the reader's own: it always runs, is compared with
        nothing, and is kept in ``build/notebooks/other`` and ``build/figures/other``.
    accept : bool
        The named items write what is to be committed instead of comparing with it: tables, pictures, and the notebooks with
        their outputs, tidied, and the typed numbers that moved.
    long : bool
        With all items, also those that are marked as long. One that is named, or needed, always runs.
    """
    root = paths.project_root()
    began = time.monotonic()
    if jobs is not None:
        whole_number("jobs", jobs, 1)
    if accept and parameters:
        raise ArgumentError("accept", "is for items with their own parameters", f"{items!r}, {parameters!r}")
    entries = manifest.load(root)
    if accept:
        manifest.require_project(entries, "accepting what items come to")
    named = manifest.find(entries, items)
    left = [] if items or long else [name for name in named if entries[name].long]
    named = [name for name in named if name not in left]
    plan = _plan(entries, named, force, accept, parameters or {})
    left = [name for name in left if name not in plan]
    results = {name: Result(name, "left out", "it takes long: name it, or ask for the long ones too") for name in left}
    for result in results.values():
        print(f"{result.id}  {result.outcome}  ({result.why})", flush=True)
    with alone(root):
        accepted = set(named) if accept else set()
        jobs_ = _Scheduler(root, plan, results, *places(jobs, len(plan)), accepted)
        jobs_.say() if dry else jobs_.run()
        if accept and not dry:
            for name in named:
                result = jobs_.results[name]
                if result.outcome in ("ok", "unchanged"):
                    try:
                        for said in _write_back(plan[name].entry, result.notebook, jobs_.typed.get(name, ())):
                            print(f"    {name}: {said}", flush=True)
                    except OSError as error:
                        jobs_.results[name] = dataclasses.replace(result, outcome="failed", why=system_fault(error))
    order = [*plan, *(name for name in jobs_.results if name not in plan)]
    report = Report(tuple(jobs_.results[name] for name in order), time.monotonic() - began)
    print(report.summary(), flush=True)
    if failures := report.failures():
        print(failures, flush=True)
    return report


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """One run per project at a time: two would write each other's notebooks and stamps. The lock ends with its process."""
    FileLock, Timeout = (getattr(extras.library("filelock"), name) for name in ("FileLock", "Timeout"))
    for name in ("papermill", "psutil"):  # the processes that it starts need them
        extras.library(name)
    try:
        (root / "build").mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / "build" / "run.lock")
        lock.acquire(timeout=UNTIL_UP)
    except Timeout:
        raise XCError(f"another run is under way in {root}: wait for it to end, or stop it, then run again") from None
    except OSError as error:
        raise XCError(
            f"a run writes into {root / 'build'}, which cannot be: {system_fault(error)}; `xcrepro start DIR` makes a project "
            f"of your own"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _plan(
    entries: dict[str, manifest.Entry], named: list[str], force: bool, accept: bool, given: dict
) -> dict[str, Job]:
    """The jobs in running order; all checks are here."""
    plan: dict[str, Job] = {}
    for name in manifest.with_needs(entries, named):
        entry = entries[name]
        asked = name in named
        own = given if asked else {}
        values = with_own(entry, own)
        same, inject = values == entry.official(), values != with_own(entry, {})
        if own:
            items_.check_parameters(entry, values)
        home = entry.root / "build" / "notebooks" / ("" if same else f"other/{items_.own_name(entry, values)}")
        stamp = stamps.path(entry) if same else None
        plan[name] = Job(entry, values, same, inject, (force or accept) and asked, home / f"{name}.ipynb", stamp)
    wanted = set(named)
    for name in reversed(plan):  # what one needs stands before it
        wanted |= set(plan[name].needs) if name in wanted else set()
    return {name: job for name, job in plan.items() if name in wanted}


def with_own(entry: manifest.Entry, own: dict) -> dict:
    """All parameters of a run with some of a reader's own, the rest as the notebook has them; refused where it has not."""
    here = notebooks.parameters(entry.notebook)
    notebooks.check_values(entry.notebook.name, here, own)
    return {**here, **{key: notebooks.plain(value) for key, value in own.items()}}


def run_jobs(root: Path, jobs: list[Job], at_once: int | None) -> dict[str, Result]:
    """Runs of a reader's own, within :func:`alone`; each is kept until something under it changes. Id -> what became of it."""
    work = _Scheduler(root, {job.id: job for job in jobs}, {}, *places(at_once, len(jobs)), set())
    work.run()
    return work.results


class _Scheduler:
    """Starts jobs when what they need is done and a place is free, and collects their results."""

    def __init__(self, root, plan, results, at_once, threads_each, accepted) -> None:
        self.root, self.plan, self.results, self.shown = root, plan, dict(results), 0
        self.at_once, self.accepted = at_once, accepted
        # What takes long first: at the end no core waits for another. Otherwise in the manifest's order.
        ahead = manifest.seconds_ahead({name: job.entry for name, job in plan.items()})
        self.waiting = sorted(plan, key=lambda name: -ahead[name])
        self.room, self.versions, self.environment = room(), stamps.versions(), environment_of(root, threads_each)
        self.taken: dict[str, float] = {}
        """What runs -> the GB that it is going to take."""
        self.digests: dict[str, str] = {}
        self.typed: dict[str, list[str]] = {}
        """Item -> the numbers that accepting it puts into its text."""

    def run(self) -> None:
        for child in finished(self._next, self.at_once):
            with self._failing(child.job, child.began):
                self._end(child)

    def say(self) -> None:
        """What would run, taken that what items need comes to the same as before."""
        for name, job in self.plan.items():
            stamp = stamps.read_at(job.stamp) if job.stamp else None
            needs = stamp.fingerprint["needs"] if stamp else {}
            why, _ = self._reason(job, needs)
            self._record(Result(name, "would run" if why else "unchanged", why or ""))

    def _reason(self, job: Job, needs: dict[str, str]) -> tuple[str | None, dict]:
        """Why ``job`` must run, None where it need not, and its fingerprint."""
        fingerprint = job.fingerprint or stamps.fingerprint(job.entry, job.values, self.versions, needs)
        if job.stamp is None:
            return "not the committed parameters", fingerprint
        why = stamps.reason(job.entry, stamps.read_at(job.stamp), fingerprint)
        if why is None and not job.executed.is_file():
            why = "its executed notebook is not there"
        return why or ("asked for" if job.force else None), fingerprint

    def _next(self) -> Child | None:
        """The next item that has to run and may; what it finds unchanged, or cannot run, it records."""
        moved = True
        while moved:  # one that is unchanged may have been waited for by one before it
            moved = False
            for name in list(self.waiting):
                job = self.plan[name]
                done = [self.results.get(need) for need in job.needs]
                if bad := [result for result in done if result and result.bad]:
                    self._record(
                        Result(
                            name,
                            "not run",
                            f"it needs {bad[0].id}, which {'was ' * (bad[0].outcome == 'not run')}{bad[0].outcome}",
                        )
                    )
                elif not all(done):
                    continue
                elif self.taken and sum(self.taken.values()) + job.memory > self.room:
                    continue  # it waits for one that runs; one by itself runs whatever it takes
                self.waiting.remove(name)
                moved = True
                with self._failing(job):
                    memory = job.memory  # its own last run's, which starting it removes
                    if not bad and (child := self._begin(job)):
                        self.taken[name] = memory
                        return child
        return None

    @contextlib.contextmanager
    def _failing(self, job: Job, began: float | None = None) -> Iterator[None]:
        """What goes wrong here, with the machine or with the item's files, fails the item and not the run."""
        try:
            yield
        except (OSError, XCError) as error:
            why = system_fault(error) if isinstance(error, OSError) else str(error)
            self.digests[job.id] = ""
            self._record(Result(job.id, "failed", why, time.monotonic() - began if began else 0.0))

    def _begin(self, job: Job) -> Child | None:
        name = job.id
        needs = {need: self.digests[need] for need in job.needs}
        why, fingerprint = self._reason(job, needs)
        if why is None:
            self.digests[name] = stamps.read_at(job.stamp).digest()
            self._record(Result(name, "unchanged", "", notebook=job.executed))
            return None
        environment = {**self.environment, **({"XCREPRO_ACCEPT": name} if name in self.accepted else {})}
        return Child(self.root, job, fingerprint, why, environment)

    def _end(self, child: Child) -> None:
        job, name = child.job, child.job.id
        self.taken.pop(name)
        fault, notes = child.fault(), child.notes()
        _settle(job, child.executed, notes.get("output", []), notes.get("apart", []))
        moved, other = notes.get("moved", []), notes.get("elsewhere", [])
        self.typed[name] = notes.get("typed", [])
        here, elsewhere = job.official and not fault, compare_outputs.elsewhere()
        if here and name not in self.accepted:
            (other if elsewhere else moved).extend(_output_differences(job.entry, child.executed))
        outputs = notes.get("output", []) if job.official else job.kept
        stamp = None if fault else stamps.made(job.entry, child.fingerprint, notes.get("input", []), outputs)
        if stamp and job.stamp and not moved:  # one that differs is to run, and to say so, again
            stamps.write_at(job.stamp, stamp)
        self.digests[name] = stamp.digest() if stamp else ""
        outcome, why = ("failed", fault) if fault else ("differs" if moved else "ok", child.why)
        if not job.stamp and not fault:
            kept = items_.folder(False)
            kept = kept if "XCREPRO_FIGURES" in os.environ else kept / items_.own_name(job.entry, job.values)
            other += [f"its notebook: {child.executed}", f"its figures and tables: {kept / name}*"]
        if here and elsewhere and not paths.is_clone(self.root):
            place = stamps.short(Path.cwd(), items_.folder(True))
            other.append(f"its figures and tables: {place}/{name}*, made with {'; '.join(elsewhere)}")
        said = (*moved, *other, *(f"drawn with other bytes: {text}" for text in notes.get("redrawn", [])))
        self._record(Result(name, outcome, why, time.monotonic() - child.began, child.executed, said))

    def _record(self, result: Result) -> None:
        self.results[result.id] = result
        self.shown += 1
        total = str(len(self.plan))
        line = f"[{self.shown:>{len(total)}}/{total}] {result.id}  {result.outcome}"
        if result.outcome in ("ok", "differs", "failed"):
            line += f" {result.seconds:.1f} s"
        print(line + (f"  ({result.why})" if result.why and result.outcome != "failed" else ""), flush=True)
        for text in result.said if result.outcome != "differs" else ():  # the report's end has those
            print(f"    {text}", flush=True)


def _settle(job: Job, executed: Path, outputs: list[str], apart: list[str]) -> None:
    """Let an executed copy speak for itself: its links lead somewhere from where it lies, and one with other parameters than
    the committed run's says so on its first screen, with its own pictures, and which of them and of the verdicts have nothing
    of it (``apart``)."""
    try:
        ran = notebooks.read(executed)
    except (OSError, XCError):
        return
    figures = job.entry.home / "figures" / Path(job.entry.id).parent
    own = {} if job.official else {figures / Path(file).name: Path(file) for file in outputs if file.endswith(".png")}
    for cell in ran["cells"]:
        if cell["cell_type"] == "markdown":
            text = notebooks.text(cell["source"])
            cell["source"] = notebooks.relinked(text, job.entry.notebook.parent, executed.parent, own)
    if not job.official:
        apart_by = items_.told_apart(job.entry, job.values)
        about = f"with {apart_by}" if apart_by else "with the committed parameters"
        picture = "this run's" if figures / f"{job.entry.notebook.stem}.png" in own else "the committed run's"
        if f"{job.entry.id}.png" in apart:
            picture = "of recorded and printed results alone, because what it compares is not in this run"
        verdicts = (
            "The tables below are this run's, but the verdicts rest on recorded and printed results alone, because what the "
            "claims compare is not in this run."
            if "evidence" in apart
            else "The tables and verdicts below are this run's."
        )
        words = (
            f"**A run of your own**, {about}. {verdicts} The picture on this screen is {picture}. "
            "The sentences, with the numbers in them, are about the committed run."
        )
        ran["cells"].insert(0, {"cell_type": "markdown", "id": "own-run", "metadata": {}, "source": words})
    with paths.atomic_path(executed) as part:
        part.write_text(json.dumps(ran, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def _pairs(entry: manifest.Entry, ran: dict) -> tuple[dict, list[tuple[dict, dict]] | None]:
    """The committed notebook, and its code cells beside those that ran; None where the code was edited meanwhile."""
    notebook = notebooks.read(entry.notebook)
    same = notebooks.code_hash(notebook) == notebooks.code_hash(ran)
    return notebook, [*zip(*map(notebooks.code_cells, (notebook, ran)), strict=True)] if same else None


def _output_differences(entry: manifest.Entry, executed: Path) -> list[str]:
    """Each cell whose outputs are not those of the committed notebook; none where the code was edited while it ran."""
    name, found = stamps.short(entry.root, entry.notebook), []
    for number, (cell, done) in enumerate(_pairs(entry, notebooks.read(executed))[1] or [], 1):
        if tidy.VOLATILE not in notebooks.tags(cell):
            before, after = (tidy.output_text(each.get("outputs", [])) for each in (cell, done))
            if differs := compare_outputs.difference(before, after):
                found.append(f"{name}, code cell {number}, {differs}")
    return found


def _write_back(entry: manifest.Entry, executed: Path, moved: Sequence[str]) -> list[str]:
    """The outputs of the executed notebook into the committed one, whose prose may be newer, and the typed numbers that
    moved; the sentences that changed."""
    ran = notebooks.read(executed)
    notebook, pairs = _pairs(entry, ran)
    if pairs is None:
        edited = f"{entry.notebook} (it was edited while it ran); run it again"
        raise XCError(f"{entry.id}: the executed notebook has other code cells than {edited}")
    for cell, done in pairs:
        cell["outputs"], cell["execution_count"] = done["outputs"], done["execution_count"]
    said = prose_numbers.rewritten(notebook, (json.loads(one) for one in moved))
    notebook["metadata"]["xcrepro"] = prose_numbers.note(notebook)
    with paths.atomic_path(entry.notebook) as part:
        part.write_text(tidy.tidied(notebook, entry.notebook), encoding="utf-8", newline="\n")
    return said


def accept_lesson(lesson: Path) -> str:
    """Run a lesson and put its outputs, tidied, into its notebook; what went wrong, empty where nothing did."""
    root = paths.project_root()
    executed = root / "build" / "notebooks" / "course" / lesson.name
    executed.parent.mkdir(parents=True, exist_ok=True)
    arguments = [str(lesson), str(executed), "--no-progress-bar", "--cwd", str(lesson.parent)]
    process = papermill(arguments, env=environment_of(root, threads.count()))
    process.wait()
    let_go(process)
    if process.returncode:
        failure = notebooks.failure(notebooks.read(executed)) if executed.is_file() else None
        return ": ".join(failure) if failure else f"papermill ended with {process.returncode}"
    ran = notebooks.read(executed)
    _keep_pictures(ran, lesson.parent)
    with paths.atomic_path(lesson) as part:
        part.write_text(tidy.tidied(ran, lesson), encoding="utf-8", newline="\n")
    return ""


def _keep_pictures(ran: dict, folder: Path) -> None:
    """Write what each cell of a lesson drew to the file that the cell below it shows."""
    for cell, below in itertools.pairwise(ran["cells"]):
        drawn = [o["data"]["image/png"] for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
        link = notebooks.IMAGE.match(notebooks.text(below["source"])) if below["cell_type"] == "markdown" else None
        if drawn and link:
            path = folder / link.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            with paths.atomic_path(path) as part:
                part.write_bytes(base64.b64decode(notebooks.text(drawn[-1])))
