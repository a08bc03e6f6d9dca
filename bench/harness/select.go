package harness

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// A Keyed is a contender, with its name, or a workload, with its short name.
type Keyed interface{ Key() string }

// Find returns the element of a name, or an error that lists the names. kind is for the error.
func Find[T Keyed](kind, name string, all []T) (T, error) {
	i := slices.IndexFunc(all, func(e T) bool { return e.Key() == name })
	if i < 0 {
		var none T
		return none, fmt.Errorf("%s is %q; accepted: %s", kind, name, keys(all))
	}
	return all[i], nil
}

// Contenders returns the elements whose name has one of the parts of -only.
func Contenders[T Keyed](s Settings, all []T) ([]T, error) {
	return choose("only", s.Only, all, func(e T) bool {
		for part := range strings.SplitSeq(s.Only, ";") {
			if strings.Contains(e.Key(), strings.TrimSpace(part)) {
				return true
			}
		}
		return false
	})
}

// Workloads returns the elements that -workloads names.
func Workloads[T Keyed](s Settings, all []T) ([]T, error) {
	return choose("workloads", s.Workloads, all, func(e T) bool {
		return s.Workloads == "" || slices.Contains(strings.Split(s.Workloads, ","), e.Key())
	})
}

func choose[T Keyed](flag, value string, all []T, want func(T) bool) ([]T, error) {
	some := slices.DeleteFunc(slices.Clone(all), func(e T) bool { return !want(e) })
	if len(some) == 0 {
		return nil, fmt.Errorf("-%s is %q, which selects none; accepted: %s", flag, value, keys(all))
	}
	return some, nil
}

func keys[T Keyed](all []T) string {
	var names []string
	for _, e := range all {
		names = append(names, e.Key())
	}
	return strings.Join(names, "; ")
}

// Versions lists the modules of this build whose path has one of the parts, with their versions.
func Versions(parts ...string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var v []string
	for _, d := range info.Deps {
		if slices.ContainsFunc(parts, func(part string) bool { return part != "" && strings.Contains(d.Path, part) }) {
			v = append(v, d.Path+" "+d.Version)
		}
	}
	return strings.Join(v, ", ")
}
