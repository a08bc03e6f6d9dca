package resp_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
)

const noPassword = "ERR AUTH <password> called without any password configured for the default user. " +
	"Are you sure your configuration is correct?"

func TestConnectionCommandsAnswerAsClientsExpect(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	dial(t, address).expect([][2]string{
		{"PING", "PONG"},
		{"ping hello", "hello"},
		{"PING a b", "ERR wrong number of arguments for 'ping' command"},
		{`ECHO "a\tb"`, "a\tb"},
		{"SELECT 0", "OK"},
		{"SELECT 1", "ERR DB index is out of range"},
		{"SELECT x", "ERR invalid DB index"},
		{"AUTH anything", noPassword},
		{"AUTH default anything", noPassword},
		{"AUTH default a b", "ERR syntax error"},
		{"AUTH other anything", "WRONGPASS invalid username-password pair or user is disabled."},
		{"CLIENT ID", "1"},
		{"CLIENT GETNAME", "nil"},
		{"CLIENT SETNAME me", "OK"},
		{"CLIENT GETNAME", "me"},
		{"CLIENT SETINFO LIB-NAME some-client", "OK"},
		{"CLIENT SETINFO lib-ver 1.2.3", "OK"},
		{"CLIENT SETINFO COLOUR red", `ERR Unrecognized option "COLOUR"`},
		{"CLIENT NO-EVICT ON", "OK"},
		{"CLIENT NO-TOUCH off", "OK"},
		{"CLIENT NO-TOUCH maybe", `ERR syntax error: "maybe"; accepted: ON, OFF`},
		{"CLIENT TRACKING ON OPTIN", "OK"},
		{"CLIENT CACHING yes", "OK"},
		{"CLIENT CACHING ON", `ERR syntax error: "ON"; accepted: YES, NO`},
		{"CLIENT TRACKING off", "OK"},
		{"RESET", "RESET"},
		{"CLIENT GETNAME", "nil"},
		{"CONFIG GET save", "[save ]"},
		{"CONFIG GET appendonly nothing", "[appendonly no]"},
		{"COMMAND INFO weir.take nothing", "[[weir.take -3 [write fast] 1 1 1 [@weir] [] [] []] nil]"},
		{"COMMAND DOCS weir.reset nothing", "[weir.reset [summary Forgets a key. since 1.0.0 group weir]]"},
		{"GET k", `ERR unknown command "GET", with args beginning with: "k"`},
		{`"" a`, `ERR unknown command "", with args beginning with: "a"`},
		{"QUIT", "OK"},
	}...)
}

func TestHelloChoosesTheProtocol(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}, Version: "1.2.3"})
	c := dial(t, address)
	hello := "server weir version 7.0.0 weir_version 1.2.3 proto %s id 1 mode standalone role master modules []"
	two, three := "["+strings.Replace(hello, "%s", "2", 1)+"]", "{"+strings.Replace(hello, "%s", "3", 1)+"}"
	c.expect([][2]string{
		{"HELLO", two},
		{"HELLO 4", "NOPROTO unsupported protocol version"},
		{"HELLO x", "ERR Protocol version is not an integer or out of range"},
		{"HELLO 3 AUTH other x", "WRONGPASS invalid username-password pair or user is disabled."},
		{"HELLO 3 AUTH default x", noPassword},
		{"HELLO 3 COLOUR", `ERR Syntax error in HELLO option "COLOUR"`},
		{"HELLO", two},
		{"HELLO 3 SETNAME me", three},
		{"CLIENT GETNAME", "me"},
		{"HELLO", three},
		{"CONFIG GET save", "{save }"},
		{`WEIR.TAKE k "1/1h"`, "[1 1 0 0 3600000000 0]"},
		{"RESET", "RESET"},
		{"HELLO", two},
	}...)
	for protocol, null := range map[string]string{"2": "$-1\r\n*1\r\n*-1\r\n", "3": "_\r\n*1\r\n_\r\n"} {
		c.do("HELLO " + protocol)
		c.send("CLIENT GETNAME\r\nCOMMAND INFO nothing\r\nQUIT\r\n")
		if got := c.expectClosed(); got != null+"+OK\r\n" {
			t.Errorf("RESP%s null replies: got %q, want %q", protocol, got, null)
		}
		c = dial(t, address)
	}
}

