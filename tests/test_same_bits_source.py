"""What differs from processor to processor is not used where a number decides another: refused by name, place by place.

By name a test cannot see whether a product is of sparse matrices (SciPy's own loops, the same everywhere) or of dense ones
(BLAS). So each ``@`` that stays, and each function of SciPy, is an entry of ``ALLOWED`` with its reason.
"""

from __future__ import annotations

import ast
import functools

import pytest

ROOMS = ("core", "models", "repro/inputs", "tools/diagnose", "tools/formats", "tools/scale")
"""Rooms and files in which nothing of this stands."""
DRAWS_ONLY = ("repro/papers", "repro/published", "tools/reports", "tools/scale", "tools/course")
"""Here only what draws: their other numbers decide nothing, and are written with six digits."""

SUMS = {
    "dot", "matmul", "einsum", "vdot", "inner", "tensordot", "convolve", "correlate", "corrcoef", "cov", "polyfit", "polyval",
}  # fmt: skip
C_LIBRARY = {
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power", "pow", "float_power", "logaddexp", "logaddexp2", "cbrt",
    "hypot", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arctan2", "arcsinh", "arccosh",
    "arctanh", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma", "sinc", "i0",
    "geomspace", "logspace", "linalg", "fft",
}  # fmt: skip
DRAWS = {
    "normal", "standard_normal", "lognormal", "multivariate_normal", "poisson", "binomial", "negative_binomial", "multinomial",
    "beta", "gamma", "standard_gamma", "dirichlet", "exponential", "standard_exponential", "geometric", "hypergeometric",
    "laplace", "logistic", "gumbel", "weibull", "pareto", "rayleigh", "chisquare", "f", "standard_t", "standard_cauchy",
    "triangular", "vonmises", "wald", "zipf", "logseries",
}  # fmt: skip

SPARSE = {
    "repro/inputs/twin_statistics.py": ("_companions", "_alike", "_features"),
    "core/hierarchy.py": ("ancestors",),
    "core/metrics/coverage.py": ("_Similarity.__init__",),
    "core/metrics/significance.py": ("_Together.alike",),
    "core/propensity.py": ("estimate_from_hierarchy",),
    "models/classic/algebra.py": ("ridge", "clusters"),
    "models/classic/embedding.py": ("_Embedding", "CPLST", "MLCSSP", "LEML", "CS"),
    "models/classic/neighbours.py": ("_OfNeighbours", "KNN", "SLEEC", "LPSR", "embedding", "sparse_map"),
    "models/classic/sparse_linear.py": ("_SparseLinear", "largest_square", "proximal"),
    "models/fastxml.py": ("PfastreXML._fit",),
    "models/linear.py": ("OneVsRest._predict",),
    "models/networks/clustered.py": ("soft_labels", "backpropagate", "_targets", "_open", "_first_shares", "_hand_over",
                                     "backpropagate_shares"),
    "models/networks/graph.py": ("GraphTowers._fit", "propagated"),
    "models/networks/neural.py": ("backpropagate", "_hidden"),
    "models/networks/two_towers.py": ("TwoTowers._words_of_labels",),
}  # fmt: skip
"""File -> functions whose products are of sparse matrices."""
TILE = "the register tile is an intrinsic: LLVM's instructions, no library"
ALLOWED = {
    **{(file, function, "@"): "sparse" for file, functions in SPARSE.items() for function in functions},
    **{("core/kernels/tiles.py", "", f"numba.{part}"): TILE for part in ("types", "core", "extending")},
    (
        "core/distributions.py",
        "",
        "scipy.special",
    ): "the laws of statistics, each rounded to ten digits before it is used",
    ("core/accumulators/sums.py", "Adder.add", "@"): "whole numbers, whose sums are exact in any order",
    ("core/metrics/replicates.py", "_Pairs._smooth", "@"): "sparse, and whole numbers",
    (
        "core/metrics/labelwise.py",
        "best_macro_f1",
        "scipy.optimize",
    ): "the optimum of a linear program, rounded to ten digits",
}
"""File, function, what it uses: why that may stay. The one list of what is not computed to the bit by code of the kit."""


def places(tree: ast.Module, draws_only: bool = False) -> list[tuple[str, str, int]]:
    """(function, what, line) of everything that is refused."""
    found = []

    def visit(node: ast.AST, within: str) -> None:
        found.extend((within, what, node.lineno) for what in refused(node, draws_only))
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            within = f"{within}.{node.name}".lstrip(".")
        for child in ast.iter_child_nodes(node):
            visit(child, within)

    visit(tree, "")
    return found


