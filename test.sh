#!/usr/bin/env bash
# Runs every test, after installing what the tests run against: a C compiler for the race detector, Redis' server and
# clients, memcached, PostgreSQL, nginx, HAProxy, curl, python3-redis, and Node with its redis client. It needs Go, and, where one of
# these is missing, Debian's apt-get and root. The tests start what they need themselves, on free ports: whatever a package
# of Debian's starts on the usual ones is not used.
set -euo pipefail
cd "$(dirname "$0")"

packages=()
need() { # need COMMAND PACKAGE...
  command -v "$1" >/dev/null || packages+=("${@:2}")
}
need cc gcc libc6-dev
need redis-server redis-server
need redis-cli redis-tools
need memcached memcached
compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || need postgres postgresql # Debian's is not on the PATH
need nginx nginx libnginx-mod-stream
if [[ $(nginx -V 2>&1) == *--with-stream=dynamic* && ! -e /usr/lib/nginx/modules/ngx_stream_module.so ]]; then
  packages+=(libnginx-mod-stream) # nginx is there, and its module is a package of its own
fi
need haproxy haproxy
need curl curl
need node nodejs
need npm npm
/usr/bin/python3 -c 'import redis' 2>/dev/null || packages+=(python3 python3-redis)
if ((${#packages[@]})); then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${packages[@]}" </dev/null # nothing to ask
fi
npm ci --silent --no-audit --no-fund --prefix server/resp/testdata/node

export WEIR_ENGINES=require # a test whose engine is missing fails
go vet ./...

# The suite of the stores takes the race detector minutes for each engine: with it they are tested in short, and without it at full size.
stores=(./store/memory ./store/redis ./store/postgres ./store/memcached ./store/remote)
mapfile -t others < <(go list ./... | grep -vE '/store/(memory|redis|postgres|memcached|remote)$')
go test -race "${others[@]}"
go test -race -short "${stores[@]}"
go test -timeout 15m "${stores[@]}"
(cd examples && go vet ./... && go test ./...) # chi, gin and echo, in a module of its own
cd bench
go vet ./...
go test ./...
