"""The bench: `make bench`. It compares, and writes bench/report.md."""

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psycopg

from bench.before import checked_out
from bench.cluster import database, redis_url
from bench.load import generator
from bench.report import machine, write
from bench.run import Bench, Plan
from bench.tokens import identity
from tests.validity import InvalidBodyError, fhir_faults
from tests.validity.rules import Body


def main() -> None:
    """Measure and write the report."""
    usual = Plan()
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--stays", type=int, default=1_000_000, help="of the hospital")
    parser.add_argument("--rounds", type=int, default=usual.rounds)
    parser.add_argument("--seconds", type=int, default=usual.seconds, help="of a load")
    parser.add_argument("--pages", type=int, default=usual.pages, help="of the walk")
    parser.add_argument("--no-peers", action="store_true", help="without node and HAPI")
    parser.add_argument("--before", metavar="REV", help="a revision to compare with")
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path("build/bench"),
        help="where the hospital is kept between runs (default: %(default)s)",
    )
    parser.add_argument("--report", type=Path, default=Path("bench/report.md"))
    options = parser.parse_args()
    if not generator():
        parser.error("wrk is needed (Debian: apt-get install wrk)")
    # Now: at the end it would cost the whole run.
    options.report.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        scratch = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        )
        before = None
        if options.before:
            before = stack.enter_context(checked_out(options.before, scratch))
        filled = stack.enter_context(database(options.kept, options.stays))
        with psycopg.connect(filled.libpq) as connection:
            server = str(connection.info.parameter_status("server_version"))
        about = machine(server)
        print(about, flush=True)
        store = stack.enter_context(redis_url())
        known = stack.enter_context(identity(scratch))
        plan = Plan(
            rounds=options.rounds,
            seconds=options.seconds,
            pages=options.pages,
            peers=not options.no_peers,
            before=before,
        )
        results = Bench(filled, store, known, scratch, plan, valid).results()
        write(options.report, results, plan, options.stays, about)
    print(f"written: {options.report}")


def valid(body: Body) -> None:
    """Raise InvalidBodyError for what is not STU3."""
    if faults := fhir_faults(body):
        raise InvalidBodyError("\n".join(faults))


if __name__ == "__main__":
    main()
