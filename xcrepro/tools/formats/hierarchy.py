"""Hierarchies of labels: SKOS in Turtle, RDF/XML or N-Triples, OBO, tables of children and parents, names that are paths."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from xcrepro.core.data.lines import shown, text_lines
from xcrepro.core.data.names import LabelNames
from xcrepro.core.data.sources import open_source
from xcrepro.core.errors import ArgumentError, DataError, DataMissing
from xcrepro.core.extras import library
from xcrepro.core.hierarchy import Hierarchy

_RDF = (
    (rb"\s*<\?xml|\s*<rdf:", "xml"),
    (rb"\s*<[^>\s]+>\s+<", "nt"),
    (rb"\s*(#|@prefix|@base|prefix |base )", "turtle"),
)
_PARENTS = "parent", "parents", "parent_id", "broader", "above"
_CHILDREN = "child", "label", "name", "id", "code", "narrower", "concept"


def read_hierarchy(
    path: str | os.PathLike, label_names: LabelNames | Sequence[str], *, levels: int | None = None
) -> Hierarchy:
    """Read what is above each label.

    Parameters
    ----------
    path : path_like
        One of these, as its content tells; plain or packed.

        - SKOS as Turtle, RDF/XML or N-Triples, as Annif and EuroVoc have it: ``broader`` and ``narrower``; labels are called
          by URI, notation or preferred label, whichever names most of them. It needs rdflib (``xcrepro[formats]``).
        - OBO: ``is_a`` of each ``[Term]``; labels are called by id or name.
        - A table (tabs, semicolons or commas) with a child and its parent in each line, in this order unless a header such as
          ``parent,child`` says otherwise; a parent may be empty.
        - Lines of a parent and its children, as ``taxonomy.txt`` of OAXMLC (with blanks between) and of hierarchical text
          classification: if some line has more than two cells, or the first is ``root``.

        If there is no such file: what separates the levels in the labels' names, such as ``" -- "``.
    label_names : LabelNames or sequence of str
        The names of the L labels, with their codes if they have some.
    levels : int, optional
        How many levels above a label count; all by default.

    Returns
    -------
    Hierarchy

    Raises
    ------
    DataError, DataMissing, LibraryMissing
        For a file without pairs, one that seems to have parents first, no file, and SKOS without rdflib.
    ArgumentError
        As :meth:`xcrepro.Hierarchy.from_pairs` says.

    Examples
    --------
    >>> read_hierarchy(" -- ", ["England -- Fiction", "England"]).above.toarray().astype(int).tolist()
    [[1, 1], [0, 1]]
    """
    names = label_names if isinstance(label_names, LabelNames) else LabelNames(tuple(label_names))
    if not os.path.exists(path):
        separator = os.fspath(path)
        if not any(separator in name for name in names.names):
            there = f"{separator}: there is no such file"
            raise DataMissing(f"{there}, and no label's name has this in it to separate levels")
        return Hierarchy.from_paths(names.names, separator, levels=levels)
    with open_source(path) as stream:
        head = stream.read(4096).removeprefix(b"\xef\xbb\xbf")
    rdf = next((form for start, form in _RDF if re.match(start, head, re.IGNORECASE)), None)
    if rdf is not None:
        pairs, spellings = _skos(path, rdf)
    elif re.search(rb"^(\[Term\]|format-version:)", head, re.MULTILINE):
        pairs, spellings = _obo(path)
    else:
        pairs, spellings = _table(path), {}
    if not pairs:
        raise DataError(path, "no label with another above it", "pairs of a label and its parent")
    spelt = max(
        spellings.values(), key=lambda texts: len({names.id(text) for text in texts.values()} - {None}), default={}
    )

    def label(node: str) -> str:
        """A label's name, or what the file calls a node that is none."""
        found = names.id(node)
        found = names.id(spelt.get(node, node)) if found is None else found
        return node if found is None else names.names[found]

    known = {node: label(node) if node else "" for pair in pairs for node in pair}
    named = [(known[child], known[parent]) for child, parent in pairs]
    try:
        return Hierarchy.from_pairs(named, names.names, levels=levels)
    except ArgumentError as error:
        if error.argument not in ("pairs", "parents"):
            raise
        raise DataError(path, str(error.got), f"pairs, which {error.rule}", do=error.do) from error


