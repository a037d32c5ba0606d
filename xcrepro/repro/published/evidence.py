"""What a notebook's run shows of its paper's claims, beside what is recorded on other data, and the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from xcrepro.core import paths
from xcrepro.core.data import registry
from xcrepro.core.data.twin import Twin
from xcrepro.repro import recorded
from xcrepro.repro.published.claims import SOURCES, claims, known

if TYPE_CHECKING:
    from xcrepro.core.data.dataset import Dataset
    from xcrepro.repro.items import Item

PART = "evidence"
"""The table of a notebook that holds its evidence: ``figures/<id>-evidence.csv``."""

WHOLE = " (all records)"
"""After the name of a dataset that comes with the kit, of recorded evidence from all its records and the mean of its splits."""

_LIVE, _RECORDED, _SYNTHETIC, _PRINT, _EXACT = SOURCES
_COLUMNS = ("source", "dataset", "metric", "k", "left", "right", "value", "stderr", "low", "high", "p raw")
_WORDS = {True: "holds", False: "does not hold", None: "cannot tell"}

Outcomes = Mapping[str, tuple[bool | None, str]]
"""Claim -> whether it holds (None: cannot tell), and what its cell found in words, such as "+2.1 points (1.4 to 2.8)"."""


def of(ds: Dataset, apart: pd.DataFrame | None = None, outcomes: Outcomes | None = None) -> pd.DataFrame:
    """The evidence of one dataset: differences of models (left minus right, fractions), and outcomes of claims in words."""
    source = _SYNTHETIC if isinstance(ds, Twin) else _LIVE
    known = registry.find(ds.entry.name if ds.entry else ds.name)
    name = known.printed_name if known and source == _LIVE else ds.title
    told = _told(source, name, outcomes or {})
    if apart is None:
        return told
    rows = apart.assign(source=source, dataset=name).reindex(columns=list(_COLUMNS))
    # As objects: a whole k stays whole beside the rows that have none.
    return pd.concat([rows.astype({"k": object}), told], ignore_index=True) if len(told) else rows


def recorded_of(name: str, outcomes: Outcomes) -> pd.DataFrame:
    """Outcomes that a run finds in what is recorded of another dataset, by its printed name; they replace the record's own."""
    return _told(_RECORDED, name, outcomes)


def printed(outcomes: Outcomes) -> pd.DataFrame:
    """The evidence on claims about what the document prints."""
    return _told(_PRINT, "", outcomes)


def exact(outcomes: Outcomes) -> pd.DataFrame:
    """The evidence on identities and bounds that a calculation shows, whatever the data."""
    return _told(_EXACT, "", outcomes)


def _told(source: str, dataset: str, outcomes: Outcomes) -> pd.DataFrame:
    rows = [
        (source, dataset, id, _WORDS[None if ok is None else bool(ok)], words) for id, (ok, words) in outcomes.items()
    ]
    return pd.DataFrame(rows, columns=["source", "dataset", "id", "outcome", "effect"])


def gather(item: Item, *parts: pd.DataFrame) -> pd.DataFrame:
    """The evidence of this run, compared with what is committed, and that of its recorded runs on real data."""
    parts = [part for part in parts if len(part)] or list(parts[:1])
    here = pd.concat([part.astype({"k": object}) if "k" in part else part for part in parts], ignore_index=True)
    item.check(here, PART, quiet=True)
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
    there = []
    for name, table in sorted(others.items()):
        table = table[table["source"] == _LIVE].assign(source=_RECORDED)
        if recorded.own_data(name):
            table["dataset"] = [one + WHOLE for one in table["dataset"]]
        there.append(table)
    if (
        "id" in here
    ):  # what was found here, of built-in counts or of records of several splits, goes before a record's own
        own = here.loc[here["source"].isin([_LIVE, _RECORDED]), ["id", "dataset"]]
        own = set(own.dropna().itertuples(index=False, name=None))
        there = [
            table[[pair not in own for pair in zip(table["id"], table["dataset"], strict=True)]]
            if "id" in table
            else table
            for table in there
        ]
    return pd.concat([here, *(table for table in there if len(table))], ignore_index=True)


