// Package testengine starts real engines for tests: Redis, also as a cluster and with sentinels, Valkey, memcached and
// PostgreSQL, as they are installed on the machine.
//
// Each is a process of its own on a free port of 127.0.0.1, with a directory of its own. It ends with its test, and
// also if the test binary is killed. What it logged is shown if the test fails. For an engine that several tests share
// see [Shared].
//
// A [Proxy] between a store and its engine delays, throttles, holds, drops, half-closes and resets
// connections.
//
// A test whose engine is not installed is skipped with the reason. With WEIR_ENGINES=require in the environment
// it fails instead, except for Valkey, which is always optional.
package testengine
