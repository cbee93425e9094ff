#!/bin/sh
# Walk all pages of a search: sh client.sh Encounter date=ge2024-01-01 _count=50
#
# Prints one resource a line. Needs curl 7.76 or newer, python3 to read the JSON, and in
# the environment BASE_URL, TOKEN_URL, AUDIENCE, CLIENT_ID and CLIENT_SECRET. Exit status:
# 0 all is there, 1 the service refused, 2 it was called otherwise, 3 not all is there: the
# hospital changed during the walk (search again), or has no further pages (narrow the
# search). The token is not renewed: a walk of more than its life is for client.py.
set -eu
[ $# -gt 0 ] || { echo 'usage: sh client.sh TYPE [NAME=VALUE ...]' >&2; exit 2; }
for name in BASE_URL TOKEN_URL AUDIENCE CLIENT_ID CLIENT_SECRET; do
  printenv "$name" >/dev/null || { echo "not in the environment: $name" >&2; exit 2; }
done
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# curl itself waits and asks again on 429 and 503, for as long as Retry-After says.
ask() {
  curl --silent --show-error --fail-with-body --max-time 30 \
    --retry 4 --retry-max-time 60 --output "$work/answer" "$@" || {
    head -c 500 "$work/answer" >&2 2>/dev/null || true
    exit 1
  }
}

# Prints what matched; leaves the ids, the number of rows that cannot be shown, the total
# and the next link in files.
cat >"$work/page.py" <<'PYTHON'
import json
import pathlib
import sys

work = pathlib.Path(sys.argv[1])
page = json.loads((work / "answer").read_text("utf-8"))
links = {link["relation"]: link["url"] for link in page["link"]}
(work / "next").write_text(links.get("next", ""))
(work / "total").write_text(str(page["total"]))
with (work / "ids").open("a") as ids, (work / "unshown").open("a") as unshown:
    for entry in page.get("entry", ()):
        if entry["search"]["mode"] == "match":
            print(entry["resource"]["id"], file=ids)
            print(json.dumps(entry["resource"]))
            continue
        for issue in entry["resource"]["issue"]:
            print(f"{issue['severity']}: {issue['diagnostics']}", file=sys.stderr)
            if issue["code"] == "exception":
                print("one", file=unshown)
PYTHON

# Secrets go through files: a command line can be read by everybody on the machine.
printf %s "$CLIENT_SECRET" >"$work/secret"
ask "$TOKEN_URL" --data grant_type=client_credentials \
  --data-urlencode "audience=$AUDIENCE" --data-urlencode "client_id=$CLIENT_ID" \
  --data-urlencode "client_secret@$work/secret"
python3 -c 'import json, sys
print("Authorization: Bearer", json.load(open(sys.argv[1]))["access_token"])' \
  "$work/answer" >"$work/headers"

resource_type=$1
shift
for parameter; do
  shift
  set -- "$@" --data-urlencode "$parameter"
done
[ $# -gt 0 ] || set -- --data ''
ask --header "@$work/headers" "$@" "$BASE_URL/$resource_type/_search"
python3 "$work/page.py" "$work"
total=$(cat "$work/total")

while next=$(cat "$work/next") && [ -n "$next" ]; do
  case $next in
  "$BASE_URL"/*) ;;
  *)
    echo "The next link leads elsewhere: no token goes there." >&2
    exit 1
    ;;
  esac
  ask --header "@$work/headers" "$next"
  python3 "$work/page.py" "$work"
done

found=$(wc -l <"$work/ids")
different=$(sort -u "$work/ids" | wc -l)
unshown=$(wc -l <"$work/unshown")
if [ "$found" -ne "$different" ] || [ $((found + unshown)) -ne "$total" ]; then
  echo "total is $total, but: $((found)) found, $((different)) different," \
    "$((unshown)) not shown" >&2
  exit 3
fi
echo "$total in all, $((unshown)) not shown" >&2
