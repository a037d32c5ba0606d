"""``start``, ``list``, ``run``, ``reproduce``, ``new``, ``accept``: notebooks, and runs."""

from __future__ import annotations

from pathlib import Path

from xcrepro.core.errors import ArgumentError
from xcrepro.tools.commands import shared

_TEXTS = ("dataset", "folder", "predictions")
"""Parameters whose values are texts, whatever they look like."""


def add(command) -> None:
    sub = command("start", _start, "copy the notebooks into a folder of your own, to read, run and change there")
    sub.add_argument("folder", type=Path, help="a folder that is not there yet, or is empty")

    command("list", _list, "show the items: id, title")

    sub = command("run", _run, "regenerate figures and tables, only what changed")
    sub.add_argument("items", nargs="*", help="ids or paper names; none: all but those that take long")
    _jobs(sub)
    shared.flag(sub, "--long", "also those that take long")
    shared.flag(sub, "--force", "also what is unchanged")
    sub.add_argument(
        "-p", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="a parameter for the named items"
    )
    shared.flag(
        sub,
        "--record",
        "on real data (-p dataset NAME, and -p folder DIR where they are not in the cache): commit the numbers to "
        "data/recorded; -p split mean: the mean of all splits",
    )
    sub.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="with --record: all that the manifest has recorded of the items, from the datasets' folders in DIR",
    )
    shared.flag(sub, "--dry", "run nothing, say what would run and why, with --record also how long it takes")
    _costs(sub)

    sub = command(
        "reproduce",
        _reproduce,
        "a dataset's rows in the documents: fetch it, run the notebooks, show printed beside ours",
    )
    sub.add_argument(
        "target", nargs="+", help="a dataset (eurlex-4k), a paper (jain16), an item; several restrict each other"
    )
    shared.flag(sub, "--dry", "say what it will fetch and how long it will take, and stop")
    shared.flag(sub, "--force", "also what has run and did not change")
    shared.flag(sub, "--record", "keep the numbers in data/recorded")
    _costs(sub)
    _jobs(sub)

    sub = command("table", _table, "a committed table, rounded as people read it: text, or LaTeX")
    sub.add_argument(
        "table", help="an item's id, with the table's part where it has several: jain16/table3_table4-table3"
    )
    shared.flag(sub, "--latex", "a tabular for the package booktabs")
    sub.add_argument("--decimals", type=int, default=3, help="of numbers that are not whole, default 3")

    sub = command("new", _new, "a new item: a notebook that runs, its test and its lines in the manifest")
    sub.add_argument("item", help="paper/item_name; a paper that is not there yet becomes a folder")
    sub.add_argument("--title", default="", help="one line for `xcrepro list`")

    sub = command(
        "accept", _accept, "what items make now is right: write tables, pictures and outputs into what is committed"
    )
    sub.add_argument("items", nargs="*", help="ids or paper names, or paths of lessons")
    shared.flag(sub, "--all", "all items, and the lessons")
    shared.flag(sub, "--long", "with --all, also items that take long")
    _jobs(sub)

    sub = command("tidy", _tidy, "bring notebooks into the form in which they are committed")
    sub.add_argument("paths", nargs="*", type=Path, help="notebooks or folders; none: notebooks/")
    shared.flag(sub, "--check", "change nothing, fail if something would change")


def _costs(sub) -> None:
    told = "for maintainers: keep what the runs took in data/recorded/costs.csv"
    sub.add_argument("--costs", action="store_true", help=told)


def _jobs(sub) -> None:
    sub.add_argument("--jobs", type=int, help="notebooks at once, default one a core")


def _start(arguments) -> int:
    from xcrepro.repro.engine.start import start

    written, folder = start(arguments.folder), arguments.folder
    notebooks = sum(path.suffix == ".ipynb" for path in written)
    print(f"{notebooks} notebooks are in {written[0].parent}; a run of one draws its figures into {folder}/figures")
    print(f"now: cd {folder}; xcrepro run beyond/audit; jupyter lab notebooks")
    return 0


def _list(_) -> int:
    from xcrepro.repro.engine import manifest

    entries = manifest.load()
    width = max(map(len, entries), default=0)
    for name, entry in entries.items():
        print(f"{name:<{width}}  {'(long) ' if entry.long else ''}{entry.title}")
    return 0


def _once(given) -> dict[str, str]:
    """Parameters of ``-p``, each named once."""
    found = dict(given)
    if len(found) != len(given):
        raise ArgumentError("-p", "must name each parameter once", [name for name, _ in given])
    return found


def _run(arguments) -> int:
    from xcrepro.core import paths
    from xcrepro.repro.engine import manifest, recording, runner

    parameters = {name: text if name in _TEXTS else recording.value(text) for name, text in _once(arguments.p).items()}
    for name, value in (("--data", arguments.data is not None), ("--costs", arguments.costs)):
        if value and not arguments.record:
            raise ArgumentError(name, "goes with --record", "none")
    if arguments.record or parameters.get("split") == recording.MEAN:
        return _record(arguments, parameters)
    if not manifest.has_project(manifest.load()):
        here = f"no project here: this writes into {paths.project_root()}"
        print(f"{here}; `xcrepro start DIR` makes a folder of your own")
    how = shared.taken(arguments, "force", "jobs", "dry", "long")
    return 0 if runner.run(arguments.items, parameters=parameters, **how).ok else 1


