"""What a notebook's run shows of its paper's claims, beside what is recorded on other data, and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from xcrepro.core import paths
from xcrepro.core.data import registry
from xcrepro.models.twin import Twin
from xcrepro.repro.engine import recorded, run_log
from xcrepro.repro.published.claims import CHECKS, SOURCES, claims, known

if TYPE_CHECKING:
    from xcrepro.core.data.dataset import Dataset
    from xcrepro.repro.engine.items import Item

PART = "evidence"
"""The table of a notebook that holds its evidence: ``figures/<id>-evidence.csv``."""

WHOLE = " (all records)"
"""After the name of a dataset that comes with the kit, of recorded evidence from all its records and the mean of its splits."""

_LIVE, _RECORDED, _SYNTHETIC, _PRINT, _EXACT = SOURCES
_COLUMNS = ("source", "dataset", "metric", "k", "left", "right", "value", "stderr", "low", "high", "p raw")
_WORDS = {True: "holds", False: "does not hold", None: "cannot tell"}
_DECIDE = ("does not hold", "cannot tell", "holds")
"""Of a dataset's comparisons the first that is among them is the one to show."""

Outcomes = Mapping[str, tuple[bool | None, str]]
"""Claim -> whether it holds (None: cannot tell), and what its cell found in words, such as "+2.1 points (1.4 to 2.8)"."""


def of(ds: Dataset, apart: pd.DataFrame | None = None, outcomes: Outcomes | None = None) -> pd.DataFrame:
    """The evidence of one dataset: differences (left minus right, fractions) of models, or of a claim's :func:`cells`; and
    outcomes of claims in words."""
    source = _SYNTHETIC if isinstance(ds, Twin) else _LIVE
    known = registry.find(ds.entry.name if ds.entry else ds.name)
    name = known.printed_name if known and source == _LIVE else ds.title
    told = _told(source, name, outcomes or {})
    if apart is None:
        return told
    rows = apart.assign(source=source, dataset=name).reindex(columns=[*_COLUMNS, *(["id"] if "id" in apart else [])])
    # As objects: a whole k stays whole beside the rows that have none.
    return pd.concat([rows.astype({"k": object}), told], ignore_index=True) if len(told) else rows


