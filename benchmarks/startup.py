"""What has to pass before the first number: imports, the first call in a new process, compiling every kernel."""

from __future__ import annotations

import contextlib
import importlib
import json
import pkgutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.metrics import clock, installed, new_process, row, without_number

IMPORTS = "importing, in a new process"
FIRST = "importing and the first P@5 of 100 rows, in a new process"
KERNELS = "every kernel of xcrepro/core/kernels, in a new process"

# who -> (module that must be there, what to import)
_IMPORTS = {
    "xcrepro": ("xcrepro", "import xcrepro"),
    "xcrepro.TopK and .metrics (numba)": ("xcrepro", "import xcrepro; xcrepro.TopK; xcrepro.metrics"),
    "numba": ("numba", "import numba"),
    "napkinXC": ("napkinxc", "from napkinxc import metrics"),
    "xCOLUMNs": ("xcolumns", "import xcolumns.metrics, xcolumns.weighted_prediction"),
    "ranx": ("ranx", "import ranx"),
    "scikit-learn": ("sklearn", "import sklearn.metrics"),
}

# who -> (module, compiles kernels?, code). 100 rows of 10 scores; row i's one label, i, comes first.
_ROWS = "import numpy as np\nids = (np.arange(100)[:, None] + np.arange(10)) % 100\nvalues = np.linspace(1, 0.1, 10)\n"
_CSR = _ROWS + (
    "from scipy.sparse import csr_matrix, eye\n"
    "scores = csr_matrix((np.tile(values, 100).astype(np.float32), ids.ravel().astype(np.int32),"
    " np.arange(0, 1001, 10, dtype=np.int32)), shape=(100, 100))\n"
    "truth = csr_matrix(eye(100, dtype=np.float32))\n"
)
_FIRST_CALLS = {
    "xcrepro": (
        "xcrepro",
        True,
        _CSR + "import xcrepro as xc\nprint(xc.metrics.precision(truth, xc.TopK.from_scores(scores, 5), 5)[0])",
    ),
    "napkinXC, lists": (
        "napkinxc",
        False,
        _ROWS + "from napkinxc.metrics import precision_at_k\n"
        "pairs = [list(zip(row, values)) for row in ids.tolist()]\n"
        "print(precision_at_k([[i] for i in range(100)], pairs, 5)[4])",
    ),
    "xCOLUMNs": (
        "xcolumns",
        True,
        _CSR + "from xcolumns.metrics import precision_at_k\nfrom xcolumns.weighted_prediction import predict_top_k\n"
        "print(precision_at_k(truth, predict_top_k(scores, 5), k=5))",
    ),
    "ranx": (
        "ranx",
        True,
        _ROWS + "import warnings\nwarnings.simplefilter('ignore')\nfrom ranx import Qrels, Run, evaluate\n"
        "qrels = Qrels({str(i): {str(i): 1} for i in range(100)})\n"
        "run = Run({str(i): dict(zip(map(str, row), values.tolist())) for i, row in enumerate(ids.tolist())})\n"
        "print(evaluate(qrels, run, 'precision@5'))",
    ),
}


