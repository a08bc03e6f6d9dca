package replay

import (
	"bytes"
	"net/netip"
)

// A line is one line of an access log, cut into the fields that can be a key. The fields are parts of the
// line as it stands: what the server escaped stays escaped. A field that is missing is empty.
type line struct {
	address, user, host []byte
	method, path, agent []byte
	second              int64  // since the Unix epoch
	cut                 string // what is missing at the line's end, "" for a whole line
}

// parse reads a line in common, combined or virtual host format. Without an address, a time and the begin of a
// request it is not one, and the reason says why.
func (l *line) parse(text []byte) (reason string) {
	*l = line{}
	text = bytes.TrimLeft(text, "\x00 \t") // a server that crashed may leave a run of NULs
	if len(text) == 0 {
		return "empty line"
	}
	end := bytes.Index(text, []byte(`] "`))
	if end < 0 {
		return "no [time] with a quoted request after it"
	}
	begin := end - stampLength
	if begin < 1 || text[begin-1] != '[' {
		begin = bytes.LastIndexByte(text[:end], '[') + 1
		if begin == 0 {
			return "no [time] with a quoted request after it"
		}
	}
	if l.second, reason = parseStamp(text[begin:end]); reason != "" {
		return reason
	}
	if l.parseWho(bytes.TrimRight(text[:begin-1], " ")); len(l.address) == 0 {
		return "no client before the [time]"
	}
	l.parseRest(text[end+2:])
	return ""
}

// parseWho reads what stands before the time: [host:port] address identity user. A user may contain spaces.
func (l *line) parseWho(text []byte) {
	first, rest, _ := bytes.Cut(text, []byte(" "))
	second, third, found := bytes.Cut(rest, []byte(" "))
	if found && bytes.IndexByte(third, ' ') >= 0 && namesHost(first, second) {
		l.host, first = first, second
		_, third, _ = bytes.Cut(third, []byte(" "))
	}
	l.address, l.user = first, known(third)
}

// namesHost tells the host and client of the virtual host format from the client and identity of the others.
func namesHost(first, second []byte) bool {
	if len(second) > 64 || bytes.IndexByte(second, '.') < 0 && bytes.IndexByte(second, ':') < 0 {
		return false
	}
	if _, err := netip.ParseAddr(string(second)); err == nil {
		return true
	}
	colon := bytes.LastIndexByte(first, ':')
	return colon > 0 && colon < len(first)-1 && len(bytes.Trim(first[colon+1:], "0123456789")) == 0
}

// parseRest reads from the request's quote on: "request" status size ["referrer" "user agent"]. What is missing
// at the end is noted, and forgiven.
func (l *line) parseRest(text []byte) {
	request, rest, closed := quoted(text)
	l.parseRequest(request)
	if !closed {
		l.cut = "the request has no closing quote"
		return
	}
	status, rest := word(rest)
	size, rest := word(rest)
	if len(status) == 0 || len(size) == 0 {
		l.cut = "no status and size after the request"
		return
	}
	if rest = bytes.TrimLeft(rest, " "); len(rest) == 0 || rest[0] != '"' {
		return
	}
	if _, rest, closed = quoted(rest); !closed {
		l.cut = "the referrer has no closing quote"
		return
	}
	if rest = bytes.TrimLeft(rest, " "); len(rest) == 0 || rest[0] != '"' {
		return
	}
	agent, _, closed := quoted(rest)
	if l.agent = known(agent); !closed {
		l.cut = "the user agent has no closing quote"
	}
}

// parseRequest reads "METHOD target HTTP/version". The path is the target up to its question mark. What is no
// request, such as the bytes of a TLS handshake, has no method and no path.
func (l *line) parseRequest(text []byte) {
	method, target, found := bytes.Cut(text, []byte(" "))
	if !found || !isMethod(method) {
		return
	}
	if i := bytes.LastIndex(target, []byte(" HTTP/")); i >= 0 {
		target = target[:i]
	}
	path, _, _ := bytes.Cut(target, []byte("?"))
	l.method, l.path = method, path
}

func isMethod(text []byte) bool {
	for _, c := range text {
		if (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return len(text) > 0 && len(text) <= 64
}

// quoted returns what stands between the quote that text begins with and the next that no backslash escapes.
func quoted(text []byte) (inside, rest []byte, closed bool) {
	text = text[1:]
	for from := 0; ; {
		i := bytes.IndexByte(text[from:], '"')
		if i < 0 {
			return text, nil, false
		}
		i += from
		slashes := i
		for slashes > from && text[slashes-1] == '\\' {
			slashes--
		}
		if (i-slashes)%2 == 0 {
			return text[:i], text[i+1:], true
		}
		from = i + 1
	}
}

// word returns the next word, and what follows it.
func word(text []byte) (first, rest []byte) {
	text = bytes.TrimLeft(text, " ")
	if i := bytes.IndexByte(text, ' '); i >= 0 {
		return text[:i], text[i:]
	}
	return text, nil
}

// known returns nothing for the ways in which logs write nothing.
func known(field []byte) []byte {
	if s := string(field); s == "-" || s == `""` {
		return nil
	}
	return field
}
