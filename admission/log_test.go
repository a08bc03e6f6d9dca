package admission_test

import (
	"io"
	"log/slog"
)

var silent = slog.New(slog.DiscardHandler)

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
