"""gunicorn's worker, taught to refuse in FHIR's words (decision 20), and not to wait.

What gunicorn refuses never reaches the application: a request line that is too long, a
header that cannot be read. Here such an answer becomes an OperationOutcome, and the log
line loses the bytes that were sent, which may name a patient. Threads get requests that
have arrived (`app.operations.connections`), and hand over answers in bounded time.
"""

import errno
import logging
import socket
import time
from typing import Any

from gunicorn.http import errors
from gunicorn.workers.gthread import ThreadWorker

from app.operations.bodies import Application, LongBody, guard_bodies
from app.operations.connections import HANDLED, Connection, Progress, Waiting, Written
from app.operations.heads import check_head
from app.operations.refusals import BrokenOffError, LateRequestError, refuse
from app.operations.threads import Threads

SEND_SECONDS = 5.0
GOODBYE_SECONDS = 2.0
"""How long a client may take to close, so that it gets its last answer whole."""

LINGER_SECONDS = 2.0
"""How long a worker that stops waits for the first byte of a client that has connected."""

YIELD_SECONDS = 0.00003
MOST_YIELDED = 32
"""How long others may take a connection first, for each one kept up to so many."""

STAY_SECONDS = 0.002
"""How long a thread stays with a client that asked its last question as fast as this."""

PAUSE_SECONDS = 0.02
"""How long nothing is taken after a connection could not be."""

MOST_LEAVING = 128
"""How many may be about to close, before the first of them is left to itself."""

_log = logging.getLogger(__name__)


