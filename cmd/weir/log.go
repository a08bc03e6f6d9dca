package main

import (
	"io"
	"log/slog"
)

// logFlags choose the form of the log and the least severe records in it.
type logFlags struct {
	Format string `name:"log-format" enum:"text,json" default:"text" placeholder:"text|json" help:"The form of the log on standard error: text or json. With json a record replaces the greeting, and a fatal error is a record, too. Default: ${default}."`
	Level  string `name:"log-level" enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"The least severe records of the log: debug, info, warn or error. Default: ${default}."`
}

// logger returns a logger that writes to w.
func (f *logFlags) logger(w io.Writer) *slog.Logger {
	var o slog.HandlerOptions
	var level slog.Level
	if level.UnmarshalText([]byte(f.Level)) == nil {
		o.Level = level
	}
	if f.json() {
		return slog.New(slog.NewJSONHandler(w, &o))
	}
	return slog.New(slog.NewTextHandler(w, &o))
}

func (f *logFlags) json() bool { return f.Format == "json" }
