"""``xcrepro reproduce``: from a download to the papers' rows beside ours, by the notebooks in which a dataset has a row.

Which notebooks these are follows from the printed record and the listing of what is reproduced. Each runs as a recording does
(:mod:`xcrepro.repro.engine.recording`): it is kept until something under it changes, so that what was stopped goes on. At the
end is one page: each printed number that the notebooks' tables have, ours, the difference and what chance allows; and what is
not to be had, with the reason.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xcrepro.core import paths, threads
from xcrepro.core.arguments import whole_number
from xcrepro.core.data import against_print, load, locate, registry
from xcrepro.core.errors import ArgumentError, DataError, DataMissing, XCError
from xcrepro.core.metrics import registry as metrics
from xcrepro.repro.engine import manifest, notebooks, processes, recorded, recording, run_log, runner, stamps
from xcrepro.repro.inputs import baselines, download
from xcrepro.repro.published import compare_with_print as of_print
from xcrepro.repro.published import printed_tables as printed
from xcrepro.repro.published import reproduced

if TYPE_CHECKING:
    import pandas as pd

STAND_IN = "stand-in.txt"
"""A file of this name among a dataset's says that its content is made up; the rehearsal's archives have it."""
COSTS = "data/recorded/costs.csv"
"""What runs took: dataset, points, labels, item, training (empty: the rest of the notebook), seconds, gb."""
COST_COLUMNS = ("dataset", "points", "labels", "item", "training", "seconds", "gb")
SHOWN = ("method", "metric", "printed", "ours", "difference", "test points", "split", "training", "chance", "by")
"""Columns of the page."""
MARGIN = 1.4
"""By how much a notebook's memory may be above what was measured of it: on another machine it was."""
GROWTH = 0.55, 0.15
"""Powers of points times labels with which time and memory grew from Bibtex over Delicious to EURLex-4K."""
LONG = 2 * 3600
"""Seconds of training from which on saved predictions are offered first."""
_TABLE_OF = "Benchmark table of "
_OTHERS = re.compile(r"(?:_gb|_hr|test_ms_per_instance|_mb|_min)$")  # sizes and times


@dataclasses.dataclass(frozen=True)
class Step:
    """A notebook on a dataset, and the printed tables that it is run for."""

    entry: manifest.Entry
    dataset: str
    sources: tuple[str, ...]
    given: dict

    def recording(self) -> recording.Recording:
        """The run, once the data are there."""
        home = locate.home_of(self.dataset)
        where = {} if home is None else {"folder": str(home)}
        count = locate.count_splits(self.dataset, where.get("folder"))
        return recording.of(self.entry, {"dataset": self.dataset, **where, **self.given}, lambda *_: count)


# ---------------------------------------------------------------- which


def tables() -> dict[str, reproduced.Row]:
    """Id of a printed table -> its row of the listing."""
    plain = metrics.plain
    rows = reproduced.read(paths.committed(reproduced.LISTING))
    named = {(row.document, plain(row.name.removeprefix(_TABLE_OF))): row for row in rows if row.kind == "table"}
    found = {id: named.get((id.partition(":")[0], plain(id.partition(":")[2]))) for id in printed.sources()}
    return {id: row for id, row in found.items() if row}


