package replay_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/replay"
)

func ExampleRun() {
	access := replay.Log{Name: "access.log", Reader: strings.NewReader(
		`192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 5
192.0.2.1 - - [17/May/2015:10:05:07 +0000] "GET /b HTTP/1.1" 200 5
192.0.2.1 - - [17/May/2015:10:05:04 +0000] "GET /c HTTP/1.1" 200 5
`)}
	report, err := replay.Run(context.Background(), []replay.Log{access}, replay.Options{
		Limits: []weir.Limit{weir.MustParseLimit("2/1m"), weir.MustParseLimit("1/2s")},
		Window: replay.DefaultWindow,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range report.Limits {
		fmt.Printf("%s would have denied %d of %d\n", l.Limit, l.Denied, report.Requests)
	}
	// Output:
	// 2/1m would have denied 1 of 3
	// 1/2s would have denied 1 of 3
}

func ExampleOpen() {
	logs, err := replay.Open([]string{"testdata/access.log"}, os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	defer logs.Close()
	report, err := replay.Run(context.Background(), logs.List, replay.Options{
		Limits: []weir.Limit{weir.MustParseLimit("5/1m")}, Window: replay.DefaultWindow, Top: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	worst := report.Limits[0].Top[0]
	fmt.Printf("%s: %d of %d denied\n", worst.Client[0], worst.Denied, worst.Requests)
	// Output: 2001:db8::/64: 96 of 160 denied
}

func ExampleParseKey() {
	key, err := replay.ParseKey("client_ip, path")
	fmt.Println(key, err)
	fmt.Println(key.String() == "client_ip,path", len(replay.Fields()))
	fmt.Println(key.UnmarshalText([]byte("user")), key)
	_, err = replay.ParseKey("colour")
	fmt.Println(err)
	// Output:
	// client_ip,path <nil>
	// true 6
	// <nil> user
	// replay: key is "colour"; accepted: one or more of client_ip, user, method, path, host, user-agent, each once, with commas between, and client_ip/48 or client_ip/24/64 for other bits
}

func ExampleReport() {
	access := replay.Log{Name: "access.log", Reader: strings.NewReader(
		"192.0.2.1 - - [17/May/2015:10:05:03 +0000] \"GET /a HTTP/1.1\" 200 5\n")}
	report, err := replay.Run(context.Background(), []replay.Log{access}, replay.Options{
		Limits: []weir.Limit{weir.MustParseLimit("2/1m")}, Window: replay.DefaultWindow,
	})
	if err != nil {
		log.Fatal(err)
	}
	var text, programs strings.Builder
	fmt.Println(report.WriteText(&text), report.WriteJSON(&programs))
	fmt.Println(strings.Contains(text.String(), "1 request of 1 client"), strings.Contains(programs.String(), `"requests": 1`))
	// Output:
	// <nil> <nil>
	// true true
}
