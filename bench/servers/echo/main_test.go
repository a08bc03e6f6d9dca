package main

import (
	"net"
	"strings"
	"testing"
)

const command = "*2\r\n$4\r\nPING\r\n$3\r\nabc\r\n"

func TestCommandSizeWaitsForTheWholeCommand(t *testing.T) {
	for n := range len(command) {
		if size, err := commandSize([]byte(command[:n])); size != 0 || err != nil {
			t.Fatalf("%q: %d, %v; want 0, nil", command[:n], size, err)
		}
	}
	if size, err := commandSize([]byte(command + "*1")); size != len(command) || err != nil {
		t.Errorf("whole: %d, %v; want %d, nil", size, err, len(command))
	}
}

func TestCommandSizeRefusesWhatIsNoCommand(t *testing.T) {
	for _, b := range []string{"hello\r\n", "*x\r\n", "*1\r\n:5\r\n", "*1\r\n$-1\r\n", "*99999999\r\n", "*\r\n", "\n"} {
		if size, err := commandSize([]byte(b)); err == nil {
			t.Errorf("%q: %d, want an error", b, size)
		}
	}
}

func TestServeAnswersEveryCommandOnce(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	go serve(server)
	go client.Write([]byte(strings.Repeat(command, 3)))
	got := make([]byte, 3*len(reply))
	for n := 0; n < len(got); {
		k, err := client.Read(got[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	if want := strings.Repeat(reply, 3); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