def plan(words: Sequence[str]) -> list[Step]:
    """What is meant by datasets, papers and items: the notebooks of ``words`` on the datasets of which they print rows.

    Datasets and items restrict each other: ``jain16 eurlex-4k`` is what jain16 prints of EURLex-4K.
    """
    entries = manifest.load()
    datasets = [registry.get(word).name for word in words if registry.find(word)]
    named = [word for word in words if not registry.find(word)]
    if near := [word for word in named if "/" not in word and word not in {id.partition("/")[0] for id in entries}]:
        hint = registry.nearest_names(near[0]) or "`xcrepro list` and `xcrepro fetch --list` show them"
        raise ArgumentError("target", "must be a dataset, a paper or an item", repr(near[0]), f"perhaps {hint}")
    items = manifest.find(entries, named)
    listing = reproduced.read(paths.committed(reproduced.LISTING))
    shared = {id for row in listing if row.kind == "beyond" for id in row.items}  # the models that all items train
    found: dict[tuple[str, str], dict[str, None]] = {}
    for id, row in tables().items():
        for name in datasets_of(id):
            for item in row.items:
                found.setdefault((name, item), {})[id] = None
    for name in registry.names(proprietary=True):
        for item in itertools.chain.from_iterable(row.items for row in figures(name, listing)):
            found.setdefault((name, item), {})
    for (name, item), ids in [*found.items()]:
        for need in set(entries[item].needs) & shared if ids else ():
            found.setdefault((name, need), {})
    order = {id: place for place, id in enumerate(entries)}
    steps = [
        Step(entries[item], name, tuple(ids), _given(entries[item], name, ids))
        for (name, item), ids in sorted(found.items(), key=lambda one: (one[0][0], order[one[0][1]]))
        if item in items
        and (not datasets or name in datasets)
        and {"dataset", "folder"} <= entries[item].official().keys()
    ]
    if not steps:
        asked = " ".join(words)
        raise ArgumentError("target", "must have a row of a document", repr(asked), "no document prints results of it")
    return steps


def figures(dataset: str, listing: Iterable[reproduced.Row]) -> list[reproduced.Row]:
    """The figures that a document draws of a dataset: by what they show, and by what is in its place."""
    called = "|".join(map(re.escape, registry.get(dataset).all_names))
    named = re.compile(rf"(?<![\w-])({called})(?![\w-])")
    return [
        row
        for row in listing
        if row.kind == "figure" and named.search("; ".join([row.shows, *re.findall(r"in place of ([^,;]*)", row.why)]))
    ]


def datasets_of(id: str) -> list[str]:
    """The datasets of the catalogue that a table has rows of."""
    return [entry.name for name in dict.fromkeys(printed.table(id)["dataset"]) if (entry := registry.find(name))]


def _given(entry: manifest.Entry, dataset: str, ids: Collection[str]) -> dict:
    """The paper's own settings, and those with which the dataset is recorded; every printed model that can be trained."""
    official, own = entry.official(), entry.recorded.get(dataset, {})
    given = {**entry.papers, **own}
    if ids and isinstance(official.get("models"), list) and "models" not in own:
        documents = {id.partition(":")[0] for id in ids}
        more = [name for id in tables() if id.partition(":")[0] in documents for name in trained(id, dataset)]
        given["models"] = list(dict.fromkeys([*official["models"], *more]))
        if (
            registry.get(dataset).group == "label-features"
        ):  # the page leaves out reciprocal pairs: without and with them
            given["models"] += [f"{name}{baselines.UNFILTERED}" for name in given["models"]]
    return given


def trained(id: str, dataset: str) -> list[str]:
    """The methods of a table's rows of a dataset that the kit trains, or their stand-ins."""
    methods = [of_print.own_method(id, name) for name in _methods(id, dataset)]
    return [name for name in methods if name in baselines.RECIPES | baselines.VARIANTS]


def can(id: str, dataset: str) -> bool:
    """Whether some row of a table on a dataset can be computed: of a method that is trained, or a rule over a label tree."""
    return any(map(computed, itertools.repeat(id), _methods(id, dataset)))


def computed(id: str, method: str) -> bool:
    """Whether a notebook computes a printed method: it is trained, has a stand-in, or is a rule over a label tree."""
    return of_print.own_method(id, method) in baselines.RECIPES | baselines.VARIANTS or method.endswith("-PLT")


def _methods(id: str, dataset: str) -> list[str]:
    """Those of which a table prints more than sizes and times: some rows are empty."""
    table = printed.table(id)
    table = table[_of(table, dataset) & (table["printed"] != "") & ~table["metric"].str.contains(_OTHERS)]
    return list(dict.fromkeys(table["method"]))


