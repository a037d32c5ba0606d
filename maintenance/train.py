"""``make train``: train anew what notebooks read of models, and hold what is stored in ``data/predictions`` to it."""

from __future__ import annotations

import argparse
import os
import shutil

from xcrepro import models
from xcrepro.core import paths
from xcrepro.repro.engine import runner
from xcrepro.repro.inputs import stored, trained


def main(arguments: list[str] | None = None) -> int:
    """Train anew what notebooks read of models, compare it with what is stored, and bring that up to date."""
    parser = argparse.ArgumentParser("python -m maintenance.train", description=main.__doc__)
    parser.add_argument("items", nargs="*", help="only what these notebooks read; by default all")
    parser.add_argument("--jobs", type=int, help="notebooks at once, by default one a core")
    parser.add_argument(
        "--code-only",
        action="store_true",
        help="train nothing: note the code that is here, as not confirmed where it changed",
    )
    chosen = parser.parse_args(arguments)
    root = paths.project_root()
    target = root / stored.FOLDER
    if chosen.code_only:
        code = {name: trained.code_of(getattr(models, name)) for name in models.CLASSES}
        entries = stored.refreshed(stored.read_index(target / stored.INDEX), code)
        stored.write_index(target / stored.INDEX, entries)
        print(f"{sum(entry.code != entry.confirmed for entry in entries)} of {len(entries)} are not confirmed")
        return 0

    room = root / "build" / "train"
    # What was trained stays where a run was stopped, and this one goes on there.
    shutil.rmtree(room / "notes", ignore_errors=True)
    os.environ |= {stored.NOTES: str(room / "notes"), "XCREPRO_DATA": str(room / "cache")}
    report = runner.run(chosen.items or None, force=True, jobs=chosen.jobs, long=not chosen.items)
    if any(result.bad for result in report.results):
        print("nothing is stored, since not all notebooks ran to their end; what was trained is kept for the next run")
        return 1
    said = stored.gather(room / "notes", target, whole=not chosen.items)
    entries = stored.read_index(target / stored.INDEX)
    size = sum((target / entry.file).stat().st_size for entry in entries) / 1e6
    print("\n".join([*said, f"{len(entries)} predictions, {size:.1f} MB, all as they are trained"]))
    if report.ok:
        shutil.rmtree(room, ignore_errors=True)
    return int(any("DIFFERS" in line for line in said) or not report.ok)


if __name__ == "__main__":
    raise SystemExit(main())
