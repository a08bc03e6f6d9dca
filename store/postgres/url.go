package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ours begins the parameters of this package.
const ours = "weir_"

// defaultConns is more than pgx has: a statement that waits for a row which somebody else holds keeps its connection up to the timeout,
// and keys that are free should find another.
const defaultConns = 16

// parse takes the parameters of this package out of a URL, and leaves the rest to pgx. No error shows a password.
func parse(text string, o Options) (*pgxpool.Config, Options, error) {
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return nil, o, errors.New("postgres: URL does not begin with postgres:// or postgresql://; accepted: postgres://user:password@host:5432/database")
	}
	if isCut(text) {
		return nil, o, errCut
	}
	base, query, _ := strings.Cut(text, "?")
	var theirs []string
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, ours) {
			theirs = append(theirs, pair)
			continue
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return nil, o, fmt.Errorf("postgres: URL has %s with %w", name, err)
		}
		if seen[name] {
			return nil, o, fmt.Errorf("postgres: URL has %s twice; accepted: once", name)
		}
		seen[name] = true
		if err := setOption(&o, name, value); err != nil {
			return nil, o, err
		}
	}
	if query = strings.Join(theirs, "&"); query != "" {
		base += "?" + query
	}
	config, err := pgxpool.ParseConfig(base)
	if err != nil {
		return nil, o, unreadable(base, err)
	}
	if said, err := pgconn.ParseConfig(base); err == nil && said.RuntimeParams["pool_max_conns"] == "" {
		config.MaxConns = max(config.MaxConns, defaultConns)
	}
	return config, o, nil
}

// errCut shows nothing of a URL with a password that ends too early: each part of it may be of the
// password.
var errCut = errors.New("postgres: URL has an @ that is not the one before the host; " +
	"accepted: a password that is percent-encoded (@ is %40, / is %2F, ? is %3F, # is %23), and so are names and parameters")

// isCut reports whether a URL has more than one @, or has it after what ends the host.
func isCut(text string) bool {
	_, rest, _ := strings.Cut(text, "://")
	host, after := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, after = rest[:i], rest[i:]
	}
	return strings.Count(host, "@") > 1 || strings.Contains(after, "@")
}

func setOption(o *Options, name, value string) (err error) {
	accepted := "on or off"
	switch name {
	case "weir_table":
		o.Table, accepted = value, "a name"
	case "weir_prefix":
		o.Prefix = value
	case "weir_unlogged":
		o.Unlogged, err = onOff(value)
	case "weir_migrate":
		o.NoMigrate, err = onOff(value)
		o.NoMigrate = !o.NoMigrate
	case "weir_timeout":
		accepted = "a duration above 0, such as 500ms"
		if o.Timeout, err = time.ParseDuration(value); err == nil && o.Timeout <= 0 {
			err = errNotAccepted
		}
	case "weir_max_calls":
		accepted = "a number above 0"
		if o.MaxCalls, err = strconv.Atoi(value); err == nil && o.MaxCalls < 1 {
			err = errNotAccepted
		}
	case "weir_lazy":
		o.Lazy, err = onOff(value)
	default:
		return fmt.Errorf("postgres: URL has the parameter %.50q; accepted: weir_table, weir_prefix, weir_unlogged, weir_timeout, "+
			"weir_max_calls, weir_lazy, weir_migrate, and those of libpq", name)
	}
	if err != nil || value == "" {
		return fmt.Errorf("postgres: %s is %.50q; accepted: %s", name, value, accepted)
	}
	return nil
}

var errNotAccepted = errors.New("not accepted")

func onOff(value string) (bool, error) {
	switch value {
	case "on", "true", "1":
		return true, nil
	case "off", "false", "0":
		return false, nil
	}
	return false, errNotAccepted
}

// unreadable is an error of pgx about a URL, without the URL, in which it might not find every password.
func unreadable(text string, err error) error {
	why := "it can't be parsed"
	var parsing *pgconn.ParseConfigError
	switch inner := errors.Unwrap(err); {
	case !errors.As(err, &parsing):
		why = err.Error()
	case inner != nil:
		why = inner.Error()
	}
	if _, e := url.Parse(text); e != nil || hasPassword(text, why) { // where it is in pieces, a piece may be of a password
		why = "it can't be parsed"
	}
	return fmt.Errorf("postgres: URL: %s; accepted: postgres://user:password@host:5432/database and the parameters of libpq", why)
}

// hasPassword reports whether a message repeats a password of a URL.
func hasPassword(text, message string) bool {
	_, rest, _ := strings.Cut(text, "://")
	user, query, _ := strings.Cut(rest, "?")
	secrets := []string{}
	if i := strings.LastIndexByte(user, '@'); i >= 0 {
		_, secret, _ := strings.Cut(user[:i], ":")
		secrets = append(secrets, secret)
	}
	for pair := range strings.SplitSeq(query, "&") {
		if name, secret, _ := strings.Cut(pair, "="); strings.Contains(name, "pass") {
			secrets = append(secrets, secret)
		}
	}
	for _, s := range secrets {
		plain, err := url.QueryUnescape(s)
		if s != "" && (strings.Contains(message, s) || err == nil && strings.Contains(message, plain)) {
			return true
		}
	}
	return false
}