def _of(table: pd.DataFrame, dataset: str) -> pd.Series:
    return table["dataset"].map(registry.get(dataset).is_called)


# ---------------------------------------------------------------- what it will take


def read_costs(path: Path) -> list[dict]:
    """The measured costs; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COST_COLUMNS:
            raise DataError(path, f"columns {reader.fieldnames}", ", ".join(COST_COLUMNS), line=1)
        kinds = {"points": int, "labels": int, "seconds": float, "gb": float}
        try:
            return [row | {name: kind(row[name]) for name, kind in kinds.items()} for row in reader]
        except (TypeError, ValueError) as error:
            expected = f"numbers of {', '.join(kinds)}"
            raise DataError(path, str(error), expected, line=reader.line_num) from None


def costs_for(dataset: str) -> list[dict]:
    """What was measured that tells of a dataset: the kit's own are recorded with fewer models, so they tell of themselves."""
    every = read_costs(paths.committed(COSTS))
    return [row for row in every if row["dataset"] == dataset or not recorded.own_data(row["dataset"])]


def time_of(recordings: Sequence[recording.Recording]) -> tuple[float, list[str]]:
    """Seconds of recordings, estimated as :func:`estimate` does, and the notebooks without a measurement."""
    groups: dict[tuple[str, int], list[str]] = {}
    for one in recordings:
        groups.setdefault((one.dataset, len(one.runs)), []).append(one.entry.id)
    total, left = 0.0, []
    for (dataset, runs), items in groups.items():
        entry = registry.find(dataset)
        size = (entry.n_train, entry.n_labels) if entry else (0, 0)
        seconds, _, unknown = estimate(costs_for(dataset), items, *size) if all(size) else (0.0, 0.0, items)
        total, left = total + runs * seconds, left + unknown
    return total, left


def estimate(costs: Sequence[dict], items: Iterable[str], points: int, labels: int) -> tuple[float, float, list[str]]:
    """Seconds and gigabytes of notebooks on a dataset of this size, and those without a measurement.

    A training that several notebooks share counts once. What was measured at the nearest size (points times labels) is taken,
    and grows with the size as :data:`GROWTH` says.
    """
    left, size, seconds, gb = list(items), points * labels, 0.0, 0.0
    by: dict[int, list[dict]] = {}
    for row in costs:
        by.setdefault(row["points"] * row["labels"], []).append(row)
    for at in sorted(by, key=lambda one: abs(math.log(one / size))):
        own, once = [row for row in by[at] if row["item"] in left], dict[str, float]()
        for row in own:  # the slowest of a training that several have measured, whatever their order
            name = row["training"] or row["item"]
            once[name] = max(row["seconds"], once.get(name, 0.0))
        seconds += sum(once.values()) * (size / at) ** GROWTH[0]
        gb = max([gb, *(row["gb"] * (size / at) ** GROWTH[1] for row in own)])
        left = [item for item in left if item not in {row["item"] for row in own}]
    return seconds, gb, left


def clock(seconds: float) -> str:
    """A time in the unit that people would say it in."""
    units = ((90, 1, "s"), (90 * 60, 60, "minutes"), (48 * 3600, 3600, "hours"), (math.inf, 86400, "days"))
    for most, by, unit in units:
        if seconds < most:
            return f"{seconds / by:,.0f} {unit}"
    raise AssertionError


# ---------------------------------------------------------------- beside print


def seeds(outputs: Iterable[Path]) -> dict[str, float]:
    """Model -> standard deviation of its P@1 over seeds, from the tables that have a row for each training."""
    import pandas as pd

    found = {}
    for path in outputs:
        table = pd.read_csv(path, low_memory=False) if path.suffix == ".csv" and path.is_file() else pd.DataFrame()
        if {"model", "seed", "P@1"} <= set(table):
            found |= table.groupby("model")["P@1"].std().to_dict()
    return found


