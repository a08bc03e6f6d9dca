package middleware

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weirlimit/weir/bench/report"
)

// fields lists the header fields that each contender writes, and the length of the body of a denial.
func (p plan) fields() (*report.Table, error) {
	t := &report.Table{Head: []string{"", "on every answer", "on a denial besides", "bytes of its body"}}
	for _, c := range p.contenders {
		wrap, err := c.New(spent)
		if err != nil {
			return nil, err
		}
		one, cancel := newCaller(wrap(http.HandlerFunc(noContent)))
		addr := each(1).addr(0)
		one.call(addr)
		passed := slices.Sorted(maps.Keys(one.response.header))
		denied, body := "–", "–"
		if one.call(addr) == http.StatusTooManyRequests {
			more := slices.Sorted(maps.Keys(one.response.header))
			more = slices.DeleteFunc(more, func(name string) bool { return slices.Contains(passed, name) })
			denied, body = list(more), strconv.Itoa(one.response.bytes)
		}
		cancel()
		t.Add(c.Name, list(passed), denied, body)
	}
	return t, nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
