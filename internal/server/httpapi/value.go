package httpapi

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// text reads a JSON string.
func text(name string, value []byte, accepted string) (string, *Problem) {
	if value[0] != '"' {
		return "", refuse(name, describe(value), accepted)
	}
	return unquote(value), nil
}

// whole reads a JSON number that is whole, in digits, and at least least.
func whole(name string, value []byte, least int64, accepted string) (int64, *Problem) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < least {
		return 0, refuse(name, describe(value), accepted)
	}
	return n, nil
}

// boolean reads a JSON boolean.
func boolean(name string, value []byte) (bool, *Problem) {
	yes := string(value) == "true"
	if !yes && string(value) != "false" {
		return false, refuse(name, describe(value), "true or false")
	}
	return yes, nil
}

// describe shows a value that was refused.
func describe(value []byte) string {
	switch value[0] {
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return string(value)
}

// unquote returns the text of a valid JSON string.
func unquote(quoted []byte) (s string) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	if err := json.Unmarshal(quoted, &s); err != nil { // it is valid: can't be
		return ""
	}
	return s
}

// unpairedSurrogate reports whether a string in the JSON has half of a \ud800-style pair. Decoders read every such half
// as the same replacement character, so that different keys would become one.
func unpairedSurrogate(body []byte) bool {
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		unit := escapedUnit(body[i:])
		switch {
		case unit < 0xd800 || unit > 0xdfff:
			i++
		case unit > 0xdbff:
			return true
		default:
			if low := escapedUnit(body[i+6:]); low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		}
	}
	return false
}

// escapedUnit returns the number of the \uXXXX that b begins with, or 0 if it begins with none.
func escapedUnit(b []byte) uint64 {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(b[2:6]), 16, 64)
	if err != nil {
		return 0
	}
	return unit
}