def verdicts(item: Item, found: pd.DataFrame) -> pd.DataFrame:
    """The claims that a notebook tests, against its evidence, as its last table shows them: claim, print, datasets (the
    difference in points with its interval at the k where the claim is weakest, or words), verdict."""
    paper = item.entry.id.partition("/")[0]
    documents = [claims(paper)] if paper in known() else [claims(name) for name in known()]
    named = {one: list(one.table.loc[one.table["notebook"] == item.entry.id, "id"]) for one in documents}
    tables = [shown(one, _about(one, found), mine) for one, mine in named.items() if mine]
    table = pd.concat(tables, ignore_index=True).fillna("")
    return table[[*(name for name in table if name != "verdict"), "verdict"]]


def _about(document, found: pd.DataFrame) -> pd.DataFrame:
    """Without the outcomes of other documents' claims."""
    others = {id for name in known() if name != document.paper for id in claims(name).table["id"]}
    ids = found["id"] if "id" in found else pd.Series("", found.index)
    return found[~ids.isin(others - set(document.table["id"]))]


def shown(document, found: pd.DataFrame, only: list[str]) -> pd.DataFrame:
    """The table of :func:`verdicts` for any claims of a document."""
    own = _own(found)
    compared = document.comparisons(found, only=only, datasets=own)
    judged = document.verdicts(found, only=only, datasets=own).set_index("id")
    rows = []
    for id, row in judged[judged.index.isin(compared["id"])].iterrows():
        part = compared[compared["id"] == id]
        by = {name: _effect(document[id], one) for name, one in part.groupby("dataset", sort=False) if name}
        by_hand = "; ".join(part.loc[part["source"] == _EXACT, "effect"])
        first = {"claim": _named(document[id], part), "print, or by hand": row["print"] or by_hand}
        rows.append(first | by | {"verdict": row["verdict"]})
    table = pd.DataFrame(rows).fillna("")
    return table[[*(name for name in table if name != "verdict"), "verdict"]]


def _own(found: pd.DataFrame) -> list[str]:
    """The datasets that the catalogue does not know."""
    from xcrepro.repro.published.claims import _datasets

    return [name for name in found["dataset"].unique() if name and name not in _datasets()]


def _named(claim: pd.Series, part: pd.DataFrame) -> str:
    if (part["metric"] == "").all():
        return claim["claim"]
    at = f"@{claim['k'].replace(';', ', ')}" if claim["k"] else ""
    return f"{claim['left']} {claim['direction']} {claim['right']}, {claim['metric']}{at}"


def _effect(claim: pd.Series, part: pd.DataFrame) -> str:
    """The comparison that speaks least for the claim, in points with its interval."""
    compared = part[part["metric"] != ""]
    if not len(compared):
        return "; ".join(part["effect"])
    side = -1 if claim["direction"] in ("below", "at most") else 1
    ends = compared["low"] if side > 0 else -compared["high"]
    one = compared.loc[ends.where(ends.notna(), side * compared["value"]).idxmin()]
    text = f"{100 * one['value']:+.1f}"
    if pd.notna(one["low"]):
        text += f" ({100 * one['low']:+.1f} to {100 * one['high']:+.1f})"
    return text if len(compared) == 1 else f"{text} at k = {one['k']}"


