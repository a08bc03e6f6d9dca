package policy

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"

	"github.com/weirlimit/weir/store"
)

// A Warning reports a valid part of a configuration that may differ from its author's intention.
// [Set.Warnings] returns the warnings about the configuration in use. A Set logs them when it loads
// a configuration.
type Warning struct { //nolint:errname // nothing fails by it
	ConfigError // the place, the field and the message

	// Note marks a remark without a remedy, such as the meaning of a unit. weir policy check
	// --strict accepts notes. The zero value is a warning.
	Note bool
}

// String returns file:line:column: warning: field and message, or note: in place of warning:.
// Without a file it begins with weir:.
func (w *Warning) String() string {
	if w.File == "" {
		return fmt.Sprintf("weir: %s: %s", w.severity(), w.text())
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", w.File, w.Line, w.Column, w.severity(), w.text())
}

func (w *Warning) severity() string {
	if w.Note {
		return "note"
	}
	return "warning"
}

// logWarnings logs the first warnings, notes at the level of information, and how many follow.
func logWarnings(log *slog.Logger, warnings []Warning) {
	for i := range warnings {
		if i == maxShown {
			log.Warn("policies: more warnings; weir policy check shows all", "more", len(warnings)-i)
			return
		}
		w, write := &warnings[i], log.Warn
		if w.Note {
			write = log.Info
		}
		write("policies: "+w.text(), "file", w.File, "line", w.Line, "column", w.Column)
	}
}

// warnf adds a warning about a field. The message follows the name of the field.
func (p *problems) warnf(field, format string, args ...any) { p.remarkf(false, field, format, args...) }

// notef adds a note about a field.
func (p *problems) notef(field, format string, args ...any) { p.remarkf(true, field, format, args...) }

func (p *problems) remarkf(note bool, field, format string, args ...any) {
	pos := p.position(field)
	p.warnings = append(p.warnings, Warning{Note: note, ConfigError: ConfigError{
		File: p.config.file, Line: pos.line, Column: pos.column, Field: field, Problem: fmt.Sprintf(format, args...),
	}})
}

// sortedWarnings returns the warnings in the order of the file.
func (p *problems) sortedWarnings() []Warning {
	slices.SortStableFunc(p.warnings, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return p.warnings
}

// warnSkipped logs that limits that are not enforced were not decided. It is silent about an open
// circuit, which the owner of the store logs when it opens.
func (s *Set) warnSkipped(policy string, err error) {
	if !store.IsCircuitOpen(err) {
		s.skipped.Warn(s.log, "limits that are not enforced were not decided", err, "policy", policy)
	}
}
