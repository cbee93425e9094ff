"""How the service runs: stock gunicorn with gthread workers, behind a proxy.

Of the threads of a worker, `ENCOUNTERS_THREADS` work on requests. `WAITING_PER_THREAD` more
for each of them hold requests that wait, and `SPARE_THREADS` answer probes meanwhile.
"""

WAITING_PER_THREAD = 3
SPARE_THREADS = 4