def _skos(path: str | os.PathLike, form: str) -> tuple[list[tuple[str, str]], dict[str, dict[str, str]]]:
    """Pairs of URIs; and by what labels may be called, URI -> text: notation, and preferred label in each language."""
    rdflib, graph = library("rdflib", "or give a table of children and parents"), None
    skos = rdflib.Namespace("http://www.w3.org/2004/02/skos/core#")
    with open_source(path) as stream:
        try:
            graph = rdflib.Graph().parse(data=stream.read(), format=form)
        except Exception as error:  # each of its parsers has its own
            raise DataError(path, f"what rdflib cannot read ({error})", f"RDF ({form})") from error
    pairs = [(str(child), str(parent)) for child, parent in graph.subject_objects(skos.broader)]
    pairs += [(str(child), str(parent)) for parent, child in graph.subject_objects(skos.narrower)]
    spellings = {"notation": {str(node): str(text) for node, text in graph.subject_objects(skos.notation)}}
    for node, text in graph.subject_objects(skos.prefLabel):
        spellings.setdefault(f"label {text.language}", {})[str(node)] = str(text)
    return sorted({*pairs}), spellings


def _obo(path: str | os.PathLike) -> tuple[list[tuple[str, str]], dict[str, dict[str, str]]]:
    """Pairs of ids, and id -> name."""
    pairs, called, here, term = [], {}, "", False
    for _, text in text_lines(path):
        key, _, value = (part.strip() for part in text.partition(":"))
        if text.startswith("["):
            term, here = text.strip() == "[Term]", ""
        elif term and key == "id":
            here = value
        elif term and key == "name":
            called[here] = value
        elif term and key == "is_a":
            pairs.append((here, re.split(r"\s*[{!]", value)[0].strip()))
    return pairs, {"name": called}


def _table(path: str | os.PathLike) -> list[tuple[str, str]]:
    """Pairs (child, parent); the parent of a line with one cell is empty."""
    lines = [(number, text) for number, text in text_lines(path) if text.strip()]
    separator = next((one for one in "\t;," if any(one in text for _, text in lines)), " ")
    rows = [[cell.strip() for cell in row] for row in csv.reader([text for _, text in lines], delimiter=separator)]
    header = [cell.casefold() for cell in rows[0]] if rows else []
    both = (_PARENTS, _CHILDREN)
    parent, child = (next((header.index(name) for name in known if name in header), -1) for known in both)
    if parent >= 0 and child >= 0:
        return _checked(path, [(row[child], row[parent]) for row in rows[1:] if len(row) > max(parent, child)])
    if header and (header[0] == "root" or any(len(row) > 2 for row in rows)):
        said = {child for row in rows for child in row[1:]}
        if separator == " " and (stray := next((row[0] for row in rows[1:] if row[0] not in said), None)):
            raise DataError(path, f"{shown(stray)} below nothing", "tabs between names, or a parent and its children")
        return _checked(path, [(below, row[0]) for row in rows for below in row[1:] if below])
    pairs = _checked(path, [(row[0], row[1] if len(row) > 1 else "") for row in rows])
    below, above = (Counter(one) for one in zip(*[pair for pair in pairs if pair[1]] or [("", "")], strict=True))
    if max(below.values()) > 1 and max(above.values()) == 1:
        found = f"{shown(max(below, key=below.__getitem__))} below several parents, and no parent above two children"
        do = "A first line `parent,child` turns them round"
        raise DataError(path, found, "a child and its parent in each line", do=do)
    return pairs


def _checked(path: str | os.PathLike, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    found = [*pairs]
    if any(not child for child, _ in found):
        raise DataError(path, "a line without a child", "a child and its parent in each line")
    return found
