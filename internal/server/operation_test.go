package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/operation"
)

// A new operation of the list is one of both protocols, with its arguments, rights and errors.
func TestNewOperationIsOfAllProtocols(t *testing.T) {
	before := operation.List
	t.Cleanup(func() { operation.List = before })
	operation.List = append(slices.Clone(before), &operation.Operation{
		Command: "weir.hold", Path: "/v1/hold", Right: access.Take, Kind: algorithm.Reserve, Granted: true, Summary: "Reserves.",
		Accepts: operation.Cost | operation.Name | operation.ID | operation.Life, Requires: operation.ID | operation.Life | operation.Name,
	})
	s := start(t, server.Config{})
	c, err := net.Dial("tcp", s.RESPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	replies := bufio.NewReader(c)
	for _, test := range []struct{ command, reply, body, response string }{
		{`WEIR.HOLD k 5/1h COST 2 NAME n ID 7 LIFE 1000000`, "*7 :1 :5 :3 :0 ", `{"key":"l","limit":"5/1h","cost":2,"name":"n","id":7,"life_us":1000000}`, `{"allowed":true,"granted":2,"limit":5,"remaining":3,`},
		{`WEIR.HOLD k 5/1h NAME n ID 7`, "-ERR LIFE is missing; ", `{"key":"l","limit":"5/1h","name":"n","id":7}`, `"detail":"life_us is missing; `},
		{`WEIR.HOLD k 5/1h NAME n LATE`, `-ERR syntax error at "LATE"; accepted: COST n, NAME name, ID id, LIFE time, each once`,
			`{"key":"l","limit":"5/1h","late":true}`, `"detail":"late is unknown; accepted: key, limit, name, cost, id, life_us"`},
		{`WEIR.HOLD k 5/1h NAME n ID 7 LIFE 0`, `-ERR LIFE is "0"; accepted: a whole number from 1 to `, `{"key":"l","limit":"5/1h","name":"n","id":7,"life_us":0}`, `"detail":"life_us is 0; accepted: a whole number from 1 to `},
	} {
		fmt.Fprintf(c, "%s\r\nPING\r\n", test.command)
		var got strings.Builder
		for !strings.HasSuffix(got.String(), "+PONG ") {
			line, err := replies.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			got.WriteString(strings.TrimSpace(line) + " ")
		}
		if !strings.HasPrefix(got.String(), test.reply) {
			t.Errorf("%s: %s", test.command, got.String())
		}
		res, err := http.Post("http://"+s.HTTPAddr().String()+"/v1/hold", "application/json", strings.NewReader(test.body))
		if body := read(t, res, err); !strings.Contains(body, test.response) {
			t.Errorf("%s: %s", test.body, body)
		}
	}
}
