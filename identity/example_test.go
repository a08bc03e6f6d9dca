package identity_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// A server behind nginx, which appends the address of its peer to X-Forwarded-For:
//
//	proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
func ExampleBehind() {
	client, err := identity.Behind("X-Forwarded-For", "10.0.0.0/8", "unix")
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.3:51332"                           // nginx
	r.Header.Set("X-Forwarded-For", "203.0.113.1, 192.0.2.7") // the first is what the client says, the second what nginx has seen
	fmt.Println(client.Addr(r), identity.Key{client.Source()}.Of(r))

	r.RemoteAddr = "192.0.2.99:4711" // somebody who gets past nginx
	fmt.Println(client.Addr(r))

	_, err = identity.Behind("X-Forwarded-For", "10.0.0.0/33")
	fmt.Println(err)
	// Output:
	// 192.0.2.7 192.0.2.7
	// 192.0.2.99
	// identity: proxies[0] is "10.0.0.0/33"; accepted: an address, a CIDR such as 10.0.0.0/8 or fd00::/8, but not all addresses, whose clients would say what they like, or "unix"
}

// Proxies that speak RFC 7239.
func ExampleBehind_forwarded() {
	client, err := identity.Behind("Forwarded", "10.0.0.0/8")
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.3:51332"
	r.Header.Set("Forwarded", `for="[2001:db8:1:2::7]:4711";proto=https, for=10.0.0.4`)
	fmt.Println(client.Addr(r))
	fmt.Println(client.Source().Value(r))
	// Output:
	// 2001:db8:1:2::7
	// 2001:db8:1:2::/64
}

// Who has a key of the API is counted by that, once it has been looked up; who has none, or makes one up, is counted by address.
func ExampleFirst() {
	known := map[string]string{"k-5e8f": "acme"}
	customer := identity.Func("customer", func(r *http.Request) string { return known[r.Header.Get("X-Api-Key")] })
	key := identity.Key{identity.First(customer, identity.Peer.Source())}
	if err := key.Err(); err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, sent := range []string{"k-5e8f", "made up", ""} {
		r.Header.Set("X-Api-Key", sent)
		fmt.Println(key.Of(r))
	}
	// Output:
	// customer=acme
	// client_ip=192.0.2.1
	// client_ip=192.0.2.1
}

// A client of IPv6 can have many networks of 64 bits. A policy for each width stops those that go from one to the next; the wider, the more there must be
// for those who share it.
func ExampleClientIP_Network() {
	ip := identity.Peer
	host, site, provider := identity.Key{ip.Network(32, 64)}, identity.Key{ip.Network(32, 56)}, identity.Key{ip.Network(24, 48)}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, remote := range []string{"[2001:db8:1:2ff::7]:4711", "192.0.2.7:4711", "@"} {
		r.RemoteAddr = remote
		fmt.Println(host.Of(r), site.Of(r), provider.Of(r))
	}
	fmt.Println(ip.Network(32, 129).Err())
	// Output:
	// 2001:db8:1:2ff::/64 2001:db8:1:200::/56 2001:db8:1::/48
	// 192.0.2.7 192.0.2.7 192.0.2.0/24
	// unknown unknown unknown
	// identity: client_ip's bits of IPv6 is 129; accepted: 1 to 128
}

