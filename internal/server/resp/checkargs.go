package resp

import (
	"strings"

	"github.com/weirlimit/weir/internal/server/checks"
)

// checkSizes are the words of a check, and how many arguments each is with its values.
var checkSizes = map[string]int{
	"METHOD": 2, "HOST": 2, "PATH": 2, "QUERY": 2, "IP": 2, "COST": 2, "HOLD": 2, "ONERROR": 2, "HEADER": 3, "ATTR": 3,
}

const checkWords = "METHOD m, HOST h, PATH p, QUERY q, IP address, COST n, HOLD milliseconds, ONERROR deny|allow|local, each once; and HEADER name value, ATTR name value"

// checkArgs is what the arguments of a check say. It copies what it keeps of them.
type checkArgs struct {
	checks.Request

	seen map[string]bool
}

// read reads a word and its values, and returns what follows; or says what is wrong with them.
func (q *checkArgs) read(args [][]byte) (rest [][]byte, refusal string) {
	word := strings.ToUpper(string(args[0]))
	size := checkSizes[word]
	switch {
	case size == 0 || q.seen[word]:
		return nil, "syntax error at " + excerpt(args[0]) + "; accepted: " + checkWords
	case len(args) < size:
		return nil, "syntax error: " + excerpt(args[0]) + " needs " + []string{"a value", "a name and a value"}[size-2]
	case size == 2:
		if q.seen == nil {
			q.seen = map[string]bool{}
		}
		q.seen[word] = true
	}
	return args[size:], q.set(word, args[1:size])
}

func (q *checkArgs) set(word string, values [][]byte) (refusal string) {
	value := string(values[len(values)-1])
	switch word {
	case "METHOD":
		q.Method = value
	case "HOST":
		q.Host = value
	case "PATH":
		return refused(word, q.SetPath(value))
	case "QUERY":
		q.RawQuery = value
	case "ONERROR":
		return refused(word, q.SetOnError(value))
	case "IP":
		return refused(word, q.SetAddress(value))
	case "HEADER":
		return refused(word, q.AddHeader(string(values[0]), value))
	case "ATTR":
		return refused(word, q.AddAttribute(string(values[0]), value))
	default:
		return q.setNumber(word, values[0])
	}
	return ""
}

// setNumber sets the COST or the HOLD.
func (q *checkArgs) setNumber(word string, value []byte) (refusal string) {
	set, accepted := q.SetCost, checks.CostAccepted
	if word == "HOLD" {
		set, accepted = q.SetHold, checks.HoldAccepted
	}
	n, ok := parseInt(value)
	if !ok {
		return refused(word, &checks.Refusal{Value: string(value), Accepted: accepted})
	}
	return refused(word, set(n))
}

// refused says what a refusal is about, if there is one.
func refused(word string, r *checks.Refusal) string {
	if r == nil {
		return ""
	}
	return word + " is " + excerpt([]byte(r.Value)) + "; accepted: " + r.Accepted
}
