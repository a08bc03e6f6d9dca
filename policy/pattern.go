package policy

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	maxPattern = 512
	maxRegexes = 256 // of all policies: each is matched against the path of every request
	// maxSteps is the most instructions of all regular expressions without a warning. One takes
	// about 10 ns for each byte of a path in the worst case: 10 ms for 2 KB.
	maxSteps    = 500
	regexPrefix = "regex:"
	pathsTaken  = "a path that begins with /, such as /login, /api/** or /users/*/posts, ** for all, or regex: and a regular expression"
)

// A pathPattern is one pattern of paths.
type pathPattern struct {
	text     string
	regex    *regexp.Regexp // or else
	segments []glob         // what stands between slashes; an empty one before the first
	deep     []bool         // which of them are **
}

func (p *problems) paths(texts []string, field string) []pathPattern {
	if texts != nil {
		p.nonEmpty(texts, field)
	}
	var list []pathPattern
	for i, text := range texts {
		f := p.one(field, i)
		if p.broken(f) {
			continue
		}
		pattern, problem := newPathPattern(text)
		if problem != "" {
			p.addf(f, "is %s; %s", short(text), problem)
		}
		if pattern.regex != nil {
			before := p.steps
			if p.steps += steps(pattern.regex); before <= maxSteps && p.steps > maxSteps {
				p.warnf(f, "brings the regular expressions of the file to %d instructions, each of which takes up to about 10 ns for each byte "+
					"of a path; accepted without a warning: at most %d in all, and patterns with * and **", p.steps, maxSteps)
			}
			if p.regexes++; p.regexes == maxRegexes+1 {
				p.addf(f, "is one more regular expression than %d in the file; accepted: at most so many, and patterns with * and **", maxRegexes)
			}
		}
		list = append(list, pattern)
	}
	return list
}

// steps returns the number of instructions of a regular expression.
func steps(r *regexp.Regexp) int {
	parsed, err := syntax.Parse(r.String(), syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// newPathPattern returns a pattern, or what is wrong with it.
func newPathPattern(text string) (p pathPattern, problem string) {
	p.text = text
	if len(text) > maxPattern {
		return p, "accepted: at most 512 bytes"
	}
	if expression, ok := strings.CutPrefix(text, regexPrefix); ok {
		_, err := regexp.Compile(expression) // by itself, so that it closes what it opens
		if err == nil {
			p.regex, err = regexp.Compile(`(?s)\A(?:` + expression + `)\z`) // . is a newline too: nothing is to hide behind one
		}
		if err != nil {
			return p, "accepted: a regular expression of RE2; " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		}
		return p, ""
	}
	if !strings.HasPrefix(text, "/") && text != "**" {
		return p, "accepted: " + pathsTaken
	}
	for segment := range strings.SplitSeq(text, "/") {
		deep := segment == "**"
		if strings.Contains(segment, "**") && !deep {
			return p, "accepted: ** between slashes, for any number of segments, and * within a segment"
		}
		p.segments, p.deep = append(p.segments, newGlob(segment)), append(p.deep, deep)
	}
	return p, ""
}

func (p *pathPattern) matches(path string) bool {
	switch {
	case p.regex != nil:
		return len(path) <= MaxRegexPath && p.regex.MatchString(path)
	case p.exact():
		return path == p.text
	}
	return p.from(path)
}

// from matches segment by segment. After a ** has matched there is no need to go back to one before it: the last is tried longer.
func (p *pathPattern) from(path string) bool {
	i, rest, more := 0, path, true // more: rest is segments, and not past the last
	back, backRest, canGoBack := 0, "", false
	for more || i < len(p.segments) {
		if i < len(p.segments) && p.deep[i] {
			if i++; i == len(p.segments) {
				return true
			}
			back, backRest, canGoBack = i, rest, more
			continue
		}
		if i < len(p.segments) && more {
			segment, next, slash := strings.Cut(rest, "/")
			if p.segments[i].matches(segment) {
				i, rest, more = i+1, next, slash
				continue
			}
		}
		if !canGoBack {
			return false
		}
		_, next, slash := strings.Cut(backRest, "/")
		i, rest, more = back, next, slash
		backRest, canGoBack = next, slash
	}
	return true
}

// exact reports whether the pattern is one path.
func (p *pathPattern) exact() bool {
	return p.regex == nil && !strings.Contains(p.text, "*")
}

// prefix returns the segments before a ** that ends the pattern, if they are without a *.
func (p *pathPattern) prefix() (segments []glob, ok bool) {
	last := len(p.segments) - 1
	if p.regex != nil || !p.deep[last] || slices.Contains(p.deep[:last], true) {
		return nil, false
	}
	for _, g := range p.segments[:last] {
		if g.wild() {
			return nil, false
		}
	}
	return p.segments[:last], true
}

// A glob is a text in which * stands for any number of any characters.
type glob struct {
	text  string
	parts []string // what stands between the stars; nil if there are none
}

func newGlob(text string) glob {
	g := glob{text: text}
	if strings.Contains(text, "*") {
		g.parts = strings.Split(text, "*")
	}
	return g
}

func (g *glob) wild() bool { return g.parts != nil }

func (g *glob) matches(text string) bool {
	if g.parts == nil {
		return text == g.text
	}
	last := len(g.parts) - 1
	rest, ok := strings.CutPrefix(text, g.parts[0])
	if !ok {
		return false
	}
	for _, part := range g.parts[1:last] { // each as early as it can be
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, g.parts[last])
}