// The same with policies, which name the widths. All are charged, or none is: each network of 64 bits has a budget, and those of a site have one together.
func ExampleClientIP_Network_policies() {
	config, err := policy.Parse([]byte(`
policies:
  - {name: host, key: client_ip, limits: [2/1h]}        # 64 bits
  - {name: site, key: client_ip/56, limits: [6/1h]}
  - {name: provider, key: client_ip/48, limits: [100/1h]}
`), "weir.yaml")
	if err != nil {
		log.Fatal(err)
	}
	set, err := policy.New(config, policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, network := range []int{1, 1, 1, 2, 2, 3, 3, 4} {
		r.RemoteAddr = fmt.Sprintf("[2001:db8:1:%d::7]:4711", network)
		d, err := set.Check(context.Background(), &policy.Request{ClientIP: identity.Peer.Addr(r)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(network, d.Allowed, d.Denied)
	}
	// Output:
	// 1 true []
	// 1 true []
	// 1 false [host]
	// 2 true []
	// 2 true []
	// 3 true []
	// 3 true []
	// 4 false [site]
}

func ExampleNetworkOf() {
	fmt.Println(identity.NetworkOf(netip.MustParseAddr("2001:db8:1:2::7"), 32, 64))
	fmt.Println(identity.NetworkOf(netip.MustParseAddr("::ffff:192.0.2.7"), 32, 64))
	fmt.Println(identity.NetworkOf(netip.Addr{}, 32, 64))
	// Output:
	// 2001:db8:1:2::/64
	// 192.0.2.7
	// unknown
}

func ExampleParseNetwork() {
	fmt.Println(identity.ParseNetwork("client_ip"))
	fmt.Println(identity.ParseNetwork("client_ip/24/56"))
	fmt.Println(identity.ParseNetwork("client_ip/200"))
	// Output:
	// 32 64 true
	// 24 56 true
	// 0 0 false
}

func ExampleKey() {
	key := identity.Key{identity.Header("X-Tenant"), identity.Cookie("session"), identity.Peer.Source()}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Tenant", "a,b")
	fmt.Println(key.Of(r)) // there is no cookie
	r.Header.Set("Cookie", "session=9f86d081884c7d65")
	fmt.Println(key.Of(r)) // cookies are secret
	fmt.Println(identity.Key{}.Err())
	// Output:
	// a%2Cb,-,192.0.2.1
	// a%2Cb,oih2C6EtOu7h55n66MLIun9XY0uc8MV7xx5oSX0aYKY,192.0.2.1
	// identity: a key is of 0 sources; accepted: 1 to 8; Everyone counts all as one
}

func ExampleEncode() {
	fmt.Println(identity.Encode("alice"), identity.Encode("a,b"), identity.Encode(""), identity.Encode("-"))
	// Output: alice a%2Cb - %2D
}

// What a handler before has found out is in the context.
func ExampleContext() {
	type userKey struct{}
	user := identity.Context("user", userKey{})
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	fmt.Printf("%q\n", user.Value(r))
	fmt.Printf("%q\n", user.Value(r.WithContext(context.WithValue(r.Context(), userKey{}, 4711))))
	// Output:
	// ""
	// "4711"
}

func ExampleHashed() {
	s := identity.Hashed(identity.Header("X-Api-Key"))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Api-Key", "k-5e8f2c")
	fmt.Println(s.String(), s.Value(r))
	// Output: header:X-Api-Key W5huvfndG6BkbmWVXQdFt3kkSPY0GN9cEfc4oRvz_lM
}

// Sources by their names.
func ExampleSource() {
	for _, s := range []identity.Source{
		identity.Header("x-api-key"), identity.BasicUser(), identity.Certificate(), identity.CertificateName(), identity.Everyone(),
		identity.First(identity.Cookie("session"), identity.Peer.Source()),
	} {
		fmt.Println(s)
	}
	err := identity.Header("X Api").Err()
	fmt.Println(err.Error()) // a *SourceError
	// Output:
	// header:X-Api-Key
	// basic_user
	// certificate
	// certificate_name
	// all
	// cookie:session|client_ip
	// identity: a header's name is "X Api"; accepted: up to 128 letters, digits and any of !#$%&'*+-.^_`|~; not Host, which is Request.Host: use Func; nor Trailer and Transfer-Encoding, which servers take out
}

// The log of a program names a client without its secret. weir clients list shows this form beside
// each name.
func ExampleMask() {
	fmt.Println(identity.Mask("sk_live_4f9a8b7c6d5e4f3a"), identity.Mask("bob"))

	part := identity.Encode("sk_live_4f9a8b7c6d5e4f3a") // as in a key
	fmt.Println(identity.MaskPart(part))
	// Output:
	// sk_l…#08349d28 #81b637d8
	// sk_l…#08349d28
}

// A request through an untrusted proxy counts as the proxy's.
func ExampleClientIP_Ignored() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.1.2.3:41000"
	r.Header.Set("X-Forwarded-For", "192.0.2.7")
	fmt.Println(identity.Peer.Addr(r), identity.Peer.Ignored(r))

	behind, err := identity.Behind("X-Forwarded-For", "10.0.0.0/8")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v %q\n", behind.Addr(r), behind.Ignored(r))
	// Output:
	// 10.1.2.3 X-Forwarded-For
	// 192.0.2.7 ""
}

func ExampleKey_ClientIP() {
	key := identity.Key{identity.Header("X-Tenant"), identity.Peer.Source()}
	fmt.Println(key.ClientIP() == identity.Peer)
	// Output: true
}

func ExampleHash() {
	fmt.Println(identity.Hash("key-1"))
	// Output: vil0VGl443OebW2oXEvp8zTOMt8rn9S2_xtVwNV-nUQ
}