func TestInfoTellsOfTheServer(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}, Version: "1.2.3", MaxConnections: 7})
	c := dial(t, address)
	c.do(`WEIR.TAKE k "1/1h"`)
	c.do(`WEIR.TAKE k "1/1h"`)
	c.do(`NONSENSE`)
	info := c.do("INFO")
	for _, line := range []string{
		"# Server", "weir_version:1.2.3", "# Clients", "connected_clients:1", "maxclients:7", "loading:0",
		"# Stats", "total_commands_processed:3", "requests_allowed:1", "requests_denied:1", "total_error_replies:1",
	} {
		if !strings.Contains(info, line+"\r\n") {
			t.Errorf("INFO does not say %q:\n%s", line, info)
		}
	}
	if clients := c.do("INFO clients"); strings.Contains(clients, "# Server") || !strings.Contains(clients, "# Clients") {
		t.Errorf("INFO clients:\n%s", clients)
	}
	c.do("CLIENT SETNAME me")
	second := dial(t, address)
	list := second.do("CLIENT LIST")
	if strings.Count(list, "\n") != 2 || !strings.Contains(list, "id=1 ") || !strings.Contains(list, "name=me ") {
		t.Errorf("CLIENT LIST of two clients:\n%s", list)
	}
	if own := second.do("CLIENT INFO"); !strings.HasPrefix(own, "id=2 addr="+second.LocalAddr().String()) {
		t.Errorf("CLIENT INFO of the second client:\n%s", own)
	}
}

func TestCommandTellsOfEveryCommand(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	c := dial(t, address)
	all, docs := c.do("COMMAND"), c.do("COMMAND DOCS")
	names := strings.Fields(strings.Trim(c.do("COMMAND LIST"), "[]"))
	if count := c.do("COMMAND COUNT"); count != strconv.Itoa(len(names)) {
		t.Errorf("COMMAND COUNT is %s, of %d names", count, len(names))
	}
	for _, name := range names {
		if !strings.Contains(all, "["+name+" ") || !strings.Contains(docs, name+" [summary ") {
			t.Errorf("COMMAND or COMMAND DOCS lacks %s", name)
		}
		if name == "quit" {
			continue
		}
		if reply := c.do(name); strings.Contains(reply, "unknown command") {
			t.Errorf("%s is listed, and answers %s", name, reply)
		}
	}
}

func TestHTTPIsHungUpOn(t *testing.T) {
	requests := []string{
		"Host: localhost\r\n", "host:\r\n", "GET /\r\n", "post\r\n", "get / HTTP/1.1\r\n", "SEARCH / HTTP/1.0\n", "CONNECT h:80 HTTP/1.1\r\n",
		"OPTIONS * HTTP/1.1\r\n", "GET http://h/ HTTP/1.1\r\n", "POST\t/\tHTTP/1.1\r\n", "CLIENT REPLY OFF\r\nPUT / HTTP/1.1\r\n",
	}
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE", "WEIR.RESET"} {
		requests = append(requests, method+" /x HTTP/1.1\r\nContent-Length: 20\r\n\r\n")
	}
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	c := dial(t, address)
	c.do("WEIR.TAKE k 1/1h")
	for _, request := range requests {
		web := dial(t, address)
		web.send(request + "WEIR.RESET k 1/1h\r\n")
		if got := web.expectClosed(); got != "" {
			t.Errorf("%q is answered %q, want nothing", request, got)
		}
		if d := c.do("WEIR.TAKE k 1/1h"); !strings.HasPrefix(d, "[0 ") {
			t.Errorf("after %q the decision is %s, want a denial", request, d)
		}
	}
	for _, command := range []string{"GET k", "GET", array("POST", "/"), array("GET", "/", "HTTP/1.1"), array("Host:")} {
		if got := dial(t, address).do(command); !strings.HasPrefix(got, "ERR unknown command") {
			t.Errorf("%q, which no HTTP request begins with, is answered %q", command, got)
		}
	}
}

func TestRepliesCanBeTurnedOff(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	c := dial(t, address)
	c.send("PING 1\r\nCLIENT REPLY SKIP\r\nPING 2\r\nPING 3\r\nCLIENT REPLY OFF\r\n" +
		"WEIR.TAKE k 3/1h\r\nNONSENSE\r\nCLIENT REPLY SKIP\r\nPING 4\r\nWEIR.TAKE k 3/1h\r\n" +
		"CLIENT REPLY ON\r\nWEIR.TAKE k 3/1h\r\nCLIENT REPLY SKIP\r\nWEIR.TAKE k 3/1h\r\nWEIR.PEEK k 3/1h COST\r\nQUIT\r\n")
	got := c.expectClosed()
	if !strings.HasPrefix(got, "$1\r\n1\r\n$1\r\n3\r\n+OK\r\n*6\r\n:1\r\n:3\r\n:0\r\n:0\r\n") || strings.Count(got, "-ERR") != 1 {
		t.Errorf("got %q", got)
	}
}
