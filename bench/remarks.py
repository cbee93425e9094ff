"""What the report says beside its tables: why they are so, and what was tried."""

WHY = """\
## Why what is missed is missed

`handwritten` has no token, limit, cursor, mapping, log line, metrics or breaker. `dutiful` is
the same with what a service of this kind cannot leave out: a token known again, each page
kept in Redis, sealed and linked, an access line, two metrics, all in the shortest way. Both
stand on gunicorn's own threads; ours has a worker of its own, which answers at once what
follows at once. `dutiful` on that worker, in a run of its own of 10 rounds, swinging more than
the one above:

| CPU | read | patient's stays | page of 100 |
|---|---:|---:|---:|
| dutiful on our worker ÷ floor | 1.23 | 2.39 | 5.76 |
| ours ÷ floor | 1.83 | 3.85 | 8.70 |
| dutiful on our worker ÷ node ×2 | 0.61 | 0.66 | 0.72 |
| ours ÷ node ×2 | 0.85 | 1.15 | 1.00 |

So a page ÷ floor, and the start, are under what the duties alone cost. The other targets that
are missed are not: a read, ten stays and a page cost 1.4 to 1.7 times the view that has
nothing but its duties, for what it has not: any hospital, limits of requests, parameters
checked and faults told, sources that are away or slow, links back, metrics of each phase and
source. In one process, the WSGI call alone, that is 110 µs of a read, 220 of ten stays, 520 of a
page. It is spread: what surrounds a view 25 to 35 µs, the view of a read 35, the guard of the
source and its counts 12 for each call, conditions and statements 20 to 40, keeping a page 75.

Where the CPU goes of a request that is answered under load, in percent of it, taken once, on
another machine (Intel Xeon), by timing each part in a worker:

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
The start reads SQLAlchemy, redis, marshmallow, authlib and joserfc beside Flask.
"""

DROPPED = """\
## Tried and dropped

- A function compiled from the schema of a stay: no faster than one written by hand over the
  same fields, and nobody reads it.
- Elements written a column at a time, as rows are mapped: 2 % of a page.
- A collector that begins at 10,000 new objects, not 5,000: another 3 % of a page, but 1 to 2 MB
  of a worker. At 25,000 or 100,000: nothing more, and up to 6 MB.
- The hospital and unit of a stay written once for all stays of the unit: 1 % of a page.
- Workers bound to a processor each: 2 to 9 %, but two deployments on one machine would share one
  and leave others idle. Workers as batch processes (SCHED_BATCH): nothing.
- One statement for every first page: `ORDER BY … NULLS LAST` loses the index. Searches that
  name their rows have one, since a few rows are sorted without.
- gunicorn's parser in C: 10 µs of a read, and it has to be compiled where it is installed.
- Fewer arenas for malloc, or memory given back sooner: 1 to 3 MB of a worker.
- A collection before workers are forked: there is half a MB of garbage, and few gaps.
- Rows in PostgreSQL's binary format: nothing.
- Placeholders by place instead of by name for psycopg: 1 % of a page.
- The standard library's writer for log lines, a member at a time: no faster than whole.
- Log records without thread and process, counts that are written without looking for their
  place, buckets found at once: 2 % of a read, all three. Access lines past `logging`: 2 %.
- Metrics taken a batch at a time: 7 % of what a read costs in one process, nothing under load,
  and they would be late. None at all would save a tenth of a read.
- Redis without its library's pool: 2 %, measured twice.
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
