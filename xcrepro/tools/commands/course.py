"""``course``: the lessons for students and teachers."""

from __future__ import annotations

from pathlib import Path

from xcrepro.tools.commands import shared


def add(command) -> None:
    sub = command("course", _course, "write the course's notebooks for students, for a teacher, or as slides")
    sub.add_argument("folder", type=Path, metavar="DIR", help="where to; new or empty")
    kind = sub.add_mutually_exclusive_group()
    kind.add_argument(
        "--solutions",
        action="store_true",
        help="for a teacher: nbgrader's course folder with solutions, and instructor.md",
    )
    kind.add_argument(
        "--slides", action="store_true", help="a page of slides a lesson (runs the lessons, some minutes)"
    )

    kind.add_argument(
        "--self-study",
        action="store_true",
        help="for who learns alone: checks that run all cases, hints, then solutions, a quiz with reasons; no nbgrader",
    )
    sub.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="other records and other hidden tests in the exercises, the same for the same N",
    )

    board = command("course-board", None, "a blind leaderboard for a class: files and one static page, no server")
    steps = board.add_subparsers(required=True, metavar="make|rank|open|sheets|judge")
    made = steps.add_parser("make", help="make a hidden test set, and the part that students get (DIR/public)")
    ranked = steps.add_parser("rank", help="check what is in DIR/submissions/STUDENT, rank it, write DIR/index.html")
    opened = steps.add_parser("open", help="after the deadline: did the ranking hold on the complete labels?")
    drawn = steps.add_parser(
        "sheets", help="write a sheet per student: predictions of all groups on a few records, to judge"
    )
    merged = steps.add_parser("judge", help="merge the sheets: how much is missing, and does the ranking hold?")
    for step, function in ((made, _make), (ranked, _rank), (opened, _rank), (drawn, _sheets), (merged, _judge)):
        step.set_defaults(command=function, open=step is opened)
        step.add_argument("folder", type=Path, metavar="DIR", help="the board; for make new or empty")
    made.add_argument(
        "--deadline", required=True, help="such as 2027-01-31T18:00; files taken in later are named and not ranked"
    )
    made.add_argument(
        "--dataset",
        default="tib",
        help="tib (default; words recombined, so that no record can be looked up), gutenberg (titles, drawn secretly), or "
        '"synthetic eurlex-4k" and the like; with --data what your data are called',
    )
    made.add_argument("--data", metavar="FOLDER", help="of your own, as xc.load reads it; its labels count as complete")
    made.add_argument("--points", type=int, help="how many records are drawn, default all; not of synthetic data")
    made.add_argument("--scale", type=float, default=0.1, help="of synthetic data: share of the points, default 0.1")
    made.add_argument("--rule", default="rare", help="which labels go missing: rare (default) or uniform")
    made.add_argument(
        "--strength", type=float, default=0.5, help="of the rule, from 0 (none go missing) to 1; default 0.5"
    )
    made.add_argument(
        "--metrics", nargs="+", default=["P@5", "nDCG@5", "PSP@5"], help="the first ranks; P@5 nDCG@5 PSP@5"
    )
    ranked.add_argument("--excuse", metavar="STUDENT", help="late files of this student count, from now on")
    drawn.add_argument("--records", type=int, default=10, help="records per sheet, default 10")
    drawn.add_argument("--shared", type=int, default=2, help="how many of them a second judge has as well, default 2")
    drawn.add_argument("--judges", nargs="+", metavar="NAME", help="default: all who have a folder in DIR/submissions")
    merged.add_argument("--interval", type=float, default=0.95, help="default 0.95")
    made.add_argument("--seed", type=int, help="default: drawn, and kept in DIR/board.json, which students do not get")


def _make(arguments) -> int:
    from xcrepro.tools.course import board

    names = ("dataset", "deadline", "data", "points", "scale", "rule", "strength", "metrics", "seed")
    made = board.make(arguments.folder, **shared.taken(arguments, *names))
    print(f"{made / 'public'} is for the students; put what they hand in into {made / 'submissions'}/STUDENT/")
    return 0


def _rank(arguments) -> int:
    from xcrepro.repro.drawing import tables
    from xcrepro.tools.course import board

    how = {} if arguments.open else shared.taken(arguments, "excuse")
    table = (board.open_truth if arguments.open else board.rank)(arguments.folder, **how)
    print(tables.show(table.drop(columns="digest"), dict.fromkeys(table, 4) | {"records": 0}))
    print(arguments.folder / "index.html")
    return 0


def _sheets(arguments) -> int:
    from xcrepro.tools.course import judging

    table = judging.sheets(arguments.folder, **shared.taken(arguments, "records", "shared", "judges"))
    shared.print_table(table, False, 0)
    print(f"Then: xcrepro course-board judge {arguments.folder}")
    return 0


def _judge(arguments) -> int:
    from xcrepro.tools.course import judging

    found = judging.judge(arguments.folder, interval=arguments.interval)
    print("\n".join(found.said))
    shared.print_table(found.ranking, False, 4)
    print(arguments.folder / judging.FOLDER / "judged.html")
    return 0


def _course(arguments) -> int:
    from xcrepro.tools.course import copies

    asked = {
        copies.SOLUTIONS: arguments.solutions,
        copies.SLIDES: arguments.slides,
        copies.SELF_STUDY: arguments.self_study,
    }
    kind = next((kind for kind, wanted in asked.items() if wanted), copies.STUDENTS)
    for name in copies.write(arguments.folder, kind, **shared.taken(arguments, "seed")):
        print(arguments.folder / name)
    return 0
