package identity

import (
	"net/netip"
	"slices"
	"strings"
)

// Bounds on what is read of what proxies say.
const (
	maxHops    = 32  // elements
	maxElement = 512 // bytes of an element
)

// told returns the address that trusted proxies tell in the lines of their field, or an invalid one if they don't.
func (c *ClientIP) told(lines []string) (client netip.Addr, text string) {
	if len(lines) > 1 && c.single() {
		return client, ""
	}
	hops := 0
	for _, line := range slices.Backward(lines) {
		for rest, more := line, true; more; {
			var element string
			element, rest, more = c.last(rest)
			if hops++; hops > maxHops || len(element) > maxElement {
				return netip.Addr{}, ""
			}
			node, ok := c.node(element)
			if !ok {
				return netip.Addr{}, ""
			}
			client, text = parseNode(node)
			if !client.IsValid() || !c.trusts(client) {
				return client, text
			}
		}
	}
	return client, text
}

// single reports whether the field has one address, and not a list.
func (c *ClientIP) single() bool { return c.field != "X-Forwarded-For" && c.field != "Forwarded" }

// wholeLine takes a line as one element.
func wholeLine(line string) (element, rest string, more bool) { return line, "", false }

// lastOfList cuts off the last element of a list. Of one that is too long it returns too much, and no more.
func lastOfList(list string) (element, rest string, more bool) {
	from := max(0, len(list)-maxElement-1)
	if i := strings.LastIndexByte(list[from:], ','); i >= 0 {
		return list[from+i+1:], list[:from+i], true
	}
	return list, "", false
}

// lastForwarded is lastOfList for lists whose elements have quoted strings. Read from its end, a text is the same list whatever stands left of it, so
// that a quote or a backslash that a client leaves open does not reach what a proxy has added. There, what opens quotes stands behind a = and not behind a backslash:
// a quote that does is in quotes, or ends them.
func lastForwarded(list string) (element, rest string, more bool) {
	inQuotes := false
	for i := len(list) - 1; i >= max(0, len(list)-maxElement-1); i-- {
		switch list[i] {
		case '"':
			if !inQuotes || i == 0 || list[i-1] != '\\' {
				inQuotes = !inQuotes
			}
		case ',':
			if !inQuotes {
				return list[i+1:], list[:i], true
			}
		}
	}
	return list, "", false
}

// plainNode is an element that is a node and nothing else.
func plainNode(element string) (node string, ok bool) { return strings.Trim(element, " \t"), true }

// forwardedFor returns the value of for in an element of Forwarded, which must be there once: for=192.0.2.43;proto=http. Names are in any case. Spaces around
// the semicolons, and colons and brackets outside of quotes, are not in RFC 7239, but they are sent, and mean one thing only.
func forwardedFor(element string) (node string, ok bool) {
	for rest := element; ; {
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return node, ok
		}
		if rest[0] == ';' {
			rest = rest[1:]
			continue
		}
		name, after, _ := strings.Cut(rest, "=")
		value, after, valid := forwardedValue(after)
		after = strings.TrimLeft(after, " \t")
		if !valid || !isToken(name) || after != "" && after[0] != ';' {
			return "", false
		}
		if strings.EqualFold(name, "for") {
			if ok {
				return "", false
			}
			node, ok = value, true
		}
		rest = after
	}
}

// forwardedValue reads the value that a text begins with, in quotes or not, and returns what follows it.
func forwardedValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, " \t;")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], isToken(strings.Map(asToken, text[:end]))
	}
	var unescaped []byte
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			if unescaped != nil {
				return string(unescaped), text[i+1:], true
			}
			return text[1:i], text[i+1:], true
		case '\\':
			if unescaped == nil {
				unescaped = append(make([]byte, 0, len(text)), text[1:i]...)
			}
			if i++; i < len(text) {
				unescaped = append(unescaped, text[i])
			}
		default:
			if unescaped != nil {
				unescaped = append(unescaped, text[i])
			}
		}
	}
	return "", "", false
}

// asToken takes what is sent in values without quotes for something that may be there.
func asToken(c rune) rune {
	if c == ':' || c == '[' || c == ']' {
		return '-'
	}
	return c
}
