"""The command line, ``xcrepro`` or ``python -m xcrepro``; ``xcrepro --help`` lists its commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from xcrepro import commands
from xcrepro.errors import XCError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status: 0 well, 1 something failed, 2 wrong input, 130 interrupted."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.command(arguments)
    except XCError as error:
        print(f"xcrepro: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("xcrepro: interrupted; what is done stays done", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="xcrepro", description="Reproduce XC evaluation papers, and evaluate your own."
    )
    subparsers = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, function, help: str) -> argparse.ArgumentParser:
        sub = subparsers.add_parser(name, help=help, description=help)
        sub.set_defaults(command=function)
        return sub

    for group in commands.GROUPS:
        group.add(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
