"""Work in a forked process: what it says, how it ends, and what it does not take over."""

import json
import subprocess
import sys

from tests.live import ROOT

FORKS = """
import atexit, json, os, signal, time
from app.operations.forked import Forked

atexit.register(print, "cleaned up")
print("not yet written", end=" ")
signal.signal(signal.SIGTERM, lambda *_: None)

def says(say):
    say.write(b"x" * 200_000)
    os.kill(os.getpid(), signal.SIGHUP)
    return 3

def fails(say):
    raise OSError("no such thing")

def hangs(say):
    time.sleep(60)

def ended(work, end=None):
    child = Forked(work)
    if end:
        child.send(end)
    said = child.told(10)
    return len(said), child.bury()

go_on, goes_on = os.pipe()

def says_twice(say):
    say.write(b"first")
    say.flush()
    os.read(go_on, 1)
    say.write(b", second")
    return 0

def asked_twice():
    child = Forked(says_twice)
    try:
        child.told(0.5)
    except TimeoutError:
        os.write(goes_on, b"!")
    said = child.told(10).decode()
    child.bury()
    return said

def late():
    child = Forked(hangs)
    try:
        child.told(0.01)
    except TimeoutError:
        child.kill()
    return child.bury()

told = [ended(says), ended(fails), ended(hangs, signal.SIGTERM)[1], late()]
told.append(asked_twice())
print(json.dumps(told))
"""


def test_what_it_says_and_how_it_ends_are_known_and_nothing_else_comes_of_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said, _, rest = done.stdout.partition("\n")
    written, _, told = said.partition("[")
    all_of_it = [[200_000, 3], [0, 1], -15, -9, "first, second"]
    assert json.loads(f"[{told}") == all_of_it
    assert (written, rest) == ("not yet written ", "cleaned up\n")
    assert "OSError: no such thing" in done.stderr
