#!/usr/bin/env bash
# Write what is missing in secrets/: keys, the password of Redis, that of Grafana, each random
# and readable by the account of its container alone. What is there is never changed: to get a
# new one, remove the file first (both files of Redis together). Run it as root.
set -euo pipefail
umask 077
cd "$(dirname "$0")"
mkdir -p secrets

random() { openssl rand -hex 32 | tr -d '\n'; }

keep() { # NAME UID: write standard input to a new file that belongs to UID
  cat >"secrets/$1"
  chmod 400 "secrets/$1"
  if [ "$(id -u)" = 0 ]; then
    chown "$2" "secrets/$1"
  else
    echo "secrets/$1 must belong to user $2: chown it as root." >&2
  fi
}

# The service is 10001, Redis 999 and Grafana 472 in their images.
[ -e secrets/seal_keys ] || openssl rand -base64 32 | tr '+/' '-_' | keep seal_keys 10001
[ -e secrets/audit_key ] || openssl rand -base64 32 | keep audit_key 10001
if ! [ -e secrets/redis_url ] || ! [ -e secrets/redis_accounts ]; then
  password=$(random)
  digest=$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)
  rights="~* +@read +@write +@scripting +@connection +select +info"
  printf 'user default off\nuser encounters on #%s %s\n' "$digest" "$rights" | keep redis_accounts 999
  printf 'redis://encounters:%s@redis:6379/0\n' "$password" | keep redis_url 10001
fi
[ -e secrets/grafana_password ] || random | keep grafana_password 472
# The variables that the mapping names: yours to fill. A file for each value in secrets/hospital,
# and its name in hospital.env, which compose itself reads: PAS_URL_FILE=/run/secrets/hospital/pas_url
[ -e secrets/hospital.env ] || : >secrets/hospital.env
if ! [ -e secrets/hospital ]; then
  mkdir -m 500 secrets/hospital
  [ "$(id -u)" != 0 ] || chown 10001 secrets/hospital
fi
