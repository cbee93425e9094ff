"""A deployment of two instances is broken, stopped and attacked, part by part, under load.

    make drill
    python -m tests.drill [PART…] [--requests 100000] [--seconds 20] …

| Part | What happens |
|---|---|
| faults | instances, Redis, mappings and keys fail or change, while 200 clients walk |
| stops | SIGTERM, rolling restart, reload, upgrade, rollback: no response is lost |
| outages | Redis and the database are restarted and go away: how long until all is well? |
| slow | 200 slow clients of five kinds: how long do probes take? |
| hostile | hostile requests: no 5xx, and no canary where operators look |

Prints the tables of each part: what clients met. Exit status: 0 no part found a fault; 1 one
did; 2 there is no nginx here. Times are printed, and are no fault: the machine may be busy.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.deploy.proxies import NGINX
from tests.drill import faults, hostile, outages, slow, stops

Part = Callable[[Path, argparse.Namespace], Iterator[str]]

PARTS: Mapping[str, Part] = {
    "faults": faults.drill,
    "stops": stops.drill,
    "outages": outages.drill,
    "slow": slow.drill,
    "hostile": hostile.drill,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that are named, or all."""
    options = _options(arguments)
    if NGINX is None:
        print("The drill needs nginx (Debian's package nginx).", file=sys.stderr)
        return 2
    found = [fault for name in options.parts or PARTS for fault in _run(name, options)]
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


def _run(name: str, options: argparse.Namespace) -> list[str]:
    begun = time.monotonic()
    with TemporaryDirectory() as temporary:
        directory = (options.directory or Path(temporary)) / name
        directory.mkdir(parents=True)
        print(f"\n## {name}\n", flush=True)
        found = list(PARTS[name](directory, options))
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"\n{time.monotonic() - begun:.0f} s; load of the machine {load}", flush=True)
    return [f"{name}: {fault}" for fault in found]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make drill",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--clients", type=int, default=200, help="who walk with pauses")
    parser.add_argument("--workers", type=int, default=8, help="those without a pause")
    parser.add_argument(
        "--requests", type=int, default=100_000, help="of those without a pause"
    )
    parser.add_argument(
        "--seconds", type=float, default=20, help="how long an event is looked at"
    )
    parser.add_argument(
        "--pause", type=float, default=3, help="between two pages of a walk"
    )
    parser.add_argument(
        "--release", default="HEAD", help="the revision that is upgraded to, and back"
    )
    parser.add_argument(
        "--directory", type=Path, help="a new one, where logs are to be left"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
