"""The package with the four libraries that it requires, and nothing else that is installed here."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib

import pytest

from maintenance import environment
from xcrepro.core import extras


def python_with(*libraries: str, root, site):
    """``run(words)`` runs Python that sees these libraries, what they require, and the package."""
    waiting, done = [*libraries], set()
    for name in waiting:
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another system
        done.add(name)
        for file in found.files:
            first = file.parts[0]
            if first not in ("..", "__pycache__") and not (site / first).exists():
                (site / first).symlink_to(found.locate_file(first))
        required = [text for text in found.requires or [] if "extra ==" not in text]
        waiting += {re.match(r"[A-Za-z0-9._-]+", text)[0] for text in required} - {*waiting}
    assert set(libraries) <= done
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XCREPRO_")}

    def run(*words: str, status: int = 0) -> str:
        # -S: without this environment's site-packages
        made = subprocess.run(
            [sys.executable, "-S", *words],
            env={**kept, "PYTHONPATH": f"{site}{os.pathsep}{root}"},
            cwd=site,
            capture_output=True,
            text=True,
            timeout=3600,
        )
        assert made.returncode == status, made.stdout + made.stderr
        return made.stdout + "".join(line for line in made.stderr.splitlines(True) if "compiling what" not in line)

    return run


@pytest.fixture(scope="module")
def four(root, tmp_path_factory):
    return python_with("numpy", "scipy", "numba", "pandas", root=root, site=tmp_path_factory.mktemp("four"))


WITHOUT_NUMBA = """
import sys
import numpy as np
import xcrepro as xc
rng = np.random.default_rng(0)
scores = rng.random((60, 20)).astype(np.float32) ** 3
Y = (rng.random((60, 20)) < scores).astype(np.float32)
X = (rng.random((60, 9)) * (rng.random((60, 9)) < 0.5)).astype(np.float32)
one, two = xc.TopK.from_scores(scores, 5), xc.TopK.from_scores(scores[:, ::-1] + scores, 5).head(3)
two = xc.TopK(two.ids, np.clip(two.scores, 0, 1), 20)
weights = xc.propensity.inverse(Y.sum(axis=0), 60, 0.55, 1.5)
names = ["P", "nDCG", "PSP", "macro-F1", "ECE"]
tables = [xc.evaluate(Y, one, (1, 3), metrics=names, inverse_propensity=weights, confidence_level=0.95),
          xc.compare(Y, {"one": one, "two": two}, ks=(1, 3), metrics=["P", "macro-F1", "ECE"])]
for table in tables:
    print([value.hex() for value in table.select_dtypes("number").to_numpy(np.float64).ravel().tolist()])
for how in ("isotonic", "platt", "beta"):
    print(xc.calibrate.cross_fit_top(Y, one, how).scores.tobytes().hex())
for model in (xc.models.PLT(trees=1), xc.models.OneVsRest(), xc.models.FastXML(trees=2), xc.models.PfastreXML(trees=1),
              xc.models.CPLST(components=3)):
    top = model.fit(X, Y).predict(X, 3)
    print(top.ids.tobytes().hex(), top.scores.tobytes().hex())
print("numba" in sys.modules)
"""


def test_without_numba_each_value_has_the_same_bits(four, root, tmp_path):
    """And those of models, whose kernels reckon in float32."""
    three = python_with("numpy", "scipy", "pandas", root=root, site=tmp_path)
    quietly = "-W", "ignore", "-c", WITHOUT_NUMBA
    *with_it, known = four(*quietly).splitlines()
    *without, unknown = three(*quietly).splitlines()
    assert (known, unknown) == ("True", "False")
    assert len(without) == 10
    assert without == with_it


def test_without_numba_large_data_are_told_what_helps(root, tmp_path):
    three = python_with("numpy", "scipy", "pandas", root=root, site=tmp_path)
    code = """
import numpy as np
from xcrepro.core.kernels import interpreted, tiles
interpreted.Interpreted.given = 2**26
A = np.ones((4, 4))
tiles.product(A, A, np.empty((4, 4)))
tiles.product(A, A, np.empty((4, 4)))
"""
    assert three("-c", code).count("pip install numba") == 1


def test_loading_models_metrics_and_decisions_need_no_more(four):
    """And a report says what it needs."""
    code = """
import sys
import xcrepro as xc
ds = xc.load("tib", points=500)
top = xc.models.PLT(trees=1).fit(ds.train.X, ds.train.Y).predict(ds.test.X, k=5)
other = xc.models.Popularity().fit(ds.train.X, ds.train.Y).predict(ds.test.X, k=5)
table = xc.evaluate(ds.test.Y, {"PLT": top, "Popularity": other}, (1, 5), metrics=["P", "PSP", "ECE"], confidence_level=0.95,
                    inverse_propensity=xc.propensity.inverse(ds.label_counts, ds.n_train, ds.A, ds.B))
compared = xc.compare(ds.test.Y, {"PLT": top, "Popularity": other}, ks=(5,), metrics=["P"])
calibrated = xc.calibrate.cross_fit_top(ds.test.Y, top, "isotonic")
print(len(table), len(compared), calibrated.k)
print(sorted(name for name in ("matplotlib", "sklearn", "IPython", "papermill", "tqdm") if name in sys.modules))
try:
    xc.report(ds.test.Y, {"one": top})
except ImportError as error:
    print(type(error).__name__, error)
"""
    *_, counts, loaded, report = four("-c", code).splitlines()
    assert (counts, loaded) == ("12 1 5", "[]")
    assert "LibraryMissing matplotlib is not installed: pip install 'xcrepro[report]'" in report


@pytest.mark.parametrize(
    ("words", "module", "extra"),
    [
        (("report", "--help"), None, None),
        (("run", "jain16/table1_gains"), "filelock", "notebooks"),
        (("fetch", "eurlex-4k"), "napkinxc", "download"),
        (("cache", "ls"), None, None),
    ],
)
def test_a_command_names_the_extra_that_it_lacks(four, words, module, extra):
    said = four("-m", "xcrepro", *words, status=2 if module else 0)
    assert "Traceback" not in said
    if module:
        assert re.search(rf"{module} is not installed: pip install 'xcrepro\[{extra}\]'", said), said


def test_every_library_is_brought_by_the_extra_that_is_named(root):
    names = {"sklearn": "scikit-learn", "yaml": "pyyaml", "sphinx_revealjs": "sphinx-revealjs"}
    # These come with what an extra names.
    brought = {"IPython": "jupyterlab", "nbclient": "papermill", "nbconvert": "jupyterlab", "nbformat": "papermill"}
    for module, extra in extras.BROUGHT_BY.items():
        wanted = environment.requirements(root / "pyproject.toml", extra)
        assert names.get(module, brought.get(module, module)) in wanted, (module, extra)


def test_the_package_requires_the_four(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert [re.match(r"[a-z]+", text)[0] for text in project["dependencies"]] == ["numba", "numpy", "pandas", "scipy"]


def test_a_fault_inside_of_a_library_is_not_called_its_absence(tmp_path, monkeypatch):
    (tmp_path / "distributed.py").write_text("import a_module_that_is_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "distributed", raising=False)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        extras.library("distributed")