def refused(node: ast.AST, draws_only: bool) -> list[str]:
    """What of this one node is refused."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DRAWS:
        drawn_from = ast.unparse(node.func.value)
        if drawn_from.endswith(("rng", "generator")) or "default_rng(" in drawn_from or drawn_from == "np.random":
            return [f"draw {node.func.attr}"]
    if draws_only:
        return []
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
        return ["@"]
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
        base, exponent = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        return [] if exact_power(base, exponent) else [f"** in {ast.unparse(node)}"]
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np", "numpy", "math"):
        return [f"{node.value.id}.{node.attr}"] if node.attr in SUMS | C_LIBRARY else []
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        # .dot of anything; what is called by a bare name is refused where it is imported.
        found = [name] if name in ("dot", "prange") or (isinstance(node.func, ast.Name) and name == "pow") else []
        return found + [key.arg for key in node.keywords if key.arg in ("fastmath", "parallel")]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if foreign(alias.name)]
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        plain = [n for n in names if n.partition(".")[0] in ("math", "numpy") and n.split(".")[-1] in SUMS | C_LIBRARY]
        # `from scipy import special` and `from scipy.special import ndtr` are both of scipy.special.
        return plain + sorted({".".join(n.split(".")[:2]) for n in names if foreign(n)})
    return []


def foreign(module: str) -> bool:
    """Of SciPy everything but sparse matrices without their linear algebra, of numba nothing."""
    parts = module.split(".")
    return parts[0] == "numba" or (parts[0] == "scipy" and (parts[1:2] != ["sparse"] or "linalg" in parts))


def exact_power(base: ast.expr, exponent: ast.expr) -> bool:
    """A square, which NumPy and numba multiply; a power of two; whole numbers."""
    if isinstance(exponent, ast.Constant) and exponent.value == 2 and not isinstance(exponent.value, float):
        return True
    if not isinstance(base, ast.Constant):
        return False
    whole = [node for node in ast.walk(exponent) if isinstance(node, ast.Constant)]
    if any(isinstance(node.value, float) for node in whole):
        return False
    return isinstance(base.value, int) or base.value in (2.0, 4.0, 0.5)


def files(root, room):
    home = root / "xcrepro" / room
    return sorted(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]


@functools.cache
def found_in(root, room, draws_only=False):
    """(file, function, what, line) of a room."""
    found = []
    for path in files(root, room):
        file = path.relative_to(root / "xcrepro").as_posix()
        found += [(file, *place) for place in places(ast.parse(path.read_text()), draws_only)]
    return found


def entry_of(file, within, what):
    """The entry that allows it: of its function, or of one around it."""
    names = within.split(".")
    keys = [(file, ".".join(names[:n]), what) for n in range(1, len(names) + 1)]
    return next((key for key in keys if key in ALLOWED), None)


def complain(found):
    wrong = [f"xcrepro/{file}:{line}: {what} in {within or 'the module'}" for file, within, what, line in found]
    assert not wrong, "differs from processor to processor (CONTRIBUTING, Kernels):\n" + "\n".join(wrong)


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_that_differs_decides_a_number(root, room):
    # The decorator of all kernels.
    own = {(f"core/kernels/{file}.py", "numba") for file in ("cache", "compiled")}
    own.add(("core/kernels/insides.py", "numba.core"))
    complain(at for at in found_in(root, room) if entry_of(*at[:3]) is None and (at[0], at[2]) not in own)


@pytest.mark.parametrize("room", DRAWS_ONLY)
def test_nothing_is_drawn_by_the_c_library(root, room):
    complain(found_in(root, room, draws_only=True))


def test_every_exception_is_still_there(root):
    used = {entry_of(*at[:3]) for room in ROOMS for at in found_in(root, room)}
    assert set(ALLOWED) <= used


def test_kernel_files_import_no_other_kernel_file_but_three(root):
    for path in [*files(root, "core/kernels"), *files(root, "models/kernels")]:
        names = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("xcrepro"):
                names |= {f"{node.module}.{alias.name}".removeprefix("xcrepro.core.kernels.") for alias in node.names}
        if path.stem in ("__init__", "cache", "compiled", "insides", "interpreted", "narrow"):
            continue  # the decorator of all kernels
        allowed = {"kernel", "interpreted", "elementary", "random", "tiles"}
        assert {name.split(".")[0] for name in names} <= allowed, path


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("a @ b", ["@"]),
        ("a @= b", ["@"]),
        ("np.exp(x)", ["np.exp"]),
        ("np.linalg.solve(a, b)", ["np.linalg"]),
        ("np.add.reduce(np.log(x))", ["np.log"]),
        ("a.dot(b)", ["dot"]),
        ("math.log(3)", ["math.log"]),
        ("math.floor(np.sqrt(x))", []),
        ("from math import exp, floor", ["math.exp"]),
        ("from scipy import special, sparse", ["scipy.special"]),
        ("from scipy.special import ndtr", ["scipy.special"]),
        ("from scipy.sparse import csr_matrix", []),
        ("from scipy.sparse import linalg", ["scipy.sparse"]),
        ("import numba", ["numba"]),
        ("from numba import njit, prange", ["numba.njit", "numba.prange"]),
        ("kernel(fastmath=True)(f)", ["fastmath"]),
        ("x ** 2 + 2.0 ** -n + 10 ** 9 + 2 ** 63", []),
        ("x ** 2.0", ["** in x ** 2.0"]),
        ("x ** n", ["** in x ** n"]),
        ("x **= 3", ["** in x **= 3"]),
        ("2.0 ** (n / 2.0)", ["** in 2.0 ** (n / 2.0)"]),
        ("pow(x, y)", ["pow"]),
        ("rng.normal(size=3) + rng.random(3)", ["draw normal"]),
        ("np.random.default_rng(0).poisson(3)", ["draw poisson"]),
        ("kernel.poisson(3)", []),
    ],
)
def test_the_scan_sees(source, what):
    assert [found for _, found, _ in places(ast.parse(source))] == what
