package resp

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parsed is what a parser makes of an input.
type parsed struct {
	commands [][]string
	err      string
	rest     int // bytes after the last whole command; not compared after an error
}

// parseAll feeds the input in chunks whose sizes come round, into a buffer as a connection has it. It looks at
// the buffer only when the parser said that this is of use.
func parseAll(t *testing.T, p parser, input []byte, chunks []int) (out parsed) {
	var buf []byte
	need := 1
	for i := 0; len(input) > 0; i++ {
		n := min(max(chunks[i%len(chunks)], 1), len(input))
		buf, input = append(buf, input[:n]...), input[n:]
		for len(buf) >= max(need, 1) {
			args, size, more, err := p.next(slices.Clip(buf), nil)
			if err != nil {
				out.err = err.Error()
				return out
			}
			if size == 0 && more <= len(buf) || size > len(buf) {
				t.Fatalf("next returned size %d and need %d for a buffer of %d bytes", size, more, len(buf))
			}
			if need = more; size == 0 {
				break
			}
			if len(args) > 0 {
				out.commands = append(out.commands, texts(args))
			}
			buf = buf[size:]
		}
	}
	out.rest = len(buf)
	return out
}

func texts(args [][]byte) (list []string) {
	for _, a := range args {
		list = append(list, string(a))
	}
	return list
}

func smallParser() parser { return parser{maxCommand: 200, maxInline: 64, maxArgs: 8} }

func TestParserFindsCommands(t *testing.T) {
	for _, c := range []struct {
		input string
		want  string
	}{
		{"PING\r\n", `[["PING"]] "" 0`},
		{"PING\nPING x", `[["PING"]] "" 6`},
		{"\r\n\n  \r\nPING\r\n", `[["PING"]] "" 0`},
		{"*1\r\n$4\r\nPING\r\n", `[["PING"]] "" 0`},
		{"*2\r\n$4\r\nECHO\r\n$0\r\n\r\nPING\r\n", `[["ECHO" ""] ["PING"]] "" 0`},
		{"*1\r\n$5\r\na\r\nbc\r\n", `[["a\r\nbc"]] "" 0`},
		{"*0\r\n*-1\r\nPING\r\n", `[["PING"]] "" 0`},
		{"*1\r\n$4\r\nPIN", `[] "" 11`},
		{`ECHO "a b" 'c d' e"f"` + "\n", `[["ECHO" "a b" "c d" "ef"]] "" 0`},
		{`ECHO "\x41\n\"\\\q\xzz" '\'\n' ""` + "\n", `[["ECHO" "A\n\"\\qxzz" "'\\n" ""]] "" 0`},
		{`ECHO "a` + "\n", `[] "Protocol error: unbalanced quotes in request, or too many words" 0`},
		{`ECHO "a"b` + "\n", `[] "Protocol error: unbalanced quotes in request, or too many words" 0`},
		{"1 2 3 4 5 6 7 8\n", `[["1" "2" "3" "4" "5" "6" "7" "8"]] "" 0`},
		{"1 2 3 4 5 6 7 8 9\n", `[] "Protocol error: unbalanced quotes in request, or too many words" 0`},
		{strings.Repeat("x", 63) + "\n", `[["` + strings.Repeat("x", 63) + `"]] "" 0`},
		{strings.Repeat("x", 64), `[] "Protocol error: too big inline request" 0`},
		{"*x\r\n", `[] "Protocol error: invalid multibulk length" 0`},
		{"*\r\n", `[] "Protocol error: invalid multibulk length" 0`},
		{"*9\r\n", `[] "Protocol error: invalid multibulk length" 0`},
		{"*1\n$4\nPING\n", `[] "Protocol error: invalid multibulk length" 0`},
		{"*-x\r\n", `[] "Protocol error: invalid multibulk length" 0`},
		{"*1000000000000\r\n", `[] "Protocol error: invalid multibulk length" 0`},
		{"*1\r\n+PING\r\n", `[] "Protocol error: expected '$', got '+'" 0`},
		{"*1\r\n$-1\r\n", `[] "Protocol error: invalid bulk length" 0`},
		{"*1\r\n$4x\r\n", `[] "Protocol error: invalid bulk length" 0`},
		{"*1\r\n$4\r\nPINGPONG", `[] "Protocol error: expected CRLF after bulk" 0`},
		{"*1\r\n$189\r\n", `[] "Protocol error: invalid bulk length: a command may have 200 bytes" 0`},
		{"*1\r\n$188\r\n", `[] "" 10`},
		{"PING\r\n*1\r\n!", `[["PING"]] "Protocol error: expected '$', got '!'" 0`},
	} {
		for _, chunk := range []int{len(c.input), 1, 3} {
			p := parseAll(t, smallParser(), []byte(c.input), []int{chunk})
			if got := fmt.Sprintf("%q %q %d", p.commands, p.err, p.rest); got != c.want {
				t.Errorf("%q in chunks of %d:\n got %s\nwant %s", c.input, chunk, got, c.want)
			}
		}
	}
}

// FuzzParse checks that no input makes the parser panic, that it reads within the buffer, and that what it finds
// does not depend on how the input is cut.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"PING\r\n", "*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$1\r\nx\r\nPING\r\n", `ECHO "\x41\n" 'b\''` + "\r\n",
		"*-1\r\n*0\r\nPING\r\n", "*1\r\n$-1\r\n", "*1\r\n$999999999\r\n", "*9\r\n", "*3\r\n$9\r\nWEIR.TAKE\r\n$1\r\nk\r\n$6\r\n100/1m\r\n",
	} {
		f.Add([]byte(seed), []byte{1, 5, 2})
	}
	f.Fuzz(func(t *testing.T, input, cuts []byte) {
		chunks := []int{7}
		for _, c := range cuts {
			chunks = append(chunks, int(c))
		}
		whole := parseAll(t, smallParser(), bytes.Clone(input), []int{len(input)})
		for _, sizes := range [][]int{{1}, chunks} {
			if cut := parseAll(t, smallParser(), bytes.Clone(input), sizes); fmt.Sprint(cut) != fmt.Sprint(whole) {
				t.Errorf("in chunks of %v: %+v\nas a whole: %+v", sizes, cut, whole)
			}
		}
	})
}

// FuzzParseInt compares parseInt with the standard library, which also accepts a plus sign and any number of zeros.
func FuzzParseInt(f *testing.F) {
	for _, seed := range []string{"0", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "+1", "", "-", "007"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := parseInt(text)
		want, err := strconv.ParseInt(string(text), 10, 64)
		digits := bytes.TrimPrefix(text, []byte("-"))
		wanted := err == nil && len(digits) <= 19 && !bytes.HasPrefix(text, []byte("+"))
		if ok != wanted || ok && got != want {
			t.Errorf("parseInt(%q) is %d, %v; want %d, %v", text, got, ok, want, wanted)
		}
	})
}
