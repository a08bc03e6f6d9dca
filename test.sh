#!/usr/bin/env bash
# Runs the tests of weir. All stages run, whatever fails; the failures are repeated at the end.
#
#   ./test.sh        installs the engines, and runs every test with the race detector, the suites of
#                    the stores with few repetitions (-short). CI runs this
#   ./test.sh full   the same with all repetitions, and the suites of the stores a second time
#                    without the race detector
#   ./test.sh quick  installs nothing and needs only Go: no race detector, few repetitions, no test
#                    whose engine is missing, and neither examples/ nor bench/
#
# Engines are a C compiler for the race detector, Redis and its command line, memcached, PostgreSQL,
# nginx, HAProxy, curl, OpenSSL, redis-py, and Node with its Redis client. Commands that are missing are
# installed by apt-get, as root. The tests start the servers that they need on free ports of
# 127.0.0.1; servers that a Debian package starts on the usual ports are not used.
set -uo pipefail
cd "$(dirname "$0")" || exit 1

mode=${1-}
case $#$mode in
0 | 1full | 1quick) ;;
*)
  echo "test.sh: arguments $*; accepted: none, full or quick" >&2
  exit 2
  ;;
esac

log=$(mktemp -d) || exit 1
trap 'rm -rf "$log"' EXIT
failed=()

# stage NAME COMMAND... runs a command, prints how long it took, and notes whether it failed.
stage() {
  local name=$1 start=$SECONDS result=ok
  shift
  printf '=== %s: %s\n' "$name" "$*"
  if ! "$@" 2>&1 | tee "$log/$name"; then
    result=FAILED
    failed+=("$name")
  fi
  printf '=== %s: %s after %d s, %d s in all\n' "$name" "$result" $((SECONDS - start)) $SECONDS
}

install() {
  local packages=()
  need() { # need COMMAND PACKAGE...
    command -v "$1" >/dev/null || packages+=("${@:2}")
  }
  need cc gcc libc6-dev
  need redis-server redis-server
  need redis-cli redis-tools
  need memcached memcached
  # Debian's PostgreSQL is not on the PATH.
  compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || need postgres postgresql
  need nginx nginx libnginx-mod-stream
  if [[ $(nginx -V 2>&1) == *--with-stream=dynamic* && ! -e /usr/lib/nginx/modules/ngx_stream_module.so ]]; then
    packages+=(libnginx-mod-stream) # a package of its own
  fi
  need haproxy haproxy
  need curl curl
  need openssl openssl
  need node nodejs
  need npm npm
  /usr/bin/python3 -c 'import redis' 2>/dev/null || packages+=(python3 python3-redis)
  if ((${#packages[@]})); then
    echo "apt-get install ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # A mirror may be out of reach for a moment, and another apt-get may hold the lock.
    local apt=(apt-get -qq -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300)
    "${apt[@]}" update || echo 'apt-get update failed: the lists that are there are used'
    "${apt[@]}" install -y --no-install-recommends "${packages[@]}" </dev/null || return
  fi
  npm ci --silent --no-audit --no-fund --prefix internal/server/resp/testdata/node
}

# in_module DIRECTORY COMMAND...
in_module() { (cd "$1" && "${@:2}"); }

stores=(./store/memory ./store/redis ./store/postgres ./store/memcached ./store/remote)
# Packages start in this order: those that take longest come first, and overlap with the others.
all=("${stores[@]}" ./cmd/weir ./store/... ./internal/faults ./policy/... ./...)
# More packages at once than there are cores: many tests wait for engines.
# Without symbols and debug data linking takes a third less; stacks of panics are complete.
test=(go test -vet=off -ldflags=-s\ -w -timeout 30m -p $((2 * $(nproc))))
if [[ $mode == quick ]]; then
  test+=(-short)
  stage weir "${test[@]}" "${all[@]}"
else
  stage install install
  export WEIR_ENGINES=require # a test whose engine is missing fails
  test+=(-race)
  [[ $mode == full ]] || test+=(-short)
  stage weir "${test[@]}" "${all[@]}"
  [[ $mode != full ]] || stage stores go test -timeout 30m "${stores[@]}"
  stage examples in_module examples "${test[@]}" ./...
  stage bench in_module bench "${test[@]}" ./...
fi

if ((${#failed[@]})); then
  printf '\nFAILED: %s\n' "${failed[*]}"
  for name in "${failed[@]}"; do
    # Tests that failed, packages that did not build, panics and data races.
    grep -hE '^ *--- FAIL|^FAIL|^panic:|^WARNING: DATA RACE' "$log/$name" | sed "s/^/$name: /"
  done
  exit 1
fi
printf '\nok: all stages, in %d s\n' $SECONDS
