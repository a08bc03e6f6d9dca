package admission

import (
	"maps"
	"sync/atomic"

	"github.com/weirlimit/weir"
)

// mostNames is how many limits' texts are kept.
const mostNames = 256

// names keeps the texts of limits, so that they are not written for each request.
type names struct {
	last  atomic.Pointer[named]
	texts atomic.Pointer[map[weir.Limit]string]
}

// named is a limit and its text.
type named struct {
	limit weir.Limit
	text  string
}

// name is what clients are told that a limiter is called.
func (g *Gate) name(l *weir.Limiter) string {
	if g.opts.Name != "" && l == g.limiter {
		return g.opts.Name
	}
	return g.names.of(l.Limit())
}

// of returns the limit's text. It is nearly always that of last time.
func (n *names) of(limit weir.Limit) string {
	last := n.last.Load()
	if last != nil && last.limit == limit {
		return last.text
	}
	texts := n.texts.Load()
	if texts != nil {
		if text, ok := (*texts)[limit]; ok {
			return text
		}
	}
	text := limit.String()
	if last == nil {
		n.last.Store(&named{limit, text})
		return text
	}
	more := map[weir.Limit]string{}
	if texts != nil && len(*texts) < mostNames {
		more = maps.Clone(*texts)
	}
	more[limit] = text
	n.texts.Store(&more) // who comes between keeps his text for the next time
	return text
}
