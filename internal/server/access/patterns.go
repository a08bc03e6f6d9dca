package access

import (
	"slices"
	"strings"
)

// patterns is a set of texts and prefixes. The zero value matches nothing.
type patterns struct {
	all bool // matches every text
	// list is sorted. No prefix of it begins another element, so only the last element up to a text
	// can match the text.
	list []pattern
	// first narrows the search, in a list of several: list[first[b]:first[b+1]] are the elements with
	// the byte b after the first common bytes, which all elements share. first[0] elements have no
	// more bytes: one or none.
	first  *[257]uint8
	common int
}

// A pattern is a text, or a prefix of texts.
type pattern struct {
	text   string
	prefix bool
}

// newPatterns returns the set of patterns as the file has them: a text, or a prefix and *.
func newPatterns(texts []string) (p patterns) {
	for _, text := range texts {
		text, prefix := strings.CutSuffix(text, "*")
		p.all = p.all || prefix && text == ""
		p.list = append(p.list, pattern{text, prefix})
	}
	if p.all {
		return patterns{all: true}
	}
	slices.SortFunc(p.list, func(a, b pattern) int {
		if c := strings.Compare(a.text, b.text); c != 0 || a.prefix == b.prefix {
			return c
		}
		if a.prefix { // before the equal text, which it matches
			return -1
		}
		return 1
	})
	kept := p.list[:0]
	for _, next := range p.list {
		if n := len(kept); n == 0 || !kept[n-1].match(next.text) {
			kept = append(kept, next)
		}
	}
	p.list = kept
	p.index()
	return p
}

// index sets first and common. A list has at most maxPatterns elements, which is less than 256.
func (p *patterns) index() {
	if len(p.list) < 2 {
		return
	}
	begin, end := p.list[0].text, p.list[len(p.list)-1].text // in order, so all others are between them
	for p.common < min(len(begin), len(end)) && begin[p.common] == end[p.common] {
		p.common++
	}
	p.first = new([257]uint8)
	for _, each := range p.list {
		after := 0 // elements of this byte and above come after it
		if len(each.text) > p.common {
			after = int(each.text[p.common]) + 1
		}
		for b := after; b < len(p.first); b++ {
			p.first[b]++
		}
	}
}

func (p pattern) match(text string) bool {
	if p.prefix {
		return strings.HasPrefix(text, p.text)
	}
	return text == p.text
}

// match reports whether one of the patterns matches the text.
func (p *patterns) match(text string) bool {
	if p.all {
		return true
	}
	low, high := 0, len(p.list)
	switch {
	case p.first == nil:
	case len(text) < p.common:
		return false
	case len(text) == p.common:
		high = int(p.first[0])
	default:
		low, high = int(p.first[text[p.common]]), int(p.first[int(text[p.common])+1])
	}
	for high-low > 1 {
		if middle := int(uint(low+high) >> 1); p.list[middle].text <= text {
			low = middle
		} else {
			high = middle
		}
	}
	return low < high && p.list[low].match(text)
}