def beside(
    dataset: str,
    id: str,
    items: Sequence[str],
    found: Mapping[str, Sequence[of_print.Cell]],
    spread: Mapping[str, float],
    points: int,
    asked: Collection[str] | None = None,
) -> tuple[list[dict], dict[tuple[str, str], int]]:
    """A table's printed numbers of a dataset beside ours, of the notebooks ``asked`` for, by default all of its ``items``; and
    (method, why) -> how many are not to be had."""
    document = id.partition(":")[0]
    order = [
        *(item for item in items if item in found),
        *(one for one in found if one.startswith(f"{document}/") and one not in items),
    ]
    rows, missing, every = [], {}, [cell for one in found.values() for cell in one]
    waiting = [item for item in items if asked is not None and item not in asked]
    ours = itertools.chain.from_iterable(found[item] for item in order)
    for line, k, cell in of_print.matched(of_print.lines(dataset, [id]), ours):
        if cell is None:
            why = f"no table of {', '.join(items)} has it"
            if _OTHERS.search(line.metric):
                why = "a size or a time of another machine and program"
            elif not computed(id, line.method) and not any(one.method == line.method for one in every):
                why = "not trained here; saved predictions of it would do (-p predictions)"
            elif waiting:
                why = f"{', '.join(waiting)} was not asked for"
            elif not order:
                why = "its notebook did not run to the end"
            missing[line.method, why] = missing.get((line.method, why), 0) + 1
            continue
        by = f"{cell.item}, {cell.part or 'main'} table"
        rows.append(of_print.row(line, k, cell, every, points, spread) | {"by": by})
    return rows, missing


def counted(dataset: str, id: str) -> list[dict]:
    """What a table of datasets prints of one, beside what is counted in the files."""
    ds, entry = load.load(dataset, progress=False), registry.get(dataset)
    compared = [
        (one.quantity, entry.printed(one.quantity, id), one.found, one.found - one.published, one.agrees)
        for one in against_print.compare(ds.train, ds.test, entry, id)
    ]
    for line in of_print.lines(dataset, [id]).itertuples():
        if bin := re.fullmatch(r"labels_(\d+)(?:-(\d+)|\+)", line.metric):
            low, high = int(bin[1]), math.inf if bin[2] is None else int(bin[2])
            n = int(((ds.label_counts >= low) & (ds.label_counts <= high)).sum())
            compared.append((line.metric, line.printed, n, n - line.value, n == line.value))
    return [
        dict.fromkeys(SHOWN, "")
        | {"method": "the data", "metric": quantity, "printed": text, "ours": f"{ours:g}", "difference": f"{off:+.4g}"}
        | {"chance": "within" if agrees else "beyond", "by": "counted in the files"}
        for quantity, text, ours, off, agrees in compared
    ]


# ---------------------------------------------------------------- run


@dataclasses.dataclass
class Done:
    """What became of a step: its record and jobs, or why there is none."""

    step: Step
    of: recording.Recording | None = None
    jobs: list[processes.Job] = dataclasses.field(default_factory=list)
    record: recorded.Record | None = None
    why: str = ""


def run(words: Sequence[str], *, dry=False, force=False, jobs=None, keep=False, costs=False) -> bool:
    """Say what it takes, fetch, run, and write a page for each dataset; whether all ran and every dataset was there.

    ``dry`` stops after the first; ``jobs`` are those of :func:`xcrepro.repro.engine.runner.run`. ``keep`` writes the records,
    ``costs`` what the runs took.
    """
    root, steps = paths.project_root(), plan(words)
    manifest.require_project(manifest.load(root), "reproducing a dataset")
    if jobs is not None:
        whole_number("jobs", jobs, 1)
    by = {name: [*some] for name, some in itertools.groupby(steps, lambda step: step.dataset)}
    for name, some in by.items():
        print(ahead(name, some, jobs), flush=True)
    if dry:
        return True
    missing = {name: why for name in by if (why := _fetched(name))}
    if len(missing) == len(by):
        raise DataMissing("\n".join(missing.values()))
    done = _all_run(root, [step for step in steps if step.dataset not in missing], force, jobs)
    for name in by:
        here = [one for one in done if one.step.dataset == name]
        told = page(root, name, here + _earlier(name, here)) if name not in missing else ""
        print(told or f"{name} is not to be had: {missing[name]}", flush=True)
    if keep:
        for one in done:
            print(recording.settle(one.of, one.record) if one.record else f"{one.step.entry.id} has no record")
    if costs:
        keep_costs(root / COSTS, costs_of(one.of for one in done if one.record))
    return not missing and all(one.record for one in done)


