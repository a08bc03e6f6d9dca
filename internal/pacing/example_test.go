package pacing_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/internal/pacing"
)

// A client that asks a server three times, and heeds what it says.
func ExampleServers() {
	var servers pacing.Servers
	var first, second, third pacing.Ticket
	ctx := context.Background()
	for _, t := range []*pacing.Ticket{&first, &second} {
		if err := servers.Enter(ctx, "mail.example", time.Second, t); err != nil {
			fmt.Println(err)
			return
		}
	}
	servers.Leave(&second) // it is not sent after all
	until := servers.Answered(&first, pacing.Response{Outcome: pacing.Denied, Report: header.Report{Retry: true, RetryAfter: 5 * time.Minute}})
	fmt.Println(time.Until(until) > 4*time.Minute)

	err := servers.Enter(ctx, "mail.example", time.Second, &third)
	if wait, ok := errors.AsType[*pacing.WaitError](err); ok {
		fmt.Println(wait.Error() != "", wait.Most, wait.Unwrap())
	}
	// Output:
	// true
	// true 1s <nil>
}

// Between leave to send and sending, time may pass: as for another limit.
func ExampleServers_Confirm() {
	var servers pacing.Servers
	var ticket pacing.Ticket
	if err := servers.Enter(context.Background(), "mail.example", time.Second, &ticket); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(servers.Confirm(&ticket))
	// Output: true
}

func ExampleTooLong() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	err := pacing.TooLong(ctx, 2*time.Hour, 3*time.Hour)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), pacing.TooLong(ctx, time.Millisecond, time.Hour))
	// Output: true <nil>
}

// All waits of one request together can be bounded: each may last for what is left.
func ExampleTicket_Waited() {
	var servers pacing.Servers
	var ticket pacing.Ticket
	err := servers.Enter(context.Background(), "mail.example", time.Minute-ticket.Waited(), &ticket)
	fmt.Println(err, ticket.Waited())
	// Output: <nil> 0s
}
