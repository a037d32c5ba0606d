"""Who stands above whom among labels: what hierarchical metrics, and estimates of propensities, follow upwards."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from xcrepro.core.arguments import whole_number
from xcrepro.core.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Labels and what is above each of them, for :func:`xcrepro.metrics.hierarchical`.

    Make one with :meth:`from_pairs` or :meth:`from_paths`; :func:`xcrepro.formats.read_hierarchy` reads SKOS, OBO and tables.

    Attributes
    ----------
    above : csr_matrix of bool, shape (L, N)
        Row = a label, columns = itself and all that is above it. The first L of the N nodes are the labels, the others are
        nodes that are no labels themselves. That of the root is empty.
    root : str
        The node that was left out, because it is above all others and no label. Empty if there is none.

    Examples
    --------
    >>> animals = Hierarchy.from_pairs([("poodle", "dog"), ("dog", "animal"), ("cat", "animal")], ["dog", "poodle", "cat"])
    >>> animals.root, animals.above.toarray().astype(int).tolist()
    ('animal', [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]])
    """

    above: sparse.csr_matrix
    root: str = ""

    @property
    def n_labels(self) -> int:
        """L."""
        return self.above.shape[0]

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple], labels: int | Sequence[str], *, levels: int | None = None) -> Hierarchy:
        """Take pairs (child, parent).

        Parameters
        ----------
        pairs : iterable of (child, parent)
            A child may have several parents. A parent that is empty, None or -1 says that nothing is above the child. If
            no pair says so, and only one node has nothing above it, and this node is no label, then it is the root and
            counts for nothing: it would give every prediction credit.
        labels : int or sequence of str
            L, and then nodes are whole numbers, those from L on no labels; or the names of the labels, and then nodes are
            names, and others than these no labels.
        levels : int, optional
            How many levels above a label count, 1 or more; all by default.

        Raises
        ------
        ArgumentError
            For a cycle, which is named, for pairs without any label, a name that two labels have, and what is no pair.
        """
        nodes: dict = {}
        if isinstance(labels, Sequence):
            nodes = {name: label for label, name in enumerate(labels)}
            n_labels = whole_number("labels", len(nodes), 1)
            if len(labels) != n_labels:
                name = next(name for label, name in enumerate(labels) if nodes[name] != label)
                raise ArgumentError("labels", "must name each label once", f"{name!r} twice")
        else:
            n_labels = whole_number("labels", labels, 1)
        found, tops = [], False
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2:
                raise ArgumentError("pairs", "must be (child, parent) each", repr(pair))
            child, parent = pair
            tops |= (top := parent is None or parent in ("", -1))
            if isinstance(labels, Sequence):
                child, parent = (nodes.setdefault(name, len(nodes)) for name in (child, child if top else parent))
            if not top:
                found.append((whole_number("pairs", child), whole_number("pairs", parent)))
        edges = np.array(found, np.int64).reshape(-1, 2)
        if not (edges[:, 0] < n_labels).any():
            got = f"none of {len(edges):,} pairs has a label as its child"
            raise ArgumentError("pairs", "must say what is above some label", got, "are they spelt as the labels are?")
        size = max(int(edges.max()) + 1, n_labels, len(nodes))
        names = [*nodes] or [*map(str, range(size))]
        highest = np.setdiff1d(edges[:, 1], edges[:, 0])
        root = -1 if tops or highest.size != 1 or highest[0] < n_labels else int(highest[0])
        all_above = ancestors(edges[edges[:, 1] != root], size, levels, names) + sparse.identity(size, bool, "csr")
        above = all_above[:n_labels]
        above.sort_indices()
        return cls(above, names[root] if root >= 0 else "")

    @classmethod
    def from_paths(cls, labels: Sequence[str], separator: str = " -- ", *, levels: int | None = None) -> Hierarchy:
        """Take names that are paths, such as ``England -- Social life and customs -- Fiction``: above it are
        ``England -- Social life and customs`` and ``England``, whether or not these are labels.

        Parameters
        ----------
        labels : sequence of str
            The names of the L labels.
        separator : str
        levels : int, optional
            As for :meth:`from_pairs`.

        Raises
        ------
        ArgumentError
            If no name holds the separator.

        Examples
        --------
        >>> Hierarchy.from_paths(["England -- Fiction", "England -- History", "Love"]).above.toarray().astype(int).tolist()
        [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]]
        """
        if not separator or not any(separator in name for name in labels):
            raise ArgumentError(
                "separator", "must be part of some label's name", repr(separator), "names without levels have none"
            )
        pairs: dict[tuple[str, str], None] = {}
        for name in labels:
            parts = name.split(separator)
            ends = [separator.join(parts[:end]) for end in range(len(parts), -1, -1)]
            pairs |= dict.fromkeys(itertools.pairwise(ends))
        return cls.from_pairs(pairs, labels, levels=levels)

    def packed(self) -> np.ndarray:
        """Everything but the root's name as one array of int64."""
        return np.concatenate([self.above.shape, self.above.indptr, self.above.indices]).astype(np.int64)

    @classmethod
    def unpacked(cls, array: np.ndarray) -> Hierarchy:
        """What :meth:`packed` gave; ValueError for what it cannot have given."""
        n_labels, n_nodes = array[:2].tolist()
        ends, indices = array[2 : n_labels + 3], array[n_labels + 3 :]
        above = sparse.csr_matrix((np.ones(indices.size, bool), indices, ends), shape=(n_labels, n_nodes))
        above.check_format()
        return cls(above)


