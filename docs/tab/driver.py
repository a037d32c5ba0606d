"""What a tab runs first; then one command of xcrepro on the files in /in, or a notebook on what is in /project.zip."""

import importlib
import logging
import lzma
import os
import shutil
import sys
import zipfile


def unpacked():
    """The packages; and what has to lie in folders: the kit, and matplotlib with its fonts."""
    with lzma.open("/packages.zip.xz") as packed, open("/tmp/packages.zip", "wb") as packages:
        shutil.copyfileobj(packed, packages)
    os.remove("/packages.zip.xz")
    sys.path.append("/tmp/packages.zip")
    with zipfile.ZipFile("/kit.zip") as kit:
        kit.extractall("/tmp/kit")
    with zipfile.ZipFile("/tmp/packages.zip") as library:
        library.extractall("/tmp/kit", [name for name in library.namelist() if name.startswith("matplotlib/")])
    with zipfile.ZipFile("/tmp/kit/matplotlib/mpl-data.zip") as fonts:
        fonts.extractall("/tmp/kit/matplotlib/mpl-data")
    sys.path.insert(0, "/tmp/kit")


# It asks whether a folder can be written, which nothing here answers.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
unpacked()


def report(words):
    """Run a command that makes a report, on the files in /in; what it makes is in /out."""
    from xcrepro.__main__ import main

    os.chdir("/in")
    try:
        code = main([*words, "--out", "/tmp/report"])
    except SystemExit as left:
        code = left.code
    except MemoryError:
        print("The tab has too little memory for these files. Fewer points or models may fit.")
        code = 1
    if code == 0:
        with zipfile.ZipFile("/out/report.zip", "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as packed:
            for folder, _, names in os.walk("/tmp/report"):
                for name in names:
                    path = os.path.join(folder, name)
                    packed.write(path, os.path.relpath(path, "/tmp/report"))
        shutil.copy("/tmp/report/report.html", "/out/report.html")
        shutil.copy("/tmp/report/report.json", "/out/report.json")


def project(id):
    """A project with what a notebook reads; the notebook's folder is where its cells run."""
    with zipfile.ZipFile("/project.zip") as files:
        files.extractall("/tmp/project")
    os.chdir(os.path.dirname(f"/tmp/project/notebooks/{id}"))
    os.environ["MPLBACKEND"] = "agg"
    # This build's stack has no room for it in six other imports.
    importlib.import_module("xcrepro.core.accumulators.rows")
