package header

import "github.com/dunglas/httpsfv"

// The most that is read of a field of another server's answer: more is not what one says of its limits.
const (
	mostBytes   = 8 << 10
	mostMembers = 64
)

// The most that is read of a field of an answer that this program is about to give: what middleware of one handler has told of is not lost because there is more of it.
const (
	mostBytesTold   = 64 << 10
	mostMembersTold = 1024
)

// A member of a list whose value is a String, as all of RateLimit-Policy and RateLimit are.
type member struct {
	name, text string // text is canonical
	params     *httpsfv.Params
}

// members reads a list that a server has sent.
func members(lines []string) []member { return membersUpTo(lines, mostBytes, mostMembers) }

// membersTold reads a list that middleware has written, or a handler.
func membersTold(lines []string) []member { return membersUpTo(lines, mostBytesTold, mostMembersTold) }

// membersUpTo reads a list line by line, so that a malformed line spoils no other, and leaves out what is no String.
func membersUpTo(lines []string, mostBytes, mostMembers int) (found []member) {
	read := 0
	for _, line := range lines {
		if read += len(line); read > mostBytes {
			break
		}
		list, err := httpsfv.UnmarshalList([]string{line})
		if err != nil {
			continue
		}
		for _, m := range list {
			item, ok := m.(httpsfv.Item)
			name, isString := item.Value.(string)
			if !ok || !isString || len(found) == mostMembers {
				continue
			}
			if text, err := httpsfv.Marshal(item); err == nil {
				found = append(found, member{name, text, item.Params})
			}
		}
	}
	return found
}

// integer returns a parameter that is an Integer of at least the lowest.
func (m *member) integer(key string, lowest int64) (n int64, there, ok bool) {
	value, there := m.params.Get(key)
	n, ok = value.(int64)
	return n, there, ok && n >= lowest
}

// A quota is what RateLimit-Policy says of a limit.
type quota struct {
	count  int64
	period int64 // seconds; 0 if it does not say
	unit   string
}

// policyOf returns what a member of RateLimit-Policy says, or nil if it is malformed.
func policyOf(m member) *quota {
	count, _, ok := m.integer("q", 0)
	period, limited, fine := m.integer("w", 1)
	if !ok || limited && !fine || !m.partitioned() {
		return nil
	}
	unit, there := m.params.Get("qu")
	text, isString := unit.(string)
	if there && !isString {
		return nil
	}
	return &quota{count, period, text}
}

// A left is what RateLimit says of a limit.
type left struct{ remaining, within int64 }

// limitOf returns what a member of RateLimit says, or nil if it is malformed.
func limitOf(m member) *left {
	remaining, _, ok := m.integer("r", 0)
	within, limited, fine := m.integer("t", 0)
	if !ok || limited && !fine || !m.partitioned() {
		return nil
	}
	return &left{remaining, within}
}

// partitioned reports whether the partition key is a Byte Sequence, if there is one.
func (m *member) partitioned() bool {
	key, there := m.params.Get("pk")
	_, ok := key.([]byte)
	return !there || ok
}
