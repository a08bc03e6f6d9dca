package clients

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlimit/weir/internal/nearest"
)

// Accepted says which URLs of databases there are.
const Accepted = "sqlite:file or postgres://user:password@host:5432/database" //nolint:gosec // no password

// connectWithin bounds the making of a connection to PostgreSQL whose URL has no connect_timeout.
const connectWithin = 5 * time.Second

// A location is a database's URL, parsed: a file of SQLite, or PostgreSQL.
type location struct {
	file     string          // of SQLite, absolute
	postgres *pgx.ConnConfig // nil for SQLite
	shown    string          // the URL without password and parameters
}

func (l *location) String() string { return l.shown }

// parseURL reads the URL of a database. No error shows a password.
func parseURL(text string) (*location, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	switch scheme {
	case "sqlite":
		return parseFile(rest)
	case "postgres", "postgresql":
		return parsePostgres(text)
	}
	if text == "" {
		return nil, errors.New("clients: the database's URL is empty; accepted: " + Accepted)
	}
	// What stands before the colon may be anything if no scheme is there.
	hint := ""
	if near := nearest.Of(strings.ToLower(scheme), []string{"sqlite", "postgres", "postgresql"}); near != "" && strings.HasPrefix(text, scheme+":") {
		hint = "; did you mean " + near + ":?"
	}
	return nil, errors.New("clients: the database's URL begins with no scheme that is known" + hint + "; accepted: " + Accepted)
}

func parseFile(rest string) (*location, error) {
	path, host := rest, ""
	if after, found := strings.CutPrefix(rest, "//"); found {
		host, path, _ = strings.Cut(after, "/")
		path = "/" + path
	}
	switch {
	case host != "":
		return nil, fmt.Errorf("clients: the database's URL sqlite:%s has the host %q; accepted: sqlite:file, or sqlite:///file from the root", rest, host)
	case path == "" || path == "/" || strings.HasPrefix(path, ":") || strings.IndexByte(path, 0) >= 0:
		return nil, fmt.Errorf("clients: the database's URL sqlite:%s names no file; accepted: sqlite:file, or sqlite:///file from the root", rest)
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("clients: the file of the database's URL sqlite:%s: %w", rest, err)
	}
	return &location{file: file, shown: "sqlite:" + path}, nil
}

// errUnreadable shows nothing of the URL: where it can't be parsed, any part of it may be of a password.
var errUnreadable = errors.New("clients: the database's URL, of PostgreSQL, can't be parsed; accepted: postgres://user:password@host:5432/database and " +
	"the parameters of libpq, with what is special percent-encoded (@ is %40, / is %2F, ? is %3F, # is %23)")

func parsePostgres(text string) (*location, error) {
	_, rest, found := strings.Cut(text, "://")
	host, after := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, after = rest[:i], rest[i:]
	}
	// A second @, or one after what ends the host, says that a password ends elsewhere than it seems.
	if !found || strings.Count(host, "@") > 1 || strings.Contains(after, "@") {
		return nil, errUnreadable
	}
	if _, err := url.Parse(text); err != nil && !strings.Contains(host, ",") { // several hosts are no URL to net/url
		return nil, errUnreadable
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, errUnreadable
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectWithin
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "weir"
	}
	host = net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return &location{postgres: config, shown: "postgres://" + config.User + "@" + host + "/" + config.Database}, nil
}