def _reproduce(arguments) -> int:
    from xcrepro.tools.reports import reproduce

    given = shared.taken(arguments, "dry", "force", "jobs", "costs")
    given["keep"] = arguments.record
    return 0 if reproduce.run(arguments.target, **given) else 1


def _record(arguments, parameters: dict) -> int:
    """On real data: what the parameters say, or with ``--data`` all that the manifest has."""
    from xcrepro.core import paths
    from xcrepro.core.data.locate import count_splits
    from xcrepro.repro.engine import manifest, recording, runner
    from xcrepro.tools.reports import reproduce

    entries = manifest.load()
    if arguments.record:
        manifest.require_project(entries, "keeping a record")
    named = [entries[name] for name in manifest.find(entries, arguments.items)]
    if arguments.data is None:
        if not arguments.items:
            raise ArgumentError("--record", "needs named items, or --data", "none", "xcrepro run ITEM ... --record")
        recordings = [recording.of(entry, _with_folder(parameters, entry.root), count_splits) for entry in named]
    else:
        if parameters:
            raise ArgumentError("--data", "goes without -p", list(parameters), "the manifest has the parameters")
        recordings, missing = recording.all_planned(named, arguments.data, count_splits)
        for dataset in missing:
            print(f"left out: {arguments.data / dataset} is not there")
    if arguments.dry:
        own = {(row["dataset"], row["item"]) for row in reproduce.read_costs(paths.committed(reproduce.COSTS))}
        for one in recordings:
            seconds, unknown = reproduce.time_of([one])
            from_others = "" if (one.dataset, one.entry.id) in own else ", as far as other data tell"
            told = "nobody measured it" if unknown else f"{reproduce.clock(seconds)}{from_others}"
            print(f"{one.dataset}  {one.command}  # {told}")
        seconds, unknown = reproduce.time_of(recordings)
        told = f"{reproduce.clock(seconds)} by what was measured on two cores, less than their sum where a training is shared"
        print(f"{len(recordings)} runs, one after the other: {told}; of {len(unknown)} nothing was measured")
        return 0
    root = paths.project_root()
    with runner.alone(root):
        done = recording.run(recordings, arguments.force, commit=arguments.record)
    if arguments.costs and done:
        reproduce.keep_costs(root / reproduce.COSTS, reproduce.costs_of(recordings))
    return 0 if done else 1


def _with_folder(parameters: dict, root: Path) -> dict:
    """And the folder in which the real data of the named dataset lie, where none is given."""
    from xcrepro.core.data import locate, registry
    from xcrepro.repro.engine import recorded
    from xcrepro.repro.inputs import download

    name = parameters.get("dataset")
    if parameters.get("folder") or recorded.own_data(name, root) or (entry := registry.find(name)) is None:
        return parameters
    locate.require(name)
    download.fetch(name)  # downloads nothing now; an archive that was saved by hand is unpacked
    return {**parameters, "dataset": entry.name, "folder": str(locate.home_of(name))}


def _new(arguments) -> int:
    from xcrepro.repro.engine import scaffold

    for path in scaffold.new(arguments.item, arguments.title):
        print(f"wrote {path}")
    print(f"now: xcrepro run {arguments.item}, look at what comes out, change it; then xcrepro accept {arguments.item}")
    return 0


def _accept(arguments) -> int:
    from xcrepro.core import paths
    from xcrepro.repro.engine import runner, tidy

    if arguments.all == bool(arguments.items):
        raise ArgumentError("items", "must be named, or --all", arguments.items or "none", "xcrepro accept ITEM")
    lessons = [item for item in arguments.items if item.endswith(".ipynb")]
    course = paths.project_root() / "notebooks" / "course"
    if arguments.all and course.is_dir():
        lessons = [str(course)]
    named = [item for item in arguments.items if item not in lessons]
    ok = True
    if named or arguments.all:
        given = {"jobs": arguments.jobs, "accept": True, "long": arguments.long}
        ok = runner.run(named, **given).ok
    for lesson in tidy.find(lessons) if lessons else ():
        fault = runner.accept_lesson(lesson)
        print(f"{lesson.name}  {fault or 'accepted'}", flush=True)
        ok &= not fault
    return 0 if ok else 1


def _table(arguments) -> int:
    from xcrepro.core.arguments import did_you_mean
    from xcrepro.core.paths import committed
    from xcrepro.repro.drawing import tables
    from xcrepro.repro.engine import manifest

    path = committed(f"figures/{arguments.table}.csv")
    if not path.is_file():
        known = [each.relative_to(committed("figures")).with_suffix("").as_posix() for entry in manifest.load().values()
                 for each in entry.figures() if each.suffix == ".csv"]  # fmt: skip
        own = ", ".join(name for name in known if name.startswith(f"{arguments.table}-"))
        hint = did_you_mean(arguments.table, known) if not own else f"it has {own}"
        raise ArgumentError("table", "must be a committed table", repr(arguments.table), hint)
    table, origin = tables.from_csv(path.read_text(encoding="utf-8"))
    print((tables.latex if arguments.latex else tables.markdown)(table, arguments.decimals, origin).rstrip())
    return 0


def _tidy(arguments) -> int:
    from xcrepro.repro.engine import tidy

    changed = tidy.tidy(arguments.paths, check=arguments.check)
    for path in changed:
        print(f"{'not tidy' if arguments.check else 'tidied'}: {path}")
    if not changed:
        print("all notebooks are tidy")
    return 1 if changed and arguments.check else 0