def ancestors(parents, n_labels: int, levels: int | None = None, names: Sequence[str] = ()) -> sparse.csr_matrix:
    """Who stands above whom in a hierarchy of labels.

    Parameters
    ----------
    parents : array_like of int, shape (L,) or (m, 2)
        The label above, -1 for none; or (child, parent) pairs.
    n_labels : int
    levels : int, optional
        How many levels upwards; all by default.
    names : sequence of str
        What an error calls labels.

    Returns
    -------
    csr_matrix of bool, shape (L, L)
        Row = a label, columns = all labels above it.

    Raises
    ------
    ArgumentError
        For parents that are no labels or form a circle, which is named.

    Examples
    --------
    >>> ancestors([-1, 0, 1], 3).toarray().astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    >>> ancestors([-1, 0, 1], 3, levels=1).toarray().astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    """
    if levels is not None:
        whole_number("levels", levels, 1)
    given = np.asarray(parents)
    if given.size == 0:
        given = np.zeros(given.shape, np.int64)  # nobody above anybody: no matter what nothing is made of
    if given.dtype.kind not in "iu":
        raise ArgumentError("parents", "must be whole numbers", f"dtype {given.dtype}")
    if given.ndim == 1 and given.size == n_labels:
        children = np.flatnonzero(given != -1)
        above = given[children]
    elif given.ndim == 2 and given.shape[1] == 2:
        children, above = given.T
    else:
        rule = f"must be {n_labels} labels (-1: none), or (child, parent) pairs"
        raise ArgumentError("parents", rule, f"shape {given.shape}")
    for end, labels in (("child", children), ("parent", above)):
        bad = (labels < 0) | (labels >= n_labels)
        if bad.any():
            raise ArgumentError("parents", f"must name labels 0 to {n_labels - 1}", f"the {end} {labels[bad][0]}")
    up = sparse.csr_matrix((np.ones(children.size, bool), (children, above)), shape=(n_labels, n_labels))
    _, circle = sparse.csgraph.connected_components(up, connection="strong")
    looped = children[circle[children] == circle[above]]
    if looped.size:
        path = [int(looped[0])]
        while path[-1] not in path[:-1]:
            path.append(next(int(each) for each in up[path[-1]].indices if circle[each] == circle[path[0]]))
        said = " -> ".join(names[each] if names else f"label {each}" for each in path[path.index(path[-1]) :])
        raise ArgumentError("parents", "must not lead back to where they came from", said)
    found = step = up
    while step.nnz and (levels is None or levels > 1):
        step = step @ up
        found, levels = found + step, None if levels is None else levels - 1
    return found