def _all_run(root: Path, steps: Sequence[Step], force: bool, jobs) -> list[Done]:
    """Run what has not run yet, all at once; a notebook that is refused or fails does not stop the others."""
    done = [Done(step) for step in steps]
    for one in done:
        try:
            one.of = one.step.recording()
            one.jobs = [dataclasses.replace(job, gb=memory(one.step)) for job in recording.jobs(one.of, force)]
        except XCError as error:
            one.why = str(error)
    with runner.alone(root):
        results = runner.run_jobs(root, [job for one in done for job in one.jobs], jobs)
    for one in done:
        try:
            one.record = recording.gathered(one.of, one.jobs, results) if one.jobs else None
        except XCError as error:
            one.why = str(error)
    return done


def _earlier(name: str, now: Sequence[Done]) -> list[Done]:
    """The notebooks of a dataset that this run was not asked for and an earlier one ran to their end."""
    asked, found = {one.step.entry.id for one in now}, []
    for one in (Done(step) for step in plan([name]) if step.entry.id not in asked):
        try:
            one.of = one.step.recording()
            one.jobs = recording.jobs(one.of)
            stamped = [(job, stamps.read_at(job.stamp)) for job in one.jobs]
            if not all(stamp for _, stamp in stamped):
                continue
            changed = [why for job, stamp in stamped if (why := stamps.reason(job.entry, stamp, job.fingerprint))]
            one.why = f"an earlier run is out of date: {changed[0]}" if changed else ""
            results = {job.id: runner.Result(job.id, "unchanged", "") for job in one.jobs}
            one.record = None if changed else recording.gathered(one.of, one.jobs, results)
        except XCError as error:
            one.why = str(error)
        found.append(one)
    return found


def memory(step: Step) -> float:
    """How many GB a notebook is going to take on a dataset, by what was measured and :data:`MARGIN`; 0 where nobody knows."""
    entry = registry.get(step.dataset)
    if not (entry.n_train and entry.n_labels):
        return 0.0
    return MARGIN * estimate(costs_for(step.dataset), [step.entry.id], entry.n_train, entry.n_labels)[1]


def ahead(name: str, steps: Sequence[Step], jobs: int | None = None) -> str:
    """What a dataset will take: its archive, the notebooks, time and memory; where training takes long, how to do without."""
    entry, items = registry.get(name), [step.entry.id for step in steps]
    where = (
        "is proprietary" if entry.proprietary else "is on this machine" if locate.at_hand(name) else "will be fetched"
    )
    told = [f"{entry.printed_name}: {where}; {len(steps)} notebooks"]
    if entry.n_train and entry.n_labels:
        costs = costs_for(name)
        size = entry.n_train * entry.n_labels
        seconds, _, left = estimate(costs, items, entry.n_train, entry.n_labels)
        each = sorted(map(memory, steps), reverse=True)[: max(1, min(jobs or threads.count(), threads.count()))]
        most, free = sum(each), processes.room()
        what = f"{clock(seconds)}, and {most:.1f} GB of memory for the {len(each)} largest notebooks, which run at once"
        what += f", or fewer at once, because {free:.1f} GB are free here" * (most > free)
        what = what if len(left) < len(items) else "nobody knows"
        rest = f"; of {len(left)} of the notebooks nothing was measured" if left else ""
        known = {row["points"] * row["labels"] for row in costs if row["item"] in items}
        times = min((max(size / one, one / size) for one in known), default=1.0)
        far = f". The data measured are {times:,.0f} times as small, so it may be several times as much" * (times > 3)
        taker = next((step.entry.id for step in steps if "predictions" in step.entry.official()), "")
        if seconds > LONG and taker:
            told.append(
                f"  saved predictions of a model need no training, and take minutes to an hour for each notebook: "
                f"xcrepro run {taker} -p dataset {name} -p predictions PATH"
            )
        shape = f"{entry.n_train:,} points and {entry.n_labels:,} labels"
        told.append(f"  an estimate, from runs on two cores, for {shape}: {what}{rest}{far}")
    return "\n".join([*told, *(f"  {step.entry.id}  {', '.join(step.sources)}".rstrip() for step in steps)])


