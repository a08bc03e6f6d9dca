package clients_test

import (
	"fmt"

	"github.com/weirlimit/weir/policy/clients"
)

// Names without a source still work. The count is 0 when all of them have been changed.
func ExampleTable_Unqualified() {
	table, err := clients.NewTable(clients.Client{Name: "acme", Plan: "gold"}, clients.Client{Name: "client_ip=192.0.2.7", Plan: "gold"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table.Unqualified(), table.Len())
	// Output: 1 2
}
