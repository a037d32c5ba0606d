"""The command line, ``xcrepro`` or ``python -m xcrepro``; ``xcrepro --help`` lists its commands."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Iterator, Sequence

import xcrepro
from xcrepro.core import extras
from xcrepro.core.errors import DataWarning, XCError, in_shell, system_fault
from xcrepro.tools import commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status: 0 well, 1 something failed, 2 wrong input or nowhere to write, 130 interrupted,
    141 where the reader of the output went away (``| head``)."""
    try:
        try:
            arguments = _parser().parse_args(argv)
            with _warnings_said():
                return arguments.command(arguments)
        finally:
            sys.stdout.flush()  # here, where a fault in it is caught
    except XCError as error:
        print(f"xcrepro: {in_shell(error)}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in extras.BROUGHT_BY:
            raise
        print(f"xcrepro: {extras.missing(name)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # What is still to be written has no reader; the interpreter would try once more at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        # A full disk, a folder that may not be written: the file is named; what it means is the system's own word.
        print(f"xcrepro: {system_fault(error)}", file=sys.stderr)
        if error.errno == errno.ENOSPC:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except KeyboardInterrupt:
        print("xcrepro: interrupted; what is done stays done", file=sys.stderr)
        return 130


@contextlib.contextmanager
def _warnings_said() -> Iterator[None]:
    """Warnings to a reader as lines of text, and not with the place in our code."""
    shown = warnings.showwarning

    def say(message, category, *rest, **more) -> None:
        if issubclass(category, UserWarning):
            print(f"warning: {in_shell(message)}", file=sys.stderr)
        else:
            shown(message, category, *rest, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = say
        yield


_SELDOM = {"cache", "filter", "fingerprint", "tidy", "write-blocks"}
"""Commands that ``--help`` only names."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="xcrepro",
        description="Reproduce XC evaluation papers, and evaluate your own.",
        epilog=f"Seldom needed, each with --help: {', '.join(sorted(_SELDOM))}.",
    )
    parser.add_argument("--version", action="version", version=f"xcrepro {xcrepro.__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, function, help: str) -> argparse.ArgumentParser:
        sub = subparsers.add_parser(name, description=help, **({} if name in _SELDOM else {"help": help}))
        sub.set_defaults(command=function)
        return sub

    for group in commands.GROUPS:
        group.add(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
