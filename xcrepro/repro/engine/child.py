"""papermill in a process that does not outlive the run that started it, ``python -m xcrepro.repro.engine.child NOTEBOOK
EXECUTED``.

stdin is a pipe whose other end only that run holds, so it ends with the run, kill -9 included. Then the kernel is killed
and this process goes. Until then its lock beside the executed notebook makes another run wait.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading

PATIENCE = 300.0
"""Seconds that the process of an earlier run, which is about to go, may take."""


def main() -> int:
    """papermill with the arguments of this process; ends as papermill ends, or with 1 where another process is at it."""
    from filelock import FileLock, Timeout

    threading.Thread(target=_end_with_stdin, daemon=True).start()
    executed = sys.argv[2]
    lock = FileLock(f"{executed}.lock")
    try:
        lock.acquire(timeout=PATIENCE)
    except Timeout:
        print(f"{executed} is being written by another process: wait for it to end, or stop it", file=sys.stderr)
        return 1
    # jsonschema checks international addresses with a package whose import compiles a grammar, a second in every process. No
    # notebook has such an address, and jsonschema does without where the package is not installed.
    sys.modules.setdefault("rfc3987_syntax", None)
    from papermill.cli import papermill

    # This environment's Python, whatever kernel an editor has noted in the notebook.
    sys.argv += ["-k", "python3"]
    papermill(prog_name="papermill")  # ends the process
    return 0


def _end_with_stdin() -> None:
    """Wait for the end of stdin, where nothing ever comes; then kill what this process started, and end."""
    import psutil

    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 1):
            pass
    started = psutil.Process().children(recursive=True)
    for process in started:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(started, timeout=PATIENCE)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
