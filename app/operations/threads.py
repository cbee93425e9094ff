"""The threads of a worker, of which there may be fewer than it wants."""

from concurrent.futures import ThreadPoolExecutor


class Threads(ThreadPoolExecutor):
    """A pool in which work waits for a thread that is there, where no other can be started.

    Raises RuntimeError where there is none at all.
    """

    # The library's own: where it starts a thread for work that it has queued.

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
