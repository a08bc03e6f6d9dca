package resp_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store/memory"
)

// array encodes a command as clients do.
func array(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// session is commands of every kind, whose replies do not depend on the time of day.
func session(prefix string) string {
	at := []string{"AT", "1700000000000000"}
	take := func(key, limit string, more ...string) string {
		return array(append([]string{"WEIR.TAKE", prefix + key, limit}, more...)...)
	}
	return strings.Join([]string{
		array("HELLO", "3", "SETNAME", "me"), array("PING"), "PING inline\r\n",
		take("a", "3/1h", at...), take("a", "3/1h", at...), take("a", "3/60m", at...), take("a", "3/1h", at...),
		take("b", "nonsense"), array("CLIENT", "GETNAME"), array("CLIENT", "REPLY", "SKIP"), array("PING"),
		array("RL.REDUCE", prefix+"c", "5", "60", "TAKE", "2", "AT", "1700000000"), array("ECHO", "a\r\nb"),
		array("RL.GET", prefix+"c", "5", "60", "AT", "1700000000"), `ECHO "q\x41"` + "\r\n", "\r\n", "*0\r\n",
		array("WEIR.RESET", prefix+"a", "3/1h"), array("WEIR.PEEK", prefix+"a", "3/1h", "AT", "1700000000000000"),
		array("NONSENSE", "x"), array("COMMAND", "COUNT"), array("QUIT"),
	}, "")
}

func TestSplittingTheInputChangesNothing(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{TrustClientTime: true}})
	run := func(input string, cut int) string {
		c := dial(t, address)
		defer c.Close()
		c.send(input[:cut])
		c.send(input[cut:])
		_, rest, _ := strings.Cut(c.expectClosed(), "$4\r\nmode") // what is before differs in the connection's id
		return rest
	}
	input := session("0000")
	want := run(input, 0)
	count := dial(t, address).do("COMMAND COUNT")
	if strings.Count(want, "-ERR") != 2 || !strings.HasSuffix(want, ":"+count+"\r\n+OK\r\n") {
		t.Fatalf("the session went wrong: %q", want)
	}
	for cut := 1; cut < len(input); cut++ {
		if got := run(session(fmt.Sprintf("%04d", cut)), cut); got != want {
			t.Fatalf("cut at byte %d:\n got %q\nwant %q", cut, got, want)
		}
	}
}

// pipelineOfTakes is many requests that have no time, in runs of equal and of different limits. The limits refill so
// slowly that the verdicts do not depend on when they are asked.
func pipelineOfTakes(n int) (lines []string) {
	for i := range n {
		key, cost := fmt.Sprintf("key%d", i%7), fmt.Sprint(i%3)
		switch i / 10 % 6 {
		case 0, 3:
			lines = append(lines, array("WEIR.TAKE", key, "20/8760h", "COST", cost))
		case 1:
			lines = append(lines, array("WEIR.TAKE", key, fmt.Sprintf("%d/8760h", 5+i%4)))
		case 2:
			lines = append(lines, array("CL.THROTTLE", key, "30", "1", "1000000", cost),
				array("WEIR.RESERVE", key, "60/8760h", "NAME", "n", "ID", fmt.Sprint(1+i%50), "LIFE", "1000000000000", "COST", cost),
				array("WEIR.COMMIT", key, fmt.Sprintf("%d/8760h", 60-i%2), "ID", fmt.Sprint(1+i*7%50), "NAME", "n", "COST", cost),
				array("WEIR.RENEW", key, "concurrent 9 lease=8760h", "END", "1700000000000000"))
		case 4:
			lines = append(lines, array("THROTTLE", key, fmt.Sprint(28+i%3), "1", "1000000", cost))
		default:
			lines = append(lines, array("WEIR.TAKE", key, "20/8760h", "COST", "-1"), array("RL.REDUCE", key, "20", "1000000"))
		}
	}
	return lines
}

// verdicts drops the waits, which differ from run to run, from the reply to a take.
func verdicts(replies []string) string {
	for i, r := range replies {
		if f := strings.Fields(r); strings.HasPrefix(r, "[") {
			replies[i] = strings.Join(f[:3], " ")
		}
	}
	return strings.Join(replies, "\n")
}

func TestPipelineAnswersAsOneByOne(t *testing.T) {
	lines := pipelineOfTakes(3000)
	run := func(each int) string {
		_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(memory.New(memory.Options{}))}})
		c := dial(t, address)
		var replies []string
		for i := 0; i < len(lines); i += each {
			part := lines[i:min(i+each, len(lines))]
			go func() { _, _ = io.WriteString(c, strings.Join(part, "")) }()
			for range part {
				replies = append(replies, c.reply())
			}
		}
		return verdicts(replies)
	}
	want := run(1)
	if strings.Count(want, "[0 ") < 100 || strings.Count(want, "[1 ") < 100 {
		t.Fatal("the pipeline does not mix what is admitted and what is denied")
	}
	for _, each := range []int{16, 300, len(lines)} {
		if got := run(each); got != want {
			t.Errorf("in pipelines of %d: %s", each, firstDifference(got, want, lines))
		}
	}
}

func firstDifference(got, want string, commands []string) string {
	w := strings.Split(want, "\n")
	for i, g := range strings.Split(got, "\n") {
		if g != w[i] {
			return fmt.Sprintf("command %d, %q: %q, alone %q", i, commands[i], g, w[i])
		}
	}
	return "the number of replies differs"
}
