"""The repository's own text: labels, features or scores with a header of two numbers, or labels and features with three."""

from __future__ import annotations

import os
import re

from scipy import sparse

from xcrepro.core.data import read, write
from xcrepro.core.predictions import TopK
from xcrepro.core.truth import as_truth
from xcrepro.tools.formats.entries import of_file, ranked
from xcrepro.tools.formats.index import Index


def sniff(name: str, head: bytes) -> bool:
    """Whether the first line that is no comment is a header."""
    return _header(head) in (2, 3) and not _is_table(head)


def _is_table(head: bytes) -> bool:
    """Whether the next line is numbers alone as well, as many: a table without a header, which no file with ids is."""
    lines = [line.split() for line in head.split(b"\n")[:20] if line.strip() and not line.startswith(b"#")]
    return (
        len(lines) > 1
        and len(lines[1]) == len(lines[0])
        and all(re.fullmatch(rb"[-+\d.eE]+", cell) for cell in lines[1])
    )


def _header(head: bytes) -> int:
    """How many numbers the header has; 0 where there is none."""
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if not line.startswith(b"#"):
            tokens = line.split(b"#")[0].split()
            return len(tokens) if all(token.isdigit() for token in tokens) else 0
    return 0


def holds(head: bytes) -> tuple[str, ...]:
    """What such a file may hold."""
    return ("truth", "predictions", "features") if _header(head) == 2 else ("dataset", "truth", "features")


def read_dataset(path: str | os.PathLike, index: Index) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Features and labels."""
    return read.read_xc(path, n_features=index.n_features, n_labels=index.n_labels, one_based=index.one_based)


def read_truth(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """The labels of a label file, or of a file that has features beside them."""
    if str(path).endswith(".npz") or "dataset" in holds(_head(path)):
        return read_dataset(path, index)[1]
    return read.read_labels(path, n_labels=index.n_labels, one_based=index.one_based)


def read_predictions(path: str | os.PathLike, index: Index, k: int | None) -> TopK:
    """The best of a score matrix."""
    scores = read.read_sparse(path, one_based=index.one_based)
    with of_file(path):
        return ranked(scores, k)


def read_features(path: str | os.PathLike, index: Index) -> sparse.csr_matrix:
    """Features, of a file of their own or of one that has labels beside them."""
    if str(path).endswith(".npz") or "dataset" in holds(_head(path)):
        return read_dataset(path, index)[0]
    return read.read_sparse(path, n_columns=index.n_features, one_based=index.one_based)


def write_dataset(path: str | os.PathLike, X, Y, index: Index) -> None:
    """One file of the old format."""
    write.write_xc(path, X, Y)


def write_truth(path: str | os.PathLike, Y, index: Index) -> None:
    """A label file of the new format."""
    write.write_sparse(path, as_truth(Y).to_csr())


def write_predictions(path: str | os.PathLike, top: TopK, index: Index) -> None:
    """A score matrix of the new format."""
    write.write_sparse(path, top.to_csr())


def write_features(path: str | os.PathLike, X, index: Index) -> None:
    """A feature file of the new format."""
    write.write_sparse(path, X)


def _head(path: str | os.PathLike) -> bytes:
    from xcrepro.tools.formats import head_of

    return head_of(path)
