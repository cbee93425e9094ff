"""What the report says beside its tables: why they are so, and what was tried."""

WHY = """\
## Why what is missed is missed

`handwritten` has no token, limit, cursor, mapping, log line, metrics or breaker; it stands, as the
floor does, on gunicorn's own threads. `dutiful` is the same with what a service of this kind
cannot leave out: a token known again, each page kept in Redis, sealed and linked, an access
line, two metrics, all in the shortest way. It stands on our worker, so that what is between it
and ours is the application: any hospital, limits of requests, parameters checked and faults
told, sources that are away or slow, links back, metrics of each phase and source. Where it misses
a target, or just keeps it, ours cannot keep it.

What the application alone takes (the WSGI call in one process, counted by valgrind, so the same
however busy the machine is), in thousands, a request; cache lines are those that a second-level
cache of 1 MB has to fetch:

| | read | patient's stays | page of 100 | next page | lines, read | lines, page |
|---|---:|---:|---:|---:|---:|---:|
| instructions, handwritten | 489 | 1,261 | 6,813 | | 0.4 | 9.5 |
| dutiful | 700 | 1,613 | 7,231 | 7,289 | 0.7 | 17.1 |
| ours, stays as a dict each | 806 | 2,035 | 7,723 | 8,052 | 1.9 | 25.1 |
| ours, stays as text | 816 | 1,991 | 6,535 | 6,847 | 1.9 | 22.8 |

By instructions a page costs 0.96 times the view written by hand, by time more than that: more
than twice as much comes from beyond the second-level cache, and how long that takes hangs on who
else uses the third. It is breadth, not loops: ten stays call 309 functions of Python by hand, 491
dutifully and 768 here, of them 179, 244 and 382 different ones (a read 215, 304 and 441), and
what a page does once is dear because its rows have displaced it. Keeping a page in Redis takes 59
µs when nothing else is done, and 146 to 313 within a page; reading a search takes 21 µs among
those of ten stays, and 33 to 70 among pages. Of a page, rows mapped are 31 % of the instructions
and entries a quarter, together 29 % of those lines. Of a read the access line takes 102 thousand
instructions, the counts of the request 71, the ETag and the time of change 46, the guard of the
source and its counts 45, phases 38, parameters 34, the condition 30; of ten stays conditions and
statements 130, the reading of the search 85, ids and seals of pages 140.

Where the CPU goes of a request that is answered under load, in percent of it, taken once, on
another machine (Intel Xeon), by timing each part in a worker, when stays were a dict each:

| | read | page of 100 with its total |
|---|---:|---:|
| gunicorn: parser, answer, threads | 29 | 12 |
| Flask: context, routes, signals, headers | 28 | 12 |
| psycopg | 13 | 13 |
| the guard of the source, conditions, statements, rows by place | 9 | 11 |
| log line and metrics | 11 | 5 |
| token, limits, parameters | 4 | 6 |
| rows mapped, FHIR's shape, JSON | 6 | 28 |
| pages: sealed, kept in Redis, linked | | 12 |

On that machine access lines and metrics were 13 % of a read and 11 % of ten stays.

Memory: some 20 MB of a worker are copies of what it shared with its parent, made by counting
references; most of them before its first request.
The start reads libraries: Flask and gunicorn take 0.13 to 0.19 s to be imported; with redis,
marshmallow, requests, authlib and joserfc it is 0.46 to 0.57, with SQLAlchemy and psycopg 0.59 to
0.77. 1.6 times Flask cannot be kept with them. Nor can 0.6 of node for a read: the floor is 0.46 to
0.49 of it, which leaves some 100 µs for all else, the statement included, and a statement by
psycopg takes 48 when nothing else is done.
"""

DROPPED = """\
## Tried and dropped

- A function compiled from the schema of a stay: no faster than one written by hand over the
  same fields, and nobody reads it.
- Elements written a column at a time, as rows are mapped: 2 % of a page. Each entry dumped by
  itself: 1.6 times what all at once take. A page joined of all its pieces in one go: the join
  keeps 80 bytes a piece, and is no faster.
- Statements by libpq's own calls, not psycopg's cursor: 17 of 48 µs each alone, nothing within
  the service.
- Memory by the system's malloc in huge pages: 10 to 17 % dearer than Python's own; by jemalloc,
  nothing.
- The process's number known, not asked for at each count: less than 1 % of a read.
- A collector that begins at 10,000 new objects, not 5,000: another 3 % of a page, but 1 to 2 MB
  of a worker. At 25,000 or 100,000: nothing more, and up to 6 MB.
- The hospital and unit of a stay written once for all stays of the unit: 1 % of a page.
- Workers bound to a processor each: 2 to 9 %, but two deployments on one machine would share one
  and leave others idle. Workers as batch processes (SCHED_BATCH): nothing.
- One statement for every first page: `ORDER BY … NULLS LAST` loses the index. Searches that
  name their rows have one, since a few rows are sorted without.
- gunicorn's parser in C: 10 µs of a read, and it has to be compiled where it is installed.
- Fewer arenas for malloc, or memory given back sooner: 1 to 3 MB of a worker. One arena grew in
  a soak as all of them do.
- A collection before workers are forked: there is half a MB of garbage, and few gaps.
- Rows in PostgreSQL's binary format: nothing.
- Placeholders by place instead of by name for psycopg: 1 % of a page.
- The standard library's writer for log lines, a member at a time: no faster than whole.
- A log record made from one that is kept: 1 % of a read. Lines without blanks between members:
  1 %.
- Numbers in shared memory by a class of our own, not the library's: 3 % of a read.
- Flask's own dispatch without its signals: 1 % of a read.
- Log records without thread and process, counts that are written without looking for their
  place, buckets found at once: 2 % of a read, all three. Access lines past `logging`: 2 %.
- Metrics taken a batch at a time: 7 % of what a read costs in one process, nothing under load,
  and they would be late. None at all would save a tenth of a read.
- Redis without its library's pool: 2 % of ten stays, measured three times.
- The limit of a body known without the configuration: 1 % of ten stays. Tokens remembered by
  another digest, huge pages for what is allocated: nothing.
- Resources made while Redis keeps the page, its answer read afterwards: nothing.
- The library of Redis without OpenTelemetry's SDK, which it reads where that is installed: 4 %
  of a start, 1 MB.
- Sockets that stay as they are from request to request: nothing.
- Threads of a worker that take turns, but for what they wait for: nothing. It is not for the
  interpreter's lock that a request costs more under load than alone.
- Workers that yield for every connection, idle or not: clients that keep none get fewer answers.
- A listener of its own for each worker (SO_REUSEPORT): requests are lost on SIGHUP.
- Totals kept for equal filters: `total` is counted once a search (decision 13).
"""