def _fetched(name: str) -> str:
    """Have the data here; why they cannot be had, empty if they are."""
    try:
        if registry.get(name).proprietary:
            return f"{registry.get(name).printed_name} is proprietary"
        download.fetch(name)
        return ""
    except XCError as error:
        return str(error)


# ---------------------------------------------------------------- the page

_LEGEND = (
    "*Test points*: half of our 95 % interval, or at most so much. *Split*: 1.96 standard deviations over the data's splits. "
    "*Training*: the same over seeds, of P@1 where it was measured. *Chance* holds the difference against these, the "
    "printed standard error and the rounding. † marks a printed number that the audit doubts."
)


def page(root: Path, name: str, done: Sequence[Done]) -> str:
    """Write the page of a dataset, ``build/reproduced/<name>/page.md``, with ``rows.csv``, and give its short form."""
    import pandas as pd

    rows, missing = compared(name, done)
    ours = [one for one in rows if not one["version"]]
    counts = {word: sum(one["chance"] == word for one in ours) for word in ("within", "beyond", "cannot tell")}
    title = registry.get(name).printed_name
    first = (
        f"{title}: {len(rows)} printed numbers beside ours, {len(ours)} of them on the document's own version of the data: "
        f"{counts['within']} within what chance allows, {counts['beyond']} beyond it, {counts['cannot tell']} without an "
        f"interval; {sum(one[2] for one in missing)} are not to be had"
    )
    made_up = any(one.of and any(one.of.home.rglob(STAND_IN)) for one in done)
    first = f"{'A stand-in, so that no number of ours means anything. ' if made_up else ''}{first}"
    text = [f"# {title}: printed, and ours", "", f"{first}.", "", _LEGEND, ""]
    for id, some in itertools.groupby(rows, lambda one: one["table"]):
        lines = [*some]
        text += [f"## {id}", ""] + (
            [f"**{lines[0]['version']}**, so ours is another experiment.", ""] if lines[0]["version"] else []
        )
        text += [_table(SHOWN, [[one[column] for column in SHOWN] for one in lines]), ""]
    text += ["## What is not to be had", "", _table(["table", "method", "numbers", "why"], missing), ""]
    text += [
        "## The notebooks",
        "",
        "The time has the trainings that a notebook reads, also if another one made them.",
        "",
    ]
    text += [_table(["notebook", "time", "GB at most", "tables"], [_told(root, one) for one in done]), ""]
    home = root / "build" / "reproduced" / name
    with paths.atomic_path(home / "page.md") as part:
        part.write_text("\n".join(text), encoding="utf-8")
    with paths.atomic_path(home / "rows.csv") as part:
        pd.DataFrame(rows, columns=["table", *SHOWN, "version"]).to_csv(part, index=False)
    return f"{first}.\nwrote {stamps.short(root, home / 'page.md')}"


