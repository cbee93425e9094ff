"""The worker of gunicorn, stock but for one thing: a stop refuses new connections at once."""

from gunicorn.workers.gthread import ThreadWorker


class ClosingWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Closes its listeners as soon as it is stopped.

    Stock workers keep them open until the last request and idle connection has ended, up to
    `graceful_timeout`: the kernel goes on taking connections that nobody accepts, and the
    proxy waits for them. Closed, they are refused, and the proxy tries the other instance.
    On SIGHUP the master and the new workers hold the listeners too: nothing is refused.
    """

    def set_accept_enabled(self, enabled: bool) -> None:
        """Accept connections or not; a worker that stops never does again."""
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()
