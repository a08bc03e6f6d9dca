package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/weirlimit/weir/internal/engines"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/policy"
)

type policyExplain struct {
	Path    string   `arg:"" help:"The path, as in a URL; it may have a ?query, and a scheme and host before it."`
	Method  string   `short:"X" default:"GET" placeholder:"METHOD" help:"The method. Default: ${default}."`
	Header  []string `sep:"none" placeholder:"'NAME: VALUE'" help:"A header. Give it several times for several."`
	IP      string   `name:"ip" placeholder:"ADDRESS" help:"The client's address."`
	Host    string   `help:"The host, if it is not in the path."`
	Attr    []string `sep:"none" placeholder:"NAME=VALUE" help:"An attribute. Give it several times for several."`
	Cost    *int64   `placeholder:"N" help:"What the request costs, whatever the policies say."`
	Config  string   `env:"WEIR_CONFIG" default:"weir.yaml" placeholder:"FILE" help:"The policies. Default: ${default}."`
	Store   string   `default:"memory" env:"WEIR_STORE" placeholder:"URL" help:"Where the state is: ${store}. With memory no request has come before. Default: ${default}."`
	Clients string   `env:"WEIR_CLIENTS" placeholder:"URL" help:"The database of clients, in place of that in the policies: ${clients}."`
	JSON    bool     `name:"json" help:"Write it as JSON."`
}

// Run explains the request.
func (c *policyExplain) Run(ctx context.Context, p *program) (err error) {
	request, err := c.request()
	if err != nil {
		return err
	}
	o := policy.Options{}
	if c.Store != server.InMemory {
		s, err := engines.Open(ctx, c.Store, engines.Options{})
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }() // it was only read
		o.Store = s
	}
	set, err := policy.Load(ctx, c.Config, o)
	if err != nil {
		return err
	}
	if database := cmp.Or(c.Clients, set.Config().Clients.Database); database != "" {
		bad, err := loadClients(ctx, set, database)
		if err != nil {
			return err
		}
		if len(bad) > 0 {
			_, _ = fmt.Fprintf(p.stderr, "clients that make no sense, and have the default limits here: %d, the first: %v\n", len(bad), bad[0])
		}
	}
	explanation, err := set.Explain(ctx, request)
	if err != nil {
		return err
	}
	if !c.JSON {
		return explanation.WriteText(p.stdout)
	}
	e := json.NewEncoder(p.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(explanation)
}

// request returns what is to be explained.
func (c *policyExplain) request() (*policy.Request, error) {
	var q checks.Request
	q.Method, q.Host = c.Method, c.Host
	if err := c.setURL(&q); err != nil {
		return nil, err
	}
	if c.Cost != nil {
		if err := refused("--cost", q.SetCost(*c.Cost)); err != nil {
			return nil, err
		}
	}
	if c.IP != "" {
		if err := refused("--ip", q.SetAddress(c.IP)); err != nil {
			return nil, err
		}
	}
	for _, text := range c.Header {
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return nil, fmt.Errorf("--header is %q; accepted: a name, a colon and a value, such as 'Accept: text/html'", text)
		}
		if err := refused("--header", q.AddHeader(name, strings.TrimSpace(value))); err != nil {
			return nil, err
		}
	}
	for _, text := range c.Attr {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--attr is %q; accepted: a name, = and a value, such as tenant=acme", text)
		}
		if err := refused("--attr", q.AddAttribute(name, value)); err != nil {
			return nil, err
		}
	}
	return &q.Request, nil
}

// setURL reads the path, with what may stand around it.
func (c *policyExplain) setURL(q *checks.Request) error {
	u, err := url.ParseRequestURI(c.Path)
	if err != nil {
		return fmt.Errorf("path is %q; accepted: a path such as /login?page=2, percent-encoded, or a URL", c.Path)
	}
	switch {
	case u.Host != "" && c.Host != "":
		return fmt.Errorf("--host is %q, and the path has the host %q; accepted: one of them", c.Host, u.Host)
	case u.Host != "":
		q.Host = u.Host
	}
	q.Path, q.RawQuery = u.Path, u.RawQuery
	return nil
}

func refused(flag string, r *checks.Refusal) error {
	if r == nil {
		return nil
	}
	return fmt.Errorf("%s is %s; accepted: %s", flag, r.Value, r.Accepted)
}
