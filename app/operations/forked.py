"""A process forked from this one, with all that this one has read, for one piece of work.

What the work opens, starts or reads ends with it, and this process has none of it. To be
used where there are no threads yet: a thread is not forked, but what it has locked is.
"""

import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import BinaryIO, NoReturn, TypeAlias

Work: TypeAlias = Callable[[BinaryIO], int]
"""What is done, given where it may say what came of it; returns an exit status."""

_PIECE = 65536


class Forked:
    """The process; it has ended when nobody holds the other end of its pipe any more.

    Raises OSError where there can be no more processes or pipes.
    """

    def __init__(self, work: Work) -> None:
        self._said = b""
        self._told, tells = os.pipe()
        # A signal that comes before the child has forgotten our handlers waits for that.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self.pid = os.fork()
            if self.pid == 0:
                os.close(self._told)
                _do(work, tells, before)
        except OSError:
            os.close(self._told)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(tells)

    def has_ended(self, seconds: float = 0) -> bool:
        """Wait so long for what it says, or for its end, and tell whether it has ended.

        Only for work that says nothing.
        """
        poll = select.poll()
        poll.register(self._told, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def told(self, seconds: float) -> bytes:
        """Return all that it says, when it has ended; raises TimeoutError.

        Whoever asks again then gets what it said meanwhile, too.
        """
        ends = time.monotonic() + seconds
        while self.has_ended(max(ends - time.monotonic(), 0)):
            piece = os.read(self._told, _PIECE)
            if not piece:
                return self._said
            self._said += piece
        raise TimeoutError

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if not self.has_ended():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send(signal.SIGKILL)

    def bury(self) -> int | None:
        """Return the exit status of a process that has ended, None where it is not known."""
        os.close(self._told)
        # gunicorn's master may have asked already.
        with suppress(ChildProcessError):
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return None


def _do(work: Work, tells: int, mask: Collection[int]) -> NoReturn:
    status = 1
    try:
        for number in signal.valid_signals():
            # What the parent does at a signal is not for its child.
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        # Until it has a handler of its own, a word to look anew must not end it.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        with os.fdopen(tells, "wb") as say:
            status = work(say)
    except BaseException:  # noqa: BLE001 - this is the last place where it can be said
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        # Neither the parent's clean-up nor its buffered output is ours.
        os._exit(status)
