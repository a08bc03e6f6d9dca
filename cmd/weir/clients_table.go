package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

// showClients writes each client as it comes, also those that make no sense, which are an error at the end.
func showClients(w io.Writer, all iter.Seq2[clients.Client, error], asJSON bool) error {
	out := bufio.NewWriter(w)
	encode := json.NewEncoder(out)
	encode.SetEscapeHTML(false)
	bad := 0
	for c, err := range all {
		var shown any = c
		text := ""
		broken, ok := errors.AsType[*clients.RowError](err)
		switch {
		case ok:
			bad++
			shown, text = broken, brokenLine(broken)
		case err != nil:
			return errors.Join(out.Flush(), err)
		case !asJSON:
			text = clientLine(c)
		}
		if asJSON {
			err = encode.Encode(shown)
		} else {
			_, err = fmt.Fprintln(out, text)
		}
		if err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil || bad == 0 {
		return err
	}
	return fmt.Errorf("clients that make no sense: %d; a service keeps the last good row of each, or gives it the default limits", bad)
}

// brokenLine is a client that makes no sense, for people: what it has is shown as it is.
func brokenLine(b *clients.RowError) string {
	text := nameColumns(b.Client.Name)
	if b.Client.Plan != "" {
		text += " plan " + printable(b.Client.Plan)
	}
	if b.Limits != "" {
		text += " limits " + strconv.Quote(b.Limits)
	}
	return text + " MAKES NO SENSE: " + b.Err.Error()
}

// nameColumns returns a client's name beside its masked form.
func nameColumns(name string) string {
	return fmt.Sprintf("%-24s %-14s", printable(name), policy.MaskClient(name))
}

// clientLine is a client for people.
func clientLine(c clients.Client) string {
	what := "plan " + printable(c.Plan)
	if c.Plan == "" {
		what = strings.ReplaceAll(clients.FormatLimits(c.Limits), "\n", " | ")
	}
	text := nameColumns(c.Name) + fmt.Sprintf(" %-24s", what)
	if !c.From.IsZero() {
		text += " from " + c.From.Format(time.RFC3339)
	}
	if !c.Until.IsZero() {
		text += " until " + c.Until.Format(time.RFC3339)
	}
	if c.Note != "" {
		text += " # " + printable(c.Note)
	}
	return strings.TrimRight(text, " ")
}

// printable quotes what a terminal should not be sent.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}
