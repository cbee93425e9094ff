"""The bench: `make bench`. It compares, and writes bench/report.md."""

import argparse
import shutil
from contextlib import ExitStack
from pathlib import Path

from bench.before import checked_out
from bench.contenders import surroundings
from bench.report import REPORT, machine, write
from bench.run import Bench, Plan


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--stays", type=int, default=1_000_000, help="of the hospital")
    parser.add_argument("--rounds", type=int, default=Plan.rounds)
    parser.add_argument("--seconds", type=int, default=Plan.seconds, help="of a load")
    parser.add_argument("--no-peers", action="store_true", help="without node and HAPI")
    parser.add_argument("--before", metavar="REV", help="a revision to compare with")
    parser.add_argument("--kept", type=Path, default=Path("build/bench"))
    parser.add_argument("--report", type=Path, default=REPORT)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        parser.error("wrk is needed (Debian: apt-get install wrk)")
    about = machine()
    print(about, flush=True)
    with ExitStack() as stack:
        around = stack.enter_context(surroundings(options.kept, options.stays))
        before = None
        if options.before:
            before = stack.enter_context(checked_out(options.before, around.scratch))
        plan = Plan(
            rounds=options.rounds,
            seconds=options.seconds,
            peers=not options.no_peers,
            before=before,
        )
        write(options.report, Bench(around, plan).results(), plan, options.stays, about)
    print(f"written: {options.report}")


if __name__ == "__main__":
    main()
