"""Every notebook that takes a dataset, on stand-ins of all datasets: ``python -m tests.rehearsal [--minutes M] [WORD ...]``.

The stand-ins (:mod:`tests.rehearsal.catalogue`) have the layout of their archives and come through ``fetch`` from a local
server (:mod:`tests.rehearsal.doors`). Then each notebook runs on every dataset that its tables have, on three more, and on four
of a kind that it has never seen: as it is, with one model, with two, with and without the pairs that a filter takes out, and
with a reader's predictions in place of the models. WORDs choose runs by what is in their names.

What the numbers are means nothing; that a run ends, or refuses in the words that ``REFUSES`` has, is what is tested, and that
pandas and NumPy have nothing to warn of. A run is kept until something under it changes, so that a rehearsal can be stopped
and goes on.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

from tests.rehearsal import catalogue, doors, standins
from xcrepro.core import paths
from xcrepro.core.data import load, registry
from xcrepro.core.predictions import TopK
from xcrepro.repro.engine import manifest, notebooks, processes, runner, stamps
from xcrepro.repro.inputs import baselines, download
from xcrepro.tools.reports import reproduce

ALWAYS = ("eurlex-4k", "bibtex", "lf-amazontitles-131k")
"""Datasets on which every notebook runs, whatever its tables have."""
REFUSES = {
    "xcrepo/reciprocal_pairs": "filter_labels_test.txt",
    "calibration/table4_table8_fig13_to_16": "lbl_X_Xf.txt",
    "beyond/judged": "must be 2 models or more",
    "beyond/nearly_right": "separator must be part of some label",
    "beyond/since": "must have features",
}
"""Notebooks that are about something that few data have, and the words with which they refuse others."""
DEFAULT_MINUTES = 60


@dataclasses.dataclass(frozen=True)
class Run:
    """A notebook on a dataset in one of its variants."""

    entry: manifest.Entry
    dataset: str
    variant: str
    values: dict
    weight: int

    @property
    def name(self) -> str:
        """Such as ``jain16/fig1_label_frequency eurlex-4k one``."""
        return f"{self.entry.id} {self.dataset} {self.variant}"


# ---------------------------------------------------------------- the data


def prepare(home: Path, shapes: dict[str, standins.Shape]) -> None:
    """Fetch a stand-in of each dataset into ``home/cache``, through the doors in turn; write strangers and predictions."""
    mark = home / "prepared"
    digest = hashlib.sha256(
        b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    ).hexdigest()
    if mark.is_file() and mark.read_text() == digest:
        return
    cache = home / "cache" / "datasets"
    for old in (cache, home / "strangers", home / "predictions"):
        shutil.rmtree(old, ignore_errors=True)
    cache.mkdir(parents=True)
    for number, (name, shape) in enumerate(shapes.items()):
        archive = standins.archive(name, shape)
        if "key" not in registry.get(name).archive:
            (cache / f"{name}.zip").write_bytes(archive)  # as its reader would save it
            download.fetch(name, progress=False)
            continue
        through(name, archive, doors.WAYS[number % len(doors.WAYS)])
    for folder in catalogue.strangers(home / "strangers"):
        ds = load.load(folder.name, folder)
        given(home / "predictions" / folder.name, ds.test.Y)
    for name in shapes:
        given(home / "predictions" / name, load.load(name).test.Y)
    mark.write_text(digest)


def through(name: str, archive: bytes, way: str) -> None:
    """Fetch an archive through one of the doors."""
    if way == "broken":  # what came before the break must be more than the client takes at once
        archive = standins.padded(archive, 3 << 20)
    with doors.serving({name: archive}, way) as server:
        download.fetch(name, progress=False)
    if way == "broken" and not any(server.asked):
        raise AssertionError(f"{name}: a broken transfer began anew and did not go on")


def given(folder: Path, Y: sparse.csr_matrix) -> None:
    """A reader's predictions of three models: rows with fewer than k labels, scores of half precision, ids only."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(folder.name))
    n, labels = Y.shape
    k = min(20, labels)
    ids = np.stack([rng.choice(min(labels, 400), k, replace=False) for _ in range(n)])
    for row, own in enumerate(np.split(Y.indices, Y.indptr[1:-1])):
        hit = own[:2][~np.isin(own[:2], ids[row, 2:])]  # some are right
        ids[row, : len(hit)] = hit
        if len(set(ids[row])) < k:
            ids[row] = rng.choice(min(labels, 400), k, replace=False)
    scores = -np.sort(-rng.uniform(0.01, 0.99, (n, k)), axis=1)
    rows = np.repeat(np.arange(n), k)
    matrix = sparse.csr_matrix((scores.ravel(), (rows, ids.ravel())), shape=Y.shape)
    few = matrix.copy()
    few.data[np.arange(few.nnz) % 3 == 0] = 0
    few.eliminate_zeros()
    sparse.save_npz(folder / "few.npz", few.astype(np.float32))
    with open(folder / "half.npz", "wb") as file:
        np.savez(file, ids=ids.astype(np.int32), scores=scores.astype(np.float16), n_labels=labels)
    TopK.from_ids(ids, n_labels=labels).save(folder / "ids.npz")


# ---------------------------------------------------------------- the runs


