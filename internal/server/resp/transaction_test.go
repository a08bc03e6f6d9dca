package resp

import (
	"strings"
	"testing"
)

func TestTransactionRepliesAtItsEnd(t *testing.T) {
	for _, test := range []struct{ commands, want string }{
		{"MULTI;THROTTLE|k|2|1|1000000;PING;THROTTLE|k|2|1|1000000;THROTTLE|k|2|1|1000000;ECHO|a b;EXEC;PING",
			"+OK;+QUEUED;+QUEUED;+QUEUED;+QUEUED;+QUEUED;*5;*5;:1;:2;:1;:1000000;:0;+PONG;*5;:1;:2;:0;:2000000;:0;" +
				"*5;:0;:2;:0;:2000000;:1000000;$3;a b;+PONG"},
		{"NONSENSE;MULTI;EXEC", "-ERR unknown command \"NONSENSE\", with args beginning with:;+OK;*0"},
		{"MULTI;THROTTLE|k|x|1|1;EXEC", "+OK;+QUEUED;*1;-ERR max_burst is \"x\"; accepted: a whole number from 1 to 9223372036854775807"},
		{"MULTI;WEIR.TAKE;PING;EXEC;PING", "+OK;-ERR wrong number of arguments for 'weir.take' command;+QUEUED;" +
			"-EXECABORT Transaction discarded because of previous errors.;+PONG"},
		{"MULTI;INFO;EXEC", "+OK;-ERR info is not for transactions; accepted: WEIR.*, CL.THROTTLE, THROTTLE, RL.*, PING, ECHO;" +
			"-EXECABORT Transaction discarded because of previous errors."},
		{"MULTI;THROTTLE|k|1|1|1000000;DISCARD;THROTTLE|k|1|1|1000000", "+OK;+QUEUED;+OK;*5;:1;:1;:0;:1000000;:0"},
		{"MULTI;RESET;PING", "+OK;+RESET;+PONG"},
		{"MULTI;MULTI;QUIT;PING", "+OK;-ERR MULTI calls can not be nested;+OK"},
		{"EXEC;DISCARD", "-ERR EXEC without MULTI;-ERR DISCARD without MULTI"},
		{"CLIENT|REPLY|OFF;MULTI;PING;EXEC;CLIENT|REPLY|ON", "+OK"},
	} {
		s, input := newTestServer(), ""
		for command := range strings.SplitSeq(test.commands, ";") {
			input += string(pipeline(1, command))
		}
		got := strings.TrimSuffix(strings.ReplaceAll(string(replay(s, []byte(input))), "\r\n", ";"), ";")
		if got != test.want || s.buffered.Load() != 0 {
			t.Errorf("%s\n got %s\nwant %s\n%d bytes are left in the account", test.commands, got, test.want, s.buffered.Load())
		}
	}
}

func TestTransactionIsBounded(t *testing.T) {
	for name, bound := range map[string]func(*Options){
		"for a client":    func(o *Options) { o.MaxCommand = 10_000 },
		"for all clients": func(o *Options) { o.MaxBuffered = 10_000 },
	} {
		s := newTestServer()
		bound(&s.options)
		input := string(pipeline(1, "MULTI")) + string(pipeline(1000, "PING|#")) + string(pipeline(1, "EXEC"))
		got := string(replay(s, []byte(input)))
		queued := strings.Count(got, "+QUEUED\r\n")
		if !strings.Contains(got, "-ERR the transaction is too long; accepted: ") || !strings.HasSuffix(got, "EXECABORT Transaction discarded because of previous errors.\r\n") {
			t.Errorf("bounded %s, %d were queued, and the end was %.100q", name, queued, got[max(0, len(got)-100):])
		}
		if held := s.buffered.Load(); held != 0 {
			t.Errorf("bounded %s: %d bytes are left in the account", name, held)
		}
	}
}

func TestLongTransactionIsAnsweredInFull(t *testing.T) {
	s := newTestServer()
	s.options.MaxBuffered = 200_000 // more than the queue, less than the replies
	input := string(pipeline(1, "MULTI")) + string(pipeline(2000, "WEIR.TAKE|#|x\x00"+strings.Repeat("?", 20))) + string(pipeline(1, "EXEC"))
	got := string(replay(s, []byte(input)))
	if !strings.Contains(got, "*2000\r\n") || strings.Count(got, "\r\n-ERR ") != 2000 || len(got) < 200_000 {
		t.Errorf("2000 commands got %d error replies in %d bytes", strings.Count(got, "\r\n-ERR "), len(got))
	}
}
