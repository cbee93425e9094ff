#!/bin/sh
# Copy all pages of a search into a file of JSON lines.
#
#   sh walk.sh stays.ndjson Encounter date=ge2024-01-01 _count=100
#
# Needs a POSIX shell, curl 7.76 and jq 1.6. ../README.md has the settings, the behaviour
# and the exit codes.
set -eu
REFUSED=1 USAGE=2 INCOMPLETE=3 UNAVAILABLE=4
TRIES=5 RESTARTS=3 LONGEST_WAIT_SECONDS=60

missing=
for name in BASE TOKEN_URL CLIENT_ID CLIENT_SECRET; do
  [ -n "$(printenv "$name" || true)" ] || missing="$missing $name"
done
if [ $# -lt 2 ] || [ -n "$missing" ]; then
  echo 'usage: walk.sh OUT TYPE [NAME=VALUE ...]' >&2
  [ -z "$missing" ] || echo "not set:$missing" >&2
  exit "$USAGE"
fi
out=$1 resource_type=$2
shift 2
base=${BASE%/}

umask 077
work=$(mktemp -d)
trap 'rm -rf "$work" "$out.part"' EXIT
trap 'exit 1' HUP INT TERM
# Secrets go through files: every user of the machine can read a command line.
printf %s "$CLIENT_SECRET" >"$work/secret"
renew_at=0

fail() { # CODE TEXT
  echo "$2" >&2
  exit "$1"
}

# Send a request, again while that may help. Leaves $work/answer and $status.
repeat() { # CURL-ARGUMENT...
  attempt=0
  while attempt=$((attempt + 1)); do
    : >"$work/head"
    if status=$(curl --silent --globoff --max-time "${TIMEOUT_SECONDS:-60}" \
      --dump-header "$work/head" --output "$work/answer" --write-out '%{http_code}' "$@"); then
      case $status in
      408 | 429 | 503 | 504) reason="status $status" ;;
      *) return ;;
      esac
    else
      reason="no answer (curl $?)"
      : >"$work/head"
    fi
    wait=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9][0-9]*\).\{0,1\}$/\1/p' "$work/head" | tail -n 1)
    wait=${wait:-$((1 << (attempt - 1)))}
    if [ "$attempt" -ge "$TRIES" ] || [ "$wait" -gt "$LONGEST_WAIT_SECONDS" ]; then
      fail "$UNAVAILABLE" "$reason, Retry-After or pause $wait, try $attempt"
    fi
    sleep "$wait"
  done
}

# Check that the answer is a 200 with a resource of this type, or a token.
check() { # TYPE
  if [ "$status" != 200 ]; then
    fail "$REFUSED" "status $status: $(head -c 500 "$work/answer")"
  fi
  jq --exit-status --arg type "$1" '(.resourceType // "token") == $type' \
    "$work/answer" >/dev/null 2>&1 || fail "$REFUSED" "The answer is not a $1."
}

# Get a new token if the last one ends soon: an expired token costs a request.
renew() {
  [ "$(date +%s)" -ge "$renew_at" ] || return 0
  set -- --data grant_type=client_credentials --data-urlencode "client_id=$CLIENT_ID" \
    --data-urlencode "client_secret@$work/secret"
  [ -z "${AUDIENCE:-}" ] || set -- "$@" --data-urlencode "audience=$AUDIENCE"
  [ -z "${SCOPE:-}" ] || set -- "$@" --data-urlencode "scope=$SCOPE"
  repeat "$@" "$TOKEN_URL"
  check token
  jq --raw-output '"Authorization: Bearer " + .access_token' "$work/answer" \
    >"$work/authorization"
  renew_at=$(($(date +%s) + $(jq '0.9 * (.expires_in // 3600) | floor' "$work/answer")))
}

# Send a request with a token; 401 is repeated once, with a new one.
send() { # CURL-ARGUMENT...
  renew
  repeat --header "@$work/authorization" "$@"
  [ "$status" = 401 ] || return 0
  renew_at=0
  renew
  repeat --header "@$work/authorization" "$@"
}

# Write the page's matches to the file and their ids to $work/ids; report its messages.
count() {
  check Bundle
  jq --compact-output '.entry[]? | select(.search.mode == "match").resource' \
    "$work/answer" >>"$out.part" || fail "$REFUSED" "$out.part cannot be written."
  jq --raw-output '.entry[]? | select(.search.mode == "match").resource.id' \
    "$work/answer" >>"$work/ids" || fail "$REFUSED" "$work cannot be written."
  jq --raw-output '.entry[]? | select(.search.mode == "outcome").resource.issue[]
    | [.code, .severity, .diagnostics] | join(" ")' "$work/answer" >"$work/issues"
  cut -d ' ' -f 2- "$work/issues" >&2
  invalid=$((invalid + $(grep -c '^exception ' "$work/issues" || true)))
  total=$(jq '.total // "unknown"' --raw-output "$work/answer")
  next=$(jq --raw-output '.link[] | select(.relation == "next").url' "$work/answer")
}

# Write all pages of the search; fails if they are no longer stored.
pages() { # CURL-ARGUMENT...
  : >"$out.part"
  : >"$work/ids"
  invalid=0
  send "$@" "$base/$resource_type/_search"
  count
  while [ -n "$next" ]; do
    case $next in
    "$base"/*) ;;
    *) fail "$REFUSED" 'The next link leads to another host.' ;;
    esac
    send "$next"
    [ "$status" != 410 ] || return 1
    count
  done
}

for parameter; do
  shift
  set -- "$@" --data-urlencode "$parameter"
done
[ $# -gt 0 ] || set -- --data ''

restart=0
until pages "$@"; do
  restart=$((restart + 1))
  [ "$restart" -le "$RESTARTS" ] || fail "$UNAVAILABLE" "The pages were gone $restart times."
done
mv "$out.part" "$out"
rows=$(($(wc -l <"$work/ids")))
ids=$(($(sort -u "$work/ids" | wc -l)))
echo "$rows rows, $ids ids, $invalid invalid, total $total" >&2
[ "$total" = unknown ] || [ "$total" -eq $((ids + invalid)) ] || exit "$INCOMPLETE"
