"""``python -m docs.verdicts``: how the claims of the five documents come out, as bars in ``docs/_static/verdicts.png``."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path

from docs.papers import DOCUMENTS
from xcrepro.repro.published import evidence
from xcrepro.repro.published.claims import known

PICTURE = Path(__file__).parent / "_static" / "verdicts.png"
KINDS = {"on real data": ["data"], "in print": ["print"], "by calculation": ["proof", "simulation"]}
"""Panels: what a verdict rests on; different kinds of evidence are not added up."""
_FAILS, _UNDECIDED = evidence.PARTLY
OUTCOMES = {
    "holds": ("#1b7837", ["holds"]),
    "depends on the data": ("#a6cee3", [_FAILS, _UNDECIDED]),
    "open": ("#d9d9d9", ["cannot tell", "never against"]),
    "does not hold": ("#b2182b", ["does not hold"]),
}


_DARK = ("#1b7837", "#b2182b")


@functools.cache
def counts() -> dict[str, dict[str, list[int]]]:
    """Paper -> panel -> how many claims have each outcome."""
    found = {}
    for paper in known():
        if paper.startswith("schultheis"):  # read in part only
            continue
        table = evidence.of_paper(paper).groupby(["section", "outcome"]).size()
        found[DOCUMENTS[paper][0].removeprefix("The ")] = panels = {}
        for panel, kinds in KINDS.items():
            of = [[(evidence.SECTIONS[kind], n) for kind in kinds for n in names] for _, names in OUTCOMES.values()]
            panels[panel] = [sum(int(table.get(place, 0)) for place in places) for places in of]
    return found


def _counted(number: int, outcome: str) -> str:
    """``3 hold``, ``1 holds``."""
    many = outcome.replace("holds", "hold").replace("depends", "depend").replace("does", "do")
    return f"{number} {outcome if number == 1 else many}"


def bars(paper: str) -> str:
    """The bars of one document as HTML, with a legend in words; empty where it has none here."""
    panels = counts().get(DOCUMENTS.get(paper, ("",))[0].removeprefix("The "), {})
    rows = []
    for panel, numbers in panels.items():
        cells = "".join(
            f'<span style="display:inline-block;width:{0.7 * number + 0.7:.1f}em;background:{colour};text-align:center;'
            f'color:{"white" if colour in _DARK else "black"}" title="{name}">{number}</span>'
            for number, (name, (colour, _)) in zip(numbers, OUTCOMES.items(), strict=True)
            if number
        )
        said = ", ".join(_counted(number, name) for number, name in zip(numbers, OUTCOMES, strict=True) if number)
        if said:
            cells = f'<td style="white-space:nowrap" aria-label="{said}">{cells}</td>'
            rows.append(f"<tr><td>{panel}</td>{cells}<td>{said}</td></tr>")
    return f'<div style="overflow-x:auto"><table>{"".join(rows)}</table></div>' if rows else ""


def digest() -> str:
    """Of what is drawn; the picture carries it, and a test compares it."""
    return hashlib.sha256(json.dumps(counts(), sort_keys=True).encode()).hexdigest()


def main() -> None:
    """Draw it."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    found = counts()
    most = [max(sum(panels[panel]) for panels in found.values()) for panel in KINDS]
    how = {"sharey": True, "width_ratios": most, "layout": "constrained"}  # one scale in all
    figure, axes = plt.subplots(1, len(KINDS), figsize=(9, 2.5), **how)
    for axis, panel, end in zip(axes, KINDS, most, strict=True):
        axis.set_xlim(0, end + 0.5)
        for row, panels in enumerate(found.values()):
            left = 0
            for number, (colour, _) in zip(panels[panel], OUTCOMES.values(), strict=True):
                against = "////" if colour == OUTCOMES["does not hold"][0] else None  # seen in grey as well
                axis.barh(row, number, left=left, color=colour, height=0.72, edgecolor="white", hatch=against)
                if number:
                    style = {"color": "white" if colour in _DARK else "black", "ha": "center", "va": "center"}
                    box = {"facecolor": colour, "edgecolor": "none", "pad": 0.6} if against else None
                    axis.text(left + number / 2, row, str(number), bbox=box, **style)
                left += number
        axis.set_title(panel, loc="left")
        axis.set_yticks(range(len(found)), list(found))
        axis.invert_yaxis() if axis is axes[0] else None
        axis.set_xticks([])
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
    hatches = {name: "////" * (name == "does not hold") for name in OUTCOMES}
    looks = {name: {"facecolor": colour, "hatch": hatches[name]} for name, (colour, _) in OUTCOMES.items()}
    handles = [plt.Rectangle((0, 0), 1, 1, edgecolor="white", **look) for look in looks.values()]
    figure.legend(handles, list(OUTCOMES), loc="outside lower center", ncols=len(OUTCOMES), frameon=False)
    figure.savefig(PICTURE, dpi=110, metadata={"data": digest(), "Software": None})
    print(f"wrote {PICTURE} ({PICTURE.stat().st_size:,} bytes)")


if __name__ == "__main__":
    main()