def wall(code: str, repeats: int, **environment: str) -> tuple[float, str]:
    """The shortest wall time of a process that runs ``code``, Python's own start included; and what it printed."""
    runs = [clock(lambda: new_process(code, **environment)) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[0][1]


def imports(python: float, repeats: int, only: tuple[str, ...] | None) -> list[dict]:
    rows = []
    reference = float("nan")
    for who, (module, code) in _IMPORTS.items():
        if only and who not in only:
            continue
        if not installed(module):
            rows.append(without_number(IMPORTS, who, "not installed"))
            continue
        seconds = wall(code, repeats)[0] - python
        reference = seconds if who == "xcrepro" else reference
        rows.append(row(IMPORTS, who, seconds, reference, code))
    return rows


@contextlib.contextmanager
def cache_of_kernels(empty: bool) -> Iterator[dict[str, str]]:
    """The variables of processes with an empty cache; or with that of this one, if nothing is to be compiled."""
    with tempfile.TemporaryDirectory() as folder:
        yield {"NUMBA_CACHE_DIR": folder} if empty else {}


def first_calls(python: float, repeats: int, only: tuple[str, ...] | None) -> list[dict]:
    rows = []
    reference = float("nan")
    for who, (module, compiles, code) in _FIRST_CALLS.items():
        if only and who not in only:
            continue
        if not installed(module):
            rows.append(without_number(FIRST, who, "not installed"))
            continue
        with cache_of_kernels(not only) as cache:
            environment = cache if compiles else {}
            cold, found = wall(code, 1, **environment)
            if not only:
                wall(code, 1, XCREPRO_INTERPRET="0", **environment)  # else ours would compile nothing for so few rows
            warm, _ = wall(code, repeats, **environment)
        if abs(float(found) - 0.2) > 1e-6:
            raise RuntimeError(f"{who}: P@5 is {found}, not 0.2")
        reference = warm - python if who == "xcrepro" else reference
        rows.append(row(FIRST, f"{who}, kernels in the cache" if compiles else who, warm - python, reference))
        if compiles:
            rows.append(row(FIRST, f"{who}, cold", cold - python, reference, "an empty kernel cache"))
    return rows


def kernels(python: float, repeats: int, only: tuple[str, ...] | None) -> list[dict]:
    code = f"from benchmarks import startup; startup.every_kernel({only!r})"
    with cache_of_kernels(not only) as cache:
        environment = cache | {"XCREPRO_INTERPRET": "0"}
        cold, printed = wall(code, 1, **environment)
        warm, printed_warm = wall(code, repeats, **environment)
    report, after = json.loads(printed), json.loads(printed_warm)
    note = "; ".join(f"{name} {seconds:.2f} s" for name, seconds in report["steps"].items())
    if report["missed"]:
        note += f"; NOT called: {', '.join(report['missed'])}"
    again = "; ".join(f"{name} {seconds:.2f} s" for name, seconds in after["steps"].items())
    return [
        row(KERNELS, "xcrepro, kernels in the cache", warm - python, warm - python, again),
        row(KERNELS, "xcrepro, compiled cold", cold - python, warm - python, note),
    ]


def _steps(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Public calls that between them need every kernel, in the types that ordinary data has."""
    import numpy as np
    from scipy.sparse import csr_matrix

    import xcrepro as xc
    from xcrepro.core.data.read import read_labels, read_sparse
    from xcrepro.core.data.write import write_sparse
    from xcrepro.core.metrics import ranking, registry

    rng = np.random.default_rng(0)
    dense = rng.random((60, 40), np.float32)
    shuffled = np.argsort(rng.random(dense.shape), axis=1).astype(np.int32)
    indptr = np.arange(0, dense.size + 1, dense.shape[1], dtype=np.int32)
    scores = csr_matrix((dense.ravel(), shuffled.ravel(), indptr), shape=dense.shape)
    truth = csr_matrix((dense > 0.9).astype(np.float32))
    # Sorted downwards and with a stored zero: it has to be tidied.
    untidy = csr_matrix((np.array([1, 1, 0], np.float32), np.array([3, 1, 5], np.int32), [0, 2, 3]), shape=(2, 40))
    two = xc.TopK.from_ids(np.array([[1, 2], [5, -1]], np.int32), n_labels=40)
    weights, full = np.linspace(1, 9, 40), np.full(60, 9.0)

    yield "TopK from CSR", lambda: xc.TopK.from_scores(scores, 5)
    yield "TopK from dense", lambda: xc.TopK.from_scores(dense, 5)
    top = xc.TopK.from_scores(dense, 5)
    yield "metrics", lambda: ranking.values(registry.names("rows"), truth, top, (1, 3, 5), weights, full)
    yield (
        "label-wise metrics",
        lambda: (
            xc.metrics.macro_f1(truth, top),
            xc.metrics.reachable(truth),
            xc.metrics.paired_bootstrap(truth, top, top, metrics=("P", "macro-F1", "ECE"), samples=20),
        ),
    )
    yield (
        "calibration metrics",
        lambda: (xc.metrics.calibration_table(truth, top), xc.metrics.marginal_ece(csr_matrix(dense), truth)),
    )
    yield (
        "calibrate",
        lambda: [xc.calibrate.cross_fit(top.scores, top.scores > 0.95, method) for method in ("isotonic", "platt")],
    )
    yield (
        "decide",
        lambda: (
            xc.decide.weighted(dense, 5, weights),
            xc.decide.expected_coverage(dense, xc.decide.greedy_coverage(dense, 5, passes=2), 5),
            xc.decide.expected_utility(dense, top, "macro-F1", exact=True),
        ),
    )
    graded = csr_matrix(truth * 2)
    yield (
        "sets, ties, graded gains, confused labels",
        lambda: (
            xc.evaluate(truth, xc.TopK.from_scores(np.round(dense, 1), 20), ties="bounds"),
            xc.metrics.cross_fit_sets(truth, top, per="label", folds=2, at_least=0),
            xc.metrics.ndcg(graded, top, gains="linear"),
            xc.metrics.confused_labels(truth, top),
        ),
    )
    yield "untidy truth", lambda: xc.metrics.precision(untidy, two, 1)
    yield "write", lambda: (xc.write_xc(folder / "a.txt", scores, truth), write_sparse(folder / "b.txt", scores))
    (folder / "unsorted.txt").write_text("2 3\n2:1 0:0.25\n1:1\n")
    yield (
        "read",
        lambda: (
            xc.read_xc(folder / "a.txt"),
            read_sparse(folder / "b.txt"),
            read_labels(folder / "b.txt"),
            read_sparse(folder / "unsorted.txt"),
        ),
    )
    yield "twin", lambda: xc.twin("bibtex", scale=0.05)
    plt = xc.models.PLT(trees=2, max_leaf=10)
    yield "PLT", lambda: (plt.fit(scores, truth).predict(scores, 3), plt.predict_coverage(scores, 3))
    yield "FastXML family", lambda: xc.models.PfastreXML(trees=2).fit(scores, truth).predict(scores, 3)
    yield "one-vs-rest", lambda: xc.models.OneVsRest().fit(scores, truth)
    yield "neural", lambda: xc.models.NeuralOneVsAll(epochs=1).fit(scores, truth).predict(scores, 3)
    yield "attention", lambda: xc.models.LabelAttention(epochs=1).fit(scores, truth).predict(scores, 3)


def every_kernel(only: tuple[str, ...] | None = None) -> None:
    """Make every kernel ready, printing JSON: seconds a step, and which kernels no step has called."""
    import warnings

    from numba.core.registry import CPUDispatcher

    import xcrepro.core.kernels
    import xcrepro.models.kernels

    seconds = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        for name, step in _steps(Path(folder)):
            if only and name not in only:
                continue
            start = time.perf_counter()
            step()
            seconds[name] = time.perf_counter() - start
    missed = []
    for room in (xcrepro.core.kernels, xcrepro.models.kernels):
        for module in pkgutil.iter_modules(room.__path__):
            kernel_file = importlib.import_module(f"{room.__name__}.{module.name}")
            for name, kernel in vars(kernel_file).items():
                if isinstance(kernel, CPUDispatcher) and not kernel.overloads:
                    missed.append(f"{module.name}.{name}")
    json.dump({"steps": seconds, "missed": sorted(missed)}, sys.stdout)


def run(quick: bool = False) -> list[dict]:
    """All three jobs. ``quick``: each once, xcrepro and little else, only the quickest kernels, nothing compiled anew."""
    repeats = 1 if quick else 5
    python, _ = wall("pass", repeats)
    return [
        *imports(python, repeats, ("xcrepro",) if quick else None),
        *first_calls(python, repeats, ("xcrepro", "napkinXC, lists") if quick else None),
        *kernels(python, repeats, ("TopK from dense",) if quick else None),
    ]
