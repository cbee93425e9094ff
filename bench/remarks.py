"""What the report says beside its tables: why they are so, and what was tried."""

WHY = """\
## Why what is missed is missed

The view written by hand has no token, limit, cursor, mapping, log line, metrics or breaker:
where it stands at a target or over it, nothing that does more on gunicorn, Flask and psycopg
can be under it. Where the CPU goes of a request that is answered under load, in percent of
it, taken once by timing each part in a worker:

| | read | page of 100 with its total |
|---|---:|---:|
| gunicorn: loop, parser, answer | 33 | 15 |
| Flask: context, routes, signals, headers | 25 | 9 |
| psycopg | 11 | 12 |
| the guard of the source, conditions, statements, rows by place | 9 | 10 |
| log line and metrics | 12 | 6 |
| token, limits, parameters | 4 | 7 |
| rows mapped, FHIR's shape, JSON | 6 | 29 |
| pages: sealed, kept in Redis, linked | | 12 |

Memory: 33 MB of a worker are idle; under load it writes into what it shares with its parent.
The start reads SQLAlchemy, redis, marshmallow, authlib and joserfc beside Flask.
"""

DROPPED = """\
## Tried and dropped

- A function compiled from the schema of a stay: no faster than one written by hand over the
  same fields, and nobody reads it.
- Elements written a column at a time, as rows are mapped: 2 % of a page.
- A collector that runs less often: 2 % of a page, 1 % of a read.
- One statement for every first page: `ORDER BY … NULLS LAST` loses the index. Searches that
  name their rows have one, since a few rows are sorted without.
- gunicorn's parser in C: 10 µs of a read, and it has to be compiled where it is installed.
- Fewer arenas for malloc, or memory given back sooner: 1 to 3 MB of a worker.
- A collection before workers are forked: there is half a MB of garbage, and few gaps.
- Rows in PostgreSQL's binary format: nothing.
- Placeholders by place instead of by name for psycopg: 1 % of a page.
- The standard library's writer for log lines, a member at a time: no faster than whole.
- Log records without thread and process: 1 µs of a read.
- Workers that yield for every connection, idle or not: clients that keep none get fewer answers.
- A listener of its own for each worker (SO_REUSEPORT): requests are lost on SIGHUP.
- Totals kept for equal filters: `total` is counted once a search (decision 13).
"""
