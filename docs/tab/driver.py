"""What a browser's tab runs: one command of xcrepro on the files in /in, its report into /out."""

import json
import logging
import os
import shutil
import sys
import zipfile


def unpacked():
    """What has to lie in folders: the kit, and matplotlib with its fonts."""
    with zipfile.ZipFile("/kit.zip") as kit:
        kit.extractall("/tmp/kit")
    with zipfile.ZipFile("/usr/local/lib/python315.zip") as library:
        library.extractall("/tmp/kit", [name for name in library.namelist() if name.startswith("matplotlib/")])
    with zipfile.ZipFile("/tmp/kit/matplotlib/mpl-data.zip") as fonts:
        fonts.extractall("/tmp/kit/matplotlib/mpl-data")
    sys.path.insert(0, "/tmp/kit")


logging.getLogger("matplotlib").setLevel(
    logging.ERROR
)  # it asks whether a folder can be written, which nothing here answers
unpacked()
with open("/words.json") as file:
    words = json.load(file)
os.chdir("/in")
from xcrepro.__main__ import main  # noqa: E402

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
