"""What networks, trees and linear models learn and predict has the same bits on another processor, on any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_features__

_RUN = """
import hashlib, sys
import numpy as np
import xcrepro as xc

data, models = xc.twin("bibtex", scale=0.05, seed=0), xc.models
nets = {loss: models.NeuralOneVsAll(loss, dim=24, epochs=2) for loss in ("bce", "squared_hinge", "focal", "asymmetric")}
others = {
    "focal, no whole number": models.NeuralOneVsAll("focal", gamma=1.3, dim=24, epochs=1),
    "attention": models.LabelAttention(dim=12, epochs=1, steps=30),
    "two towers": models.TwoTowers(dim=24, epochs=2),
    "PfastreXML": models.PfastreXML(trees=2),
    "PLT": models.PLT(trees=1, max_leaf=20),
    "one-vs-rest": models.OneVsRest(),
}
for name, model in (nets | others).items():
    top = model.fit(data.train.X, data.train.Y).predict(data.test.X, 5)
    digest = hashlib.sha256(top.ids.tobytes() + top.scores.tobytes())
    for key, array in sorted(model._state().items()):
        digest.update(key.encode() + np.ascontiguousarray(array).tobytes())
    print(name, digest.hexdigest())
"""

_OLD = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NUMBA_CPU_NAME": "generic",
    "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in ("X86_V4", "X86_V3") if __cpu_features__.get(name)),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX,-AVX512F",
    "XCREPRO_THREADS": "1",
}


def digests(settings: dict[str, str]) -> dict[str, str]:
    done = subprocess.run([sys.executable, "-c", _RUN], env=os.environ | settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.skipif(not __cpu_features__.get("SSE2"), reason="the settings are those of x86-64")
def test_training_and_prediction_have_the_same_bits_on_an_old_processor(tmp_path):
    here = digests({"XCREPRO_THREADS": "2"})
    assert len(here) == len(set(here.values())) == 10
    assert digests(_OLD | {"NUMBA_CACHE_DIR": str(tmp_path)}) == here
