package remote

import (
	"testing"

	"github.com/redis/rueidis"
)

func TestUsersInURLs(t *testing.T) {
	a, o, err := parse("weirs://or%64ers:p%40ss:w%2Ford@[::1]?server_name=weir.internal&prefix=shop", Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := a.option(rueidis.ClientOption{AlwaysRESP2: true})
	if got.InitAddress[0] != "[::1]:6380" || got.Username != "orders" || got.Password != "p@ss:w/ord" || got.TLSConfig.ServerName != "weir.internal" ||
		!got.AlwaysRESP2 || o.Prefix != "shop" {
		t.Errorf("%+v, prefix %q", got, o.Prefix)
	}
	if a, _, err = parse("weir://u:s@h", Options{}); err != nil || a.user != "u" || a.secret != "s" || a.tls != nil {
		t.Errorf("%+v, %v", a, err)
	}
}