def of_paper(paper: str) -> pd.DataFrame:
    """Each claim of a document with its verdict, from committed and recorded evidence: the columns of
    :meth:`xcrepro.repro.published.claims.Claims.verdicts`, then where, kind, notebook, untested, found and group
    (:data:`GROUPS`)."""
    document = claims(paper)
    compared = []
    for id, table in document.table[document.table["notebook"] != ""].groupby("notebook", sort=False):
        file = paths.committed(f"figures/{id}-{PART}.csv")
        if file.is_file():
            records = [recorded.read(one) for one in recorded.files(id)]
            others = {
                one.provenance["dataset"]: _over_splits(*(recorded.frame(one, PART, sds) for sds in (False, True)))
                for one in records
                if PART in one.tables
            }
            found = _about(document, _joined(pd.read_csv(file), others))
            compared.append(document.comparisons(found, only=list(table["id"]), datasets=_own(found)))
    rows = pd.concat(compared, ignore_index=True)
    found = document.sum_up(rows).merge(document.table[["id", "where", "kind", "notebook", "untested"]], on="id")
    found["found"] = [_in_words(document[id], rows[rows["id"] == id]) for id in found["id"]]
    return found.assign(group=[_group(row) for _, row in found.iterrows()])


def _in_words(claim: pd.Series, part: pd.DataFrame) -> str:
    words = [(name, _effect(claim, one)) for name, one in part.groupby("dataset", sort=False)]
    return "; ".join(f"{name}: {word}" if name else word for name, word in words if word)


# ---------------------------------------------------------------------------------------------- a paper's page

GROUPS = (
    "does not hold",
    "holds on some data, not on others",
    "holds on some data, open on others",
    "cannot tell",
    "holds",
    "holds in print",
    "not judged yet",
    "cannot be tested here",
)
"""How claims come out, in the order of a paper's page: what the authors and their readers would want to know first."""


def _group(row: pd.Series) -> str:
    """The one of :data:`GROUPS` that a row of :func:`of_paper` belongs to."""
    if row["untested"]:
        return "cannot be tested here"
    if row["holds"] and row["does not hold"]:
        return "holds on some data, not on others"
    if row["holds"] and row["cannot tell"]:
        return "holds on some data, open on others"
    for word in ("does not hold", "cannot tell", "holds in print", "holds"):
        if row["verdict"].startswith(word):
            return word
    return "not judged yet"


def counted(found: pd.DataFrame) -> pd.DataFrame:
    """How many claims of :func:`of_paper` have each outcome, and how many of these are judged on real data."""
    rows = [(name, found[found["group"] == name]) for name in GROUPS]
    table = [(name, len(part), int((part["real"] != "").sum())) for name, part in rows if len(part)]
    return pd.DataFrame([*table, ("all", len(found), int((found["real"] != "").sum()))], columns=_COUNTED)


_COUNTED = ["outcome", "claims", "on real data"]


class Page:
    """The claims of a paper as its page shows them: a table for each outcome, folded or open, with links to the notebooks."""

    def __init__(self, found: pd.DataFrame, open: Sequence[str] = GROUPS[:2]) -> None:
        self.parts = [(name, found[found["group"] == name]) for name in GROUPS]
        self.open = open

    def __repr__(self) -> str:
        return "\n".join(
            f"{name}: {row['claim']} [{row['verdict']}]" for name, part in self.parts for _, row in part.iterrows()
        )

    def _repr_markdown_(self) -> str:
        return "\n\n".join(self._table(name, part) for name, part in self.parts if len(part))

    def _table(self, name: str, part: pd.DataFrame) -> str:
        tested = name != GROUPS[-1]
        head = ("claim", "where", "what we find", "notebook") if tested else ("claim", "where", "why not")
        lines = ["| " + " | ".join(head) + " |", "|" + " :-- |" * len(head)]
        for _, row in part.iterrows():
            cells = [row["claim"], row["where"], self._said(row) if tested else row["untested"]]
            if tested:
                short = row["notebook"].partition("/")[2]
                cells.append(f"[{short}](../{row['notebook']}.ipynb)")
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        fold = "<details open>" if name in self.open else "<details>"
        title = f"{name[0].upper()}{name[1:]}: {len(part)} claim{'s' if len(part) > 1 else ''}"
        return "\n".join([fold, f"<summary>{title}</summary>", "", *lines, "", "</details>"])

    @staticmethod
    def _said(row: pd.Series) -> str:
        """The verdict where it says more than the table's title, and what was found."""
        verdict = row["verdict"] if "on" in row["verdict"].split() else ""
        return ". ".join(filter(None, (verdict, row["found"])))
