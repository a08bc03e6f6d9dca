package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/replay"
)

// replayCommand is `weir replay`: what limits would have done to the traffic of access logs.
type replayCommand struct {
	Limit      []weir.Limit  `required:"" sep:"none" placeholder:"TEXT" help:"Limit to try, such as \"60/1m\" or \"gcra 10/1s burst=20\". Given several times, the limits are compared on the same traffic."`
	Key        replay.Key    `default:"client_ip" placeholder:"FIELDS" help:"The identity of a client: client_ip (IPv6 by its first 64 bits, as in policies), client_ip/48, client_ip/24/64, user, method, path, host, user-agent, or several with commas between. Default: ${default}."`
	Cost       int64         `default:"1" help:"Units that each request takes."`
	Window     time.Duration `default:"1m" help:"How far out of order lines may be. Requests further behind, or further ahead of those around them, count at the newest time seen."`
	Top        int           `default:"10" help:"How many of the clients denied most to show."`
	Bucket     time.Duration `default:"0s" help:"Width of the timeline's buckets; 0s chooses one."`
	MaxClients int           `default:"10000000" help:"Stop with an error at more clients than this, to bound the memory."`
	JSON       bool          `name:"json" help:"Write the report as JSON."`
	Logs       []string      `arg:"" optional:"" name:"log" help:"Access logs in common or combined format, plain or gzip; - or none is standard input. Several are merged by time."`
}

// Run writes the report to the program's standard output. The end of ctx ends it.
func (c *replayCommand) Run(ctx context.Context, k *kong.Context) error {
	progress := progressOn(os.Stderr)
	if c.JSON {
		progress = noProgress
	}
	return c.replay(ctx, os.Stdin, k.Stdout, progress)
}

// replay does the work of Run. It returns an error after the report when not one line was a request.
func (c *replayCommand) replay(ctx context.Context, stdin io.Reader, stdout io.Writer, progress progress) error {
	names := c.Logs
	if len(names) == 0 {
		if f, ok := stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return errors.New("replay: no log given, and standard input is a terminal; accepted: access logs, or - to read what you type")
		}
		names = []string{"-"}
	}
	logs, err := replay.Open(names, stdin)
	if err != nil {
		return err
	}
	defer func() { _ = logs.Close() }() // they were only read
	tell, done := progress(logs.Size)
	report, err := replay.Run(ctx, logs.List, replay.Options{
		Limits: c.Limit, Key: c.Key, Cost: c.Cost, Window: c.Window, Top: c.Top, Bucket: c.Bucket,
		MaxClients: c.MaxClients, Progress: tell,
	})
	done()
	if err != nil {
		return err
	}
	write := report.WriteText
	if c.JSON {
		write = report.WriteJSON
	}
	if err := write(stdout); err != nil {
		return err
	}
	if report.Requests == 0 && report.Lines > 0 {
		return fmt.Errorf("replay: none of %d lines is a request; accepted: common or combined log format", report.Lines)
	}
	return nil
}

// A progress starts to show progress of so many bytes, -1 when that is not known.
type progress func(size int64) (tell func(bytes int), done func())

// progressOn shows a bar if f is a terminal.
func progressOn(f *os.File) progress {
	if !term.IsTerminal(int(f.Fd())) {
		return noProgress
	}
	return func(size int64) (func(int), func()) {
		bar := progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(f), progressbar.OptionShowBytes(true), progressbar.OptionSetDescription("reading"),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
		// That a bar can't be drawn is no reason to stop.
		return func(n int) { _ = bar.Add(n) }, func() { _ = bar.Finish() }
	}
}

func noProgress(int64) (func(int), func()) { return nil, func() {} }