def compared(name: str, done: Sequence[Done]) -> tuple[list[dict], list[tuple[str, str, int, str]]]:
    """The printed numbers of a dataset beside ours, table by table; and what is not to be had: table, method, how many, why."""
    entry, items = registry.get(name), {one.step.entry.id: one for one in done}
    found = {id: [*of_print.cells(id, one.record.tables)] for id, one in items.items() if one.record}
    # What a notebook itself has set beside print has intervals, also where its recorded tables have none.
    for id in found:
        jobs = items[id].jobs if len(items[id].jobs) == 1 else []  # those of several splits are of one each
        noted = [json.loads(text) for job in jobs for text in _notes(job).get("beside", [])]
        found[id] += [cell for table in noted for cell in of_print.cells(id, {"": table})]
    outputs = [Path(file) for one in done for job in one.jobs for file in _notes(job).get("output", [])]
    rows, missing, spread = [], [], seeds(outputs)
    for id, row in tables().items():
        if name not in datasets_of(id) or not items.keys() & {*row.items}:
            continue
        version, some, lacking = of_print.other_version(entry, id.partition(":")[0]), [], {}
        if id in entry.published:
            some = counted(name, id)
        else:
            some, lacking = beside(name, id, row.items, found, spread, entry.n_test or 1, items)
        rows += [{"table": id, "version": version, **one} for one in some]
        off = next((items[item].why for item in row.items if item in items and items[item].why), "")
        missing += [(id, method, number, f"{why}: {off}" if off else why) for (method, why), number in lacking.items()]
    return rows, missing


def _told(root: Path, one: Done) -> tuple[str, ...]:
    """A notebook's line: its name, what it took, its executed copy or why there is none."""
    if not one.record:
        return one.step.entry.id, "", "", f"not on this page: {one.why}"
    took = measured(one)
    seconds, gb = sum(row["seconds"] for row in took), max(row["gb"] for row in took)
    return (
        one.step.entry.id,
        clock(seconds),
        f"{gb:.1f}",
        ", ".join(stamps.short(root, job.executed) for job in one.jobs),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence]) -> str:
    every = (head, [":--"] * len(head), *rows)
    lines = [[" ".join(str(cell).split()).replace("|", "\\|") for cell in line] for line in every]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# ---------------------------------------------------------------- what it took


def measured(one: Done) -> list[dict]:
    """What a notebook took, from what its runs noted: rows of :data:`COSTS`."""
    found, entry = [], registry.get(one.step.dataset)
    for job in one.jobs:
        notes = _notes(job)
        spent = notebooks.read(job.executed)["metadata"].get("papermill", {}).get("duration") or 0.0
        gb = round(processes.peak_of(job.executed), 2)
        used: dict[str, tuple[float, bool]] = {}
        for folder, model, seconds, fresh in map(json.loads, notes.get("training", [])):
            name = f"{model.partition('(')[0]} {folder.rpartition('-')[2][:8]}"
            used[name] = seconds, fresh or (name in used and used[name][1])
        own = max(0.0, spent - sum(seconds for seconds, fresh in used.values() if fresh))
        size = (entry.name, entry.n_train, entry.n_labels, one.step.entry.id)
        every = [("", own), *((name, seconds) for name, (seconds, _) in used.items())]
        found += [dict(zip(COST_COLUMNS, (*size, name, round(each, 1), gb), strict=True)) for name, each in every]
    return found


def _notes(job: processes.Job) -> dict[str, list[str]]:
    return run_log.read(job.executed.with_suffix(".notes"))


def costs_of(recordings: Iterable[recording.Recording]) -> list[dict]:
    """What runs that have ended took, of several splits the first: rows of :data:`COSTS`."""
    steps = [(one, Step(one.entry, one.dataset, (), {})) for one in recordings]
    return [row for one, step in steps for row in measured(Done(step, one, recording.jobs(one)[:1]))]


def keep_costs(path: Path, rows: Sequence[dict]) -> None:
    """Put measured costs into the table, in place of those of the same notebooks and datasets."""
    new = {(row["dataset"], row["item"]) for row in rows}
    every = [*(row for row in read_costs(path) if (row["dataset"], row["item"]) not in new), *rows]
    every.sort(key=lambda row: [str(row[name]) for name in ("dataset", "item", "training")])
    with paths.atomic_path(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COST_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(every)