def runs(home: Path) -> list[Run]:
    """All runs, those of every notebook and kind of data first."""
    found = []
    for entry in manifest.load().values():
        values = entry.official()
        if "dataset" not in values or "folder" not in values:
            continue
        own = dict.fromkeys([*ALWAYS, *printed_for(entry.id)])
        for place, dataset in enumerate((*own, *catalogue.STRANGERS)):
            stranger = dataset in catalogue.STRANGERS
            about = {"dataset": dataset}
            if stranger:
                about["folder"] = str(home / "strangers" / dataset)
            filtered = dataset == "words" or (not stranger and registry.get(dataset).group == "label-features")
            filtered &= entry.id != "xcrepo/reciprocal_pairs"  # which takes the pairs out itself
            for number, (variant, own) in enumerate(variants(values, home / "predictions" / dataset, filtered)):
                if dataset in (catalogue.MANY_LABELS, "labels") and variant != "given":
                    continue  # so many labels, and those without features, come from saved predictions only
                weight = place * (not stranger) + number + (stranger and catalogue.STRANGERS.index(dataset))
                found.append(Run(entry, dataset, variant, values | about | own, weight))
    return sorted(found, key=lambda run: run.weight)


def printed_for(item: str) -> list[str]:
    """The datasets with a stand-in that the tables which an item reproduces have rows of, the smallest first."""
    shapes = catalogue.shapes()
    named = {name for id, row in reproduce.tables().items() if item in row.items for name in reproduce.datasets_of(id)}
    return sorted(named & shapes.keys(), key=lambda name: shapes[name].n_labels)


def variants(values: dict, predictions: Path, filtered: bool = False) -> Iterator[tuple[str, dict]]:
    """The name of each variant, and the parameters that make it; ``filtered`` data have pairs that may not be predicted."""
    yield "as it is", {}
    if "models" in values:
        yield "two", {"models": ["Popularity", "PLT"]}
        yield "one", {"models": ["PLT"]}
        if filtered:
            yield "both", {"models": ["PLT", f"PLT{baselines.UNFILTERED}"]}
    if "predictions" in values:
        yield "given", {"predictions": str(predictions)} | ({"models": []} if "models" in values else {})


def job(run: Run, home: Path, digest: str) -> processes.Job:
    """A run as a job of the runner: in the rehearsal's own cache and catalogue, kept under its name."""
    root = run.entry.root
    place = home / "runs" / re.sub(r"[^\w.-]", "_", run.name)
    fingerprint = stamps.fingerprint(run.entry, run.values, stamps.versions(), {}) | {"data": {"stand-ins": digest}}
    here = Path(__file__).parent
    variables = {
        "XCREPRO_DATA": str(home / "cache"),
        "XCREPRO_REHEARSAL": str(home / "sizes.json"),
        "XCREPRO_FIGURES": stamps.short(root, place / "figures"),
        "XCREPRO_OWN": "1",
        "PYTHONPATH": os.pathsep.join([str(here / "hook"), str(root), os.environ.get("PYTHONPATH", "")]),
    }
    about = {"stamp": place / "done.json", "name": run.name, "variables": variables, "fingerprint": fingerprint}
    return processes.Job(run.entry, run.values, False, True, False, place / f"{run.entry.notebook.stem}.ipynb", **about)


_WARNS = re.compile(r"^.*\b(?:User|Runtime|Future|Deprecation|Performance)Warning: .*$", re.MULTILINE)


def judged(run: Run, result: runner.Result) -> tuple[str, str]:
    """ok, refused, warned or failed, and the words."""
    if result.outcome == "unchanged":
        return "ok", "as before"
    if result.bad:
        expected = REFUSES.get(run.entry.id)
        first = " ".join(result.why.split())
        return ("refused" if expected and expected in result.why else "failed"), first[:300]
    cells = notebooks.code_cells(notebooks.read(result.notebook))
    outputs = [output for cell in cells for output in cell.get("outputs", []) if output.get("name") == "stderr"]
    said = "\n".join(notebooks.text(output.get("text")) for output in outputs)
    warned = [line for line in _WARNS.findall(said) if "xcrepro" not in line.partition("Warning")[0]]
    return ("warned", warned[0].strip()[:300]) if warned else ("ok", "")


def rehearse(chosen: Iterable[Run], home: Path, until: float) -> dict[str, tuple[str, str]]:
    """Run one after the other until the time is up; name -> its outcome and words."""
    root, digest, found = paths.project_root(), (home / "prepared").read_text(), {}
    for run in chosen:
        if time.monotonic() > until:
            break
        one = job(run, home, digest)
        result = runner.run_jobs(root, [one], 1)[one.id]
        found[run.name] = judged(run, result)
        if found[run.name][0] not in ("ok", "refused"):
            print(f"{run.name}: {': '.join(found[run.name])}", flush=True)
    return found


def use(home: Path) -> None:
    """This process, and what it starts, on the rehearsal's stand-ins and cache."""
    os.environ["XCREPRO_DATA"] = str(home / "cache")
    catalogue.take(catalogue.write(home / "sizes.json", catalogue.shapes()))


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.rehearsal", description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only runs with all of these in their names")
    parser.add_argument(
        "--minutes", type=float, default=DEFAULT_MINUTES, help="so long (default 60); it goes on next time"
    )
    parser.add_argument("--list", action="store_true", help="what would run, in this order")
    given_ = parser.parse_args(arguments)
    home = paths.project_root() / "build" / "rehearsal"
    home.mkdir(parents=True, exist_ok=True)
    use(home)
    chosen = [run for run in runs(home) if all(word in run.name for word in given_.words)]
    if given_.list:
        print("\n".join(run.name for run in chosen))
        return 0
    until = time.monotonic() + 60 * given_.minutes
    with runner.alone(paths.project_root()):
        prepare(home, catalogue.shapes())
        found = rehearse(chosen, home, until)
    counts = Counter(outcome for outcome, _ in found.values())
    print(f"{len(found)} runs: {dict(counts)}; {len(chosen) - len(found)} wait for another time")
    return int(bool(counts["failed"] + counts["warned"]))


if __name__ == "__main__":
    sys.exit(main())
