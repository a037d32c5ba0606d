"""Which printed numbers of the five documents cannot be right: findings as text, their kinds, displaced rows, and what two
documents print of the same thing."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.figure import Figure

from xcrepro import looks, published
from xcrepro.papers.xcrepo._common import Folded
from xcrepro.published.audit import JUDGEMENTS
from xcrepro.published.record import DOCUMENTS
from xcrepro.repro import figures


def compute() -> pd.DataFrame:
    """All findings of the audit.

    Returns
    -------
    DataFrame
        :func:`xcrepro.published.audit` of all documents: a row a finding.
    """
    return published.audit()


def compute_counts(found: pd.DataFrame) -> pd.DataFrame:
    """Findings by document and judgement.

    Parameters
    ----------
    found : DataFrame
        Of :func:`compute`.

    Returns
    -------
    DataFrame
        document, a column a judgement, cells (distinct cells or rows).
    """
    counts = pd.crosstab(found["document"], found["judgement"]).reindex(DOCUMENTS, columns=JUDGEMENTS, fill_value=0)
    cells = found.drop_duplicates(["document", "dataset", "row", "column"]).groupby("document").size()
    counts["cells"] = cells.reindex(DOCUMENTS, fill_value=0)
    return counts.rename_axis(columns=None).reset_index()


def describe(found: pd.DataFrame, *checks: str, judgement: str | None = None, width: int = 110) -> Folded:
    """The findings of some checks as text for people: place, printed and expected in one line, the reason below it.

    Parameters
    ----------
    found : DataFrame
        Of :func:`compute`.
    *checks : str
        Names in its column ``check``, of which the first counts where several found a cell.
    judgement : str, optional
        Only findings with this judgement.
    width : int
        Of a line of a reason, in characters.

    Returns
    -------
    Folded
        The number of findings in its line.

    Examples
    --------
    >>> print(describe(compute(), "first_place", judgement="rounding").text.splitlines()[0])
    xcrepo, table of LF-AmazonTitles-1.3M: DEXA: N@1 is 56.60; expected 56.63.
    """
    wanted = found[found["check"].str.split(", ").str[0].isin(checks)]
    if judgement is not None:
        wanted = wanted[wanted["judgement"] == judgement]
    lines = []
    for row in wanted.itertuples():
        tables = row.table.replace(f"{row.document}:", "")
        place = f"table of {row.dataset}" if row.document == "xcrepo" else f"{tables}, {row.dataset}"
        name = "" if row.row == row.dataset else f"{row.row}: "
        lines.append(f"{row.document}, {place}: {name}{row.column} is {row.printed}; expected {row.expected}.")
        lines += textwrap.wrap(row.why, width, initial_indent="    ", subsequent_indent="    ")
    count = f"{len(wanted)} finding{'' if len(wanted) == 1 else 's'}"
    documents = ", ".join(dict.fromkeys(wanted["document"]))
    return Folded(f"{count}{f' in {documents}' if documents else ''}", "\n".join(lines))


def findings(found: pd.DataFrame) -> list[str]:
    """What the audit comes to, counted.

    Parameters
    ----------
    found : DataFrame
        Of :func:`compute`.

    Returns
    -------
    list of str
    """
    counts = compute_counts(found).set_index("document")
    total = counts[list(JUDGEMENTS)].sum()
    wrong = ", ".join(f"{name} {n}" for name, n in counts["typo"].items() if n)
    moved = found[found["check"] == "owners"]
    weaker = moved["expected"].str.contains("elimination")
    said = [f"{len(found)} findings; {total['typo']} of them cannot be right as printed ({wrong})."]
    for dataset, part in moved.groupby("dataset"):
        rest = (
            f"; {', '.join(part[weaker[part.index]]['row'])} likely too, which rests on elimination alone"
            if weaker[part.index].any()
            else ""
        )
        said.append(
            f"{(~weaker[part.index]).sum()} rows of the table of {dataset} stand under other methods' names{rest}."
        )
    split = found[found["check"] == "psndcg_definitions"]
    if len(split):
        said.append(f"PSnDCG does not compare within {len(split)} tables of the page: {', '.join(split['dataset'])}.")
    rest = ", ".join(f"{total[name]} {name}" for name in JUDGEMENTS if name != "typo" and total[name])
    return [*said, f"The others: {rest}."]


def compute_shared(over: float = 1.0) -> pd.DataFrame:
    """What two documents print for the same dataset, method, metric and k, where they differ by more than some points.

    Parameters
    ----------
    over : float
        Points.

    Returns
    -------
    DataFrame
        A row a dataset, method, metric and pair of documents: ``k`` (those that differ), ``first``, ``second`` (document: its
        numbers there), ``most`` (points), ``said`` (the audit's checks that speak of them; empty: none), widest first.
    """
    table = published.shared()
    table = table[table["difference"].abs() > over]
    rows = []
    for (dataset, method, metric, first, second), part in table.groupby(
        ["dataset", "method", "metric", "first", "second"], sort=False
    ):
        numbers = (" ".join(part[f"printed {place}"]) for place in ("first", "second"))
        said = ", ".join(sorted({check for checks in part["said"] for check in checks.split(", ") if check}))
        texts = [f"{document}: {text}" for document, text in zip((first, second), numbers, strict=True)]
        rows.append(
            (dataset, method, metric, " ".join(map(str, part["k"])), *texts, part["difference"].abs().max(), said)
        )
    return pd.DataFrame(rows, columns=["dataset", "method", "metric", "k", "first", "second", "most", "said"])


def shared_findings() -> list[str]:
    """How often two documents agree, counted.

    Returns
    -------
    list of str
    """
    table = published.shared()
    apart = table["difference"].abs() > 1
    silent = int((table.loc[apart, "said"] == "").sum())
    return [
        f"Of {len(table)} numbers that two documents print for one dataset, method, metric and k, {apart.sum()} differ by more "
        f"than a point; for {silent} of these no other finding says why."
    ]


def compute_displaced(found: pd.DataFrame, dataset: str = "EURLex-4K") -> pd.DataFrame:
    """How far each displaced row of the page's table is from the rows of jain16.

    Parameters
    ----------
    found : DataFrame
        Of :func:`compute`.
    dataset : str
        Whose table.

    Returns
    -------
    DataFrame
        The greatest difference of PSP and PSN at 1, 3, 5, in percent of the greater number. Column ``page`` has the
        page's names; the others are jain16's methods, the owners first, in the order of the rows.
    """

    def rows(document: str) -> dict[str, pd.Series]:
        frame = published.find(dataset=dataset, source=document, metric=["PSP", "PSN"])
        return {name: part.set_index(["metric", "k"])["value"] for name, part in frame.groupby("method", sort=False)}

    block = found[(found["check"] == "owners") & (found["dataset"] == dataset)]
    mine, theirs = rows("xcrepo"), rows("jain16")
    columns = list(dict.fromkeys([*block["expected"].str.extract(r"the row of ([^,]+)")[0], *theirs]))
    table = [[name, *(_largest_difference(mine[name], theirs[other]) for other in columns)] for name in block["row"]]
    return pd.DataFrame(table, columns=["page", *columns])


def _largest_difference(a: pd.Series, b: pd.Series) -> float:
    """Of two rows, in percent of the greater number."""
    b = b.reindex(a.index)
    return float((100 * (a - b).abs() / a.where(a > b, b)).max())


def plot_displaced(matrix: pd.DataFrame, ax=None) -> Figure:
    """Which row of the page is which row of jain16: dark where two rows agree; a ring where both have the same name.

    Parameters
    ----------
    matrix : DataFrame
        Of :func:`compute_displaced`.
    ax : Axes, optional
        The caller's own.
    """
    names, methods = matrix["page"].tolist(), list(matrix.columns[1:])
    with figures.new(looks.MEDIUM, 4.8, ax=ax) as (fig, ax):
        shown = ax.imshow(matrix[methods].to_numpy(), cmap="Blues_r", vmin=0, vmax=25, aspect="auto")
        same = [(methods.index(name), i) for i, name in enumerate(names) if name in methods]
        ring = {"s": 110, "facecolors": "none", "edgecolors": looks.AMBER, "linewidths": 1.8}
        ax.scatter(*zip(*same, strict=True), **ring, label="_guide: the same name")
        figures.draws(ax, y=methods)
        ax.set_xticks(range(len(methods)), methods, rotation=45, ha="right")
        ax.set_yticks(range(len(names)), names)
        ax.set_xlabel("row of jain16, table 3a")
        ax.set_ylabel("row of the page")
        ax.grid(visible=False)
        looks.title(
            fig,
            "EURLex-4K: rows of the page against rows of jain16\nrings: the same name; dark: nearly the same numbers",
        )
        fig.colorbar(shown, label="greatest difference of PSP, PSN (%)", extend="max")
        return fig