class OutcomeWorker(ThreadWorker):
    """A gthread worker whose own errors are OperationOutcomes, and that waits for nobody.

    gunicorn's configuration sets `request_seconds` and `most_body`, in bytes.
    """

    request_seconds: float
    most_body: int
    alive: bool

    def load_wsgi(self) -> None:
        """Load the application, the bodies of its requests guarded."""
        super().load_wsgi()
        self.wsgi: Application = guard_bodies(self.wsgi)
        # As plain attributes: gunicorn looks settings up some eighty times a request.
        settings = self.cfg.settings.items()
        self.cfg.__dict__.update({name: setting.get() for name, setting in settings})

    def get_thread_pool(self) -> Threads:
        """Return what requests are answered by."""
        return Threads(self.cfg.threads)

    def run(self) -> None:
        """Work until told to stop."""
        self._arriving = Waiting(self.poller, self._on_bytes)
        self._leaving = Waiting(self.poller, self._on_goodbye)
        self._staying: set[Connection] = set()
        super().run()

    def set_accept_enabled(self, enabled: bool) -> None:
        """Take connections or not; who stops takes those that have come, and no others."""
        super().set_accept_enabled(enabled)
        # gunicorn goes on where the master has gone, and would keep who connects waiting.
        self.alive = self.alive and self.is_parent_alive()
        if not self.alive:
            for listener in self.sockets:
                while self.nr_conns < self.worker_connections and self.accept(listener):
                    pass
                listener.close()

    def accept(self, listener: socket.socket) -> bool:
        """Take a connection, if there is one, and wait for its first request."""
        self._yield()
        try:
            client, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return False
        except OSError as error:
            self._make_room(error)
            return False
        try:
            conn = Connection(
                self.cfg, client, address, listener.getsockname(), self._say_goodbye
            )
        except OSError as error:
            # Of a client that has gone again no TLS connection can be made.
            _not_taken(error)
            client.close()
            return True
        self.nr_conns += 1
        self.enqueue_req(conn)
        return True

    def enqueue_req(self, conn: Connection) -> None:
        """Give a thread to the next request of a connection, when it has arrived."""
        conn.hurries = time.monotonic() < conn.answered + STAY_SECONDS
        conn.begin(self.most_body, self.request_seconds)
        progress = conn.receive()
        if progress is Progress.PARTLY:
            conn.let_go_ahead()
            self._arriving.add(conn)
        else:
            self._go_on(conn, progress)

    def handle(self, conn: Connection) -> Any:
        """Answer a request, in a thread, and those that follow it at once.

        To hand a connection to the loop and back costs a tenth of a short request.
        """
        HANDLED.conn = conn
        kept = super().handle(conn)
        while kept and self._follows_at_once(conn):
            kept = super().handle(conn)
        del HANDLED.conn
        self._staying.discard(conn)
        conn.answered = time.monotonic()
        return kept

    def murder_pending(self) -> None:
        """Close what is due; gunicorn's loop calls this all the time."""
        for conn in self._arriving.late():
            self._give_up(conn, LateRequestError())
        if not self.alive:
            spared = self.request_seconds - LINGER_SECONDS
            for conn in self._arriving.silent(time.monotonic() + spared):
                self._give_up(conn, LateRequestError())
        while len(self._arriving) and self.nr_conns >= self.worker_connections:
            self._give_up(self._arriving.oldest(), LateRequestError())
        for conn in self._leaving.late():
            conn.close()

    def handle_request(self, req: Any, conn: Connection) -> Any:
        """Answer a request, in a thread; the client takes the answer in time or not."""
        check_head(req)
        # The loop has let the client go ahead already.
        req._expected_100_continue = False
        if not conn.arrival.complete:
            req.force_close()
        if conn.arrival.has_long_chunks:
            req.body = LongBody()
        written = Written(conn)
        kept = super().handle_request(req, written)
        conn.sock.settimeout(self.request_seconds)
        try:
            conn.sock.sendall(written.answer())
        except TimeoutError as error:
            _log.warning("answer not taken")
            raise ConnectionResetError(errno.ECONNRESET, "answer not taken") from error
        return kept

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        """Drop a body that nobody has read; one that is broken had its answer all the same."""
        try:
            return bool(super()._keepalive_after(conn, keepalive))
        except errors.ParseException:
            return False

    def handle_error(
        self, _req: object, client: socket.socket, _addr: object, exc: Exception
    ) -> None:
        """Answer what the application could not; the log never shows what was sent."""
        refuse(client, exc, SEND_SECONDS, is_head=HANDLED.conn.arrival.is_head)

    def _follows_at_once(self, conn: Connection) -> bool:
        """Whether the next request is there; never while others wait for a thread."""
        if not (conn.hurries and conn.is_silent() and self.alive):
            return False
        idle = len(self.keepalived_conns) + len(self._arriving)
        if self.nr_conns - idle > self.cfg.threads:
            return False
        self._staying.add(conn)
        conn.begin(self.most_body, self.request_seconds)
        conn.hurries = conn.hears_within(STAY_SECONDS)
        return conn.hurries and conn.receive() is Progress.ARRIVED

    def _on_bytes(self, conn: Connection) -> None:
        progress = conn.receive()
        if progress is Progress.PARTLY:
            conn.let_go_ahead()
        else:
            self._arriving.remove(conn)
            self._go_on(conn, progress)

    def _go_on(self, conn: Connection, progress: Progress) -> None:
        if progress is Progress.ARRIVED:
            super().enqueue_req(conn)
        else:
            self._give_up(conn, BrokenOffError())

    def _give_up(self, conn: Connection, error: errors.ParseException) -> None:
        self.nr_conns -= 1
        if conn.is_silent():
            conn.close()
        else:
            # At once or not at all: the loop does not wait for a client.
            refuse(conn.sock, error, 0, is_head=conn.arrival.is_head)
            conn.close(graceful=True)

    def _yield(self) -> None:
        """Let a worker that keeps fewer connections be faster: all of them were told.

        Else one of two may get nearly all that clients keep. Where none is kept, nobody waits.
        """
        if self.cfg.workers > 1:
            kept = len(self.keepalived_conns) + len(self._staying)
            time.sleep(min(kept, MOST_YIELDED) * YIELD_SECONDS)

    def _make_room(self, error: OSError) -> None:
        """Let a client in who is kept out because all file descriptors are in use, say."""
        _not_taken(error)
        if len(self._arriving):
            self._give_up(self._arriving.oldest(), LateRequestError())
        # The client still waits: without a pause the loop would do nothing but ask.
        time.sleep(PAUSE_SECONDS)

    def _say_goodbye(self, conn: Connection) -> None:
        if not conn.end_answers():
            conn.close()
            return
        conn.due = time.monotonic() + GOODBYE_SECONDS
        self._leaving.add(conn)
        if len(self._leaving) > MOST_LEAVING:
            self._leaving.oldest().close()

    def _on_goodbye(self, conn: Connection) -> None:
        if conn.has_gone():
            self._leaving.remove(conn)
            conn.close()


def _not_taken(error: OSError) -> None:
    data = {"reason": errno.errorcode.get(error.errno or 0, type(error).__name__)}
    _log.warning("connection not taken", extra={"data": data})