def cells(claims: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The cells that show claims without a metric: claim -> differences by model (and what else tells its cells apart), metric
    and k, as :func:`xcrepro.repro.inputs.calibrated.compared` has them, with value, stderr and p raw; empty without claims."""
    parts = []
    for id, table in claims.items():
        own = [name for name in table if name not in _COLUMNS]
        left = table[own].astype(str).agg(", ".join, axis=1)
        parts.append(table.assign(id=id, left=left, right="").drop(columns=own))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def clear(paper: str, id: str, found: pd.DataFrame) -> pd.DataFrame:
    """Of a claim's cells on each dataset: cells, how many are ``clear`` for it and how many ``against`` it."""
    document = claims(paper)
    rows = document.comparisons(_about(document, found), only=id, datasets=_own(found))
    rows = rows[rows["source"].str.startswith("real")].assign(against=rows["outcome"] == "does not hold")
    of = rows.groupby("dataset", sort=False)
    return pd.DataFrame({"cells": of.size(), "clear": of["clear"].sum(), "against": of["against"].sum()})


def printed(outcomes: Outcomes) -> pd.DataFrame:
    """The evidence on claims about what the document prints."""
    return _told(_PRINT, "", outcomes)


def exact(outcomes: Outcomes) -> pd.DataFrame:
    """The evidence on identities and bounds that a calculation shows, whatever the data."""
    return _told(_EXACT, "", outcomes)


def _told(source: str, dataset: str, outcomes: Outcomes) -> pd.DataFrame:
    words = {id: (_WORDS[None if ok is None else bool(ok)], said) for id, (ok, said) in outcomes.items()}
    rows = [(source, dataset, id, *told) for id, told in words.items()]
    return pd.DataFrame(rows, columns=["source", "dataset", "id", "outcome", "effect"])


def gather(item: Item, *parts: pd.DataFrame) -> pd.DataFrame:
    """The evidence of this run, compared with what is committed, and that of its recorded runs on real data."""
    parts = [part for part in parts if len(part)] or list(parts[:1])
    here = pd.concat([part.astype({"k": object}) if "k" in part else part for part in parts], ignore_index=True)
    item.check(here, PART, quiet=True)
    if item.nothing_of(here):
        run_log.note("apart", PART)
    there, sds = (item.recorded(PART, whole=True, sds=one) for one in (False, True))
    return _joined(here, {name: _over_splits(table, sds[name]) for name, table in there.items()})


def _over_splits(table: pd.DataFrame, sds: pd.DataFrame) -> pd.DataFrame:
    """Means over splits with the larger of two errors: that of a split's test points, and how far the splits, which differ
    in what was trained as well, lie apart."""
    if "stderr" not in table or "p raw" not in table:
        return table
    apart = pd.to_numeric(sds["value"], errors="coerce").abs()
    wider = (sds["value"] != table["value"]) & (apart > table["stderr"])
    return table.assign(stderr=table["stderr"].mask(wider, apart), **{"p raw": table["p raw"].mask(wider)})


def _joined(here: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """And recorded evidence by dataset, its live rows as recorded ones; of data that come with the kit it is of all records."""
    # What was found here, of built-in counts or of records of several splits, goes before a record's own.
    own = here.loc[here["source"].isin([_LIVE, _RECORDED]), ["id", "dataset"]] if "id" in here else pd.DataFrame()
    known, there = {*own.dropna().itertuples(index=False, name=None)}, []
    for name, table in sorted(others.items()):
        table = table[table["source"] == _LIVE].assign(source=_RECORDED)
        if recorded.own_data(name):
            table["dataset"] = [one + WHOLE for one in table["dataset"]]
        if "id" in table:
            table = table[[pair not in known for pair in zip(table["id"], table["dataset"], strict=True)]]
        there.append(table)
    return pd.concat([here, *(table for table in there if len(table))], ignore_index=True)


def verdicts(item: Item, evidence: pd.DataFrame) -> pd.DataFrame:
    """The claims that a notebook tests, against its evidence, as its last table shows them: claim, print, datasets (the
    difference in points with its interval at the k where the claim is weakest, or words), verdict."""
    paper = item.entry.id.partition("/")[0]
    documents = [claims(paper)] if paper in known() else [claims(name) for name in known()]
    named = {one: list(one.table.loc[one.table["notebook"] == item.entry.id, "id"]) for one in documents}
    tables = [shown(one, _about(one, evidence), mine) for one, mine in named.items() if mine]
    table = pd.concat(tables, ignore_index=True).fillna("")
    return table[[*(name for name in table if name != "verdict"), "verdict"]]


def apart(table: pd.DataFrame, evidence: pd.DataFrame) -> list[pd.DataFrame]:
    """The table of :func:`verdicts` in two: claims that some data speak about, and those that only print or a calculation does;
    each without columns that would be empty."""
    names = [name for name in evidence["dataset"].unique() if name and name in table]
    on_data = (table[names] != "").any(axis=1)
    parts = [part for part in (table[on_data], table[~on_data].drop(columns=names)) if len(part)]
    return [part.loc[:, (part != "").any(axis=0)].reset_index(drop=True) for part in parts]


def _about(document, evidence: pd.DataFrame) -> pd.DataFrame:
    """Without the outcomes of other documents' claims."""
    ids = evidence["id"] if "id" in evidence else pd.Series("", evidence.index)
    if (ids.isna() | ids.isin({*document.table["id"], ""})).all():
        return evidence  # without reading the other documents' claims
    others = {id for name in known() if name != document.paper for id in claims(name).table["id"]}
    return evidence[~ids.isin(others - set(document.table["id"]))]


def shown(document, evidence: pd.DataFrame, only: list[str]) -> pd.DataFrame:
    """The table of :func:`verdicts` for any claims of a document."""
    own = _own(evidence)
    compared = document.comparisons(evidence, only=only, datasets=own)
    judged = document.sum_up(compared, only=only).set_index("id")
    rows = []
    for id, row in judged[judged.index.isin(compared["id"])].iterrows():
        part = compared[compared["id"] == id]
        by = {name: _effect(document[id], one) for name, one in part.groupby("dataset", sort=False) if name}
        by_hand = "; ".join(part.loc[part["source"] == _EXACT, "effect"])
        first = {"claim": _named(document[id], part), "print, or by hand": row["print"] or by_hand}
        rows.append(first | by | {"verdict": row["verdict"]})
    table = pd.DataFrame(rows).fillna("")
    return table[[*(name for name in table if name != "verdict"), "verdict"]]


def _own(evidence: pd.DataFrame) -> list[str]:
    """The datasets that the catalogue does not know."""
    from xcrepro.repro.published.claims import _datasets

    return [name for name in evidence["dataset"].unique() if name and name not in _datasets()]


def _named(claim: pd.Series, rows: pd.DataFrame) -> str:
    if not claim["metric"] or (rows["metric"] == "").all():
        return claim["claim"]
    at = f"@{claim['k'].replace(';', ', ')}" if claim["k"] else ""
    return f"{claim['left']} {claim['direction']} {claim['right']}, {claim['metric']}{at}"


def _effect(claim: pd.Series, rows: pd.DataFrame) -> str:
    """What decides a dataset's outcome: of the comparisons that come out as it does, the one that speaks least for the claim,
    in points (or labels) with its interval; of a claim's own cells how many are clear; words where there is no difference."""
    scale = 1 if claim["metric"].startswith("unique labels") else 100
    if not claim["metric"] and len(rows) > 1 and (rows["metric"] != "").all():
        ends = f"{100 * rows['value'].min():+.1f} to {100 * rows['value'].max():+.1f} points"
        against = (rows["outcome"] == "does not hold").sum()
        text = f"clear in {rows['clear'].sum()} of {len(rows)}" + f", against it in {against}" * bool(against)
        return f"{text} ({ends})"
    deciding = next(rows[rows["outcome"] == word] for word in _DECIDE if (rows["outcome"] == word).any())
    compared = deciding[deciding["metric"] != ""]
    if not len(compared):
        return "; ".join(deciding["effect"])
    low, high = (compared[name].where(compared[name].notna(), compared["value"]) for name in ("low", "high"))
    target = float(claim["value"] or 0)
    if claim["direction"] == "within":
        worst = np.maximum(-low, high)
    elif claim["direction"] == "equal":
        worst = (compared["value"] - target).abs()
    else:
        worst = high if claim["direction"] in ("below", "at most") else -low
    one = compared.loc[worst.idxmax()]
    text = f"{scale * one['value']:+.{scale > 1:d}f}"
    if pd.notna(one["low"]):
        text += f" ({scale * one['low']:+.{scale > 1:d}f} to {scale * one['high']:+.{scale > 1:d}f})"
    if claim["needs"] == "mean":
        return f"{text}, {one['left'] or 'mean'}"
    return text if (rows["metric"] != "").sum() == 1 else f"{text} at k = {one['k']}"


def of_paper(paper: str) -> pd.DataFrame:
    """Each claim of a document with its verdict, from committed and recorded evidence: the columns of
    :meth:`xcrepro.repro.published.claims.Claims.verdicts`, then where, kind, notebook, untested, found, rerun and recorded (on
    how many real datasets a run found it, on how many it was read back), section (one of :data:`SECTIONS`) and outcome
    (:data:`OUTCOMES`)."""
    document = claims(paper)
    compared = []
    for id, table in document.table[document.table["notebook"] != ""].groupby("notebook", sort=False):
        file = paths.committed(f"figures/{id}-{PART}.csv")
        if file.is_file():
            records = [recorded.read(one) for one in recorded.files(id)]
            others = {
                recorded.sample(one): _over_splits(*(recorded.frame(one, PART, sds) for sds in (False, True)))
                for one in records
                if PART in one.tables
            }
            found = _about(document, _joined(pd.read_csv(file), others))
            compared.append(document.comparisons(found, only=list(table["id"]), datasets=_own(found)))
    rows = pd.concat(compared, ignore_index=True)
    found = document.sum_up(rows).merge(document.table[["id", "where", "kind", "notebook", "untested"]], on="id")
    found["found"] = [_in_words(document[id], rows[rows["id"] == id]) for id in found["id"]]
    for column, source in (("rerun", "real, live"), ("recorded", "real, recorded")):
        of = rows[rows["source"] == source].groupby("id")["dataset"].nunique()
        found[column] = found["id"].map(of).fillna(0).astype(int)
    checks = found["kind"].isin(CHECKS)
    found["section"] = found["rests"].mask(checks & (found["rests"] != "none"), "check").map(SECTIONS)
    return found.assign(outcome=[_outcome(row) for _, row in found.iterrows()])


def _in_words(claim: pd.Series, rows: pd.DataFrame) -> str:
    words = [(name, _effect(claim, one)) for name, one in rows.groupby("dataset", sort=False)]
    return "; ".join(f"{name}: {word}" if name else word for name, word in words if word)


# ---------------------------------------------------------------------------------------------- a paper's page

SECTIONS = {
    "data": "measured on real data",
    "print": "read off the print",
    "proof": "proved or computed",
    "simulation": "simulated",
    "check": "checks: definitions, and numbers of the text that its tables have",
    "none": "cannot be tested here",
}
"""What a claim rests on -> the part of a paper's page that has it; numbers of different parts are never added up."""

PARTLY = ("holds on some data, fails on others", "holds on some data, undecided on others")
"""Two messages that are easily taken for one."""

OUTCOMES = ("does not hold", PARTLY[0], "cannot tell", "never against", PARTLY[1], "holds")
"""How claims come out, in the order of a paper's page: what the authors and their readers would want to know first."""


def _outcome(row: pd.Series) -> str:
    """The one of :data:`OUTCOMES` that a row of :func:`of_paper` has; empty if nothing tests it, or nothing has yet."""
    words = row["verdict"]
    if row["rests"] == "data" and words.startswith("holds on ") and "," in words:
        return PARTLY["does not hold" not in words]
    return next((word for word in OUTCOMES if words.startswith(word)), "")


def counted(claims: pd.DataFrame) -> pd.DataFrame:
    """How many claims of :func:`of_paper` each kind of evidence decides, and how they come out by it."""
    rows = []
    for name, part in claims.groupby("section", sort=False):
        counts = {word: (part["outcome"] == word).sum() for word in OUTCOMES}
        rows.append({"evidence": name, "claims": len(part)} | counts)
    order = [*SECTIONS.values()].index
    table = pd.DataFrame(rows).sort_values("evidence", key=lambda names: names.map(order), ignore_index=True)
    return table[["evidence", "claims", *(word for word in reversed(OUTCOMES) if table[word].any())]]


class Page:
    """The claims of a paper as its page shows them: a table for each kind of evidence, folded or open, with links to the
    notebooks."""

    def __init__(self, found: pd.DataFrame, open: Sequence[str] = ("data",)) -> None:
        order = {word: at for at, word in enumerate((*OUTCOMES, ""))}
        found = found.sort_values("outcome", key=lambda words: words.map(order), kind="stable")
        self.parts = [(name, found[found["section"] == title]) for name, title in SECTIONS.items()]
        self.open = open

    def __repr__(self) -> str:
        rows = ((SECTIONS[name], row) for name, part in self.parts for _, row in part.iterrows())
        return "\n".join(f"{title}: {row['claim']} [{row['verdict']}]" for title, row in rows)

    def _repr_markdown_(self) -> str:
        return "\n\n".join(self._table(name, part) for name, part in self.parts if len(part))

    def _table(self, name: str, rows: pd.DataFrame) -> str:
        tested = name != "none"
        head = ("claim", "where", *(("verdict", "what we find") if tested else ("why not", "our finding")), "notebook")
        lines = ["| " + " | ".join(head) + " |", "|" + " :-- |" * len(head)]
        for _, row in rows.iterrows():
            link = f"[{row['notebook'].partition('/')[2]}](../{row['notebook']}.ipynb)" if row["notebook"] else ""
            cells = [row["claim"], row["where"], row["verdict" if tested else "untested"], row["found"], link]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        fold = "<details open>" if name in self.open else "<details>"
        title = SECTIONS[name][0].upper() + SECTIONS[name][1:]
        if name == "data":
            lines[:0] = [f"{rerun_share(rows)} [recorded runs](../../data/recorded/README.md).", ""]
        return "\n".join([fold, f"<summary>{title} ({len(rows)})</summary>", "", *lines, "", "</details>"])


def rerun_share(found: pd.DataFrame) -> str:
    """How many of the outcomes of :func:`of_paper` on real data a run computes, and how many it reads back."""
    data = found[found["section"] == SECTIONS["data"]]
    rerun, back = data["rerun"].sum(), data["recorded"].sum()
    return f"`make figures` computes {rerun} of {rerun + back} outcomes on real data anew and reads {back} back from"


def margin(paper: str, id: str) -> float:
    """What the line of a claim of no difference states: up to which difference, a fraction, there counts as none."""
    return abs(float(claims(paper)[id]["value"]))


def inside(low, high, margin: float, one_sided: bool = False) -> bool | None:
    """Whether differences, by their intervals, are all smaller than a margin; False if one is surely larger, else None.

    ``one_sided``: only a gain of the margin or more counts.
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    if (low > margin).any() or (not one_sided and (high < -margin).any()):
        return False
    return True if ((high < margin) & (one_sided | (low > -margin))).all() else None
