"""Items with results on real data hold their run to them."""

from __future__ import annotations

import re
from pathlib import Path

from xcrepro.repro.engine import manifest, notebooks

ROOT = Path(__file__).resolve().parents[3]


def test_every_item_with_recorded_data_holds_its_run_to_them():
    entries = [entry for entry in manifest.load(ROOT).values() if entry.recorded]
    assert entries
    for entry in entries:
        code = "\n".join(notebooks.text(cell["source"]) for cell in notebooks.read(entry.notebook)["cells"])
        # Then its verdicts have a column for each.
        typed = "item.check_text(" in code and re.search(r"item\.(recorded|evidence)\(", code)
        assert typed or re.search(r"findings\(.*recorded", code), entry.id
