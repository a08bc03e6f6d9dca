package server_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/store/memory"
)

func TestConfigsRefused(t *testing.T) {
	tests := []struct {
		name  string
		cfg   server.Config
		field string
	}{
		{"BothOff", server.Config{RESP: "off", HTTP: "off"}, "http"},
		{"SameAddress", server.Config{RESP: "7000", HTTP: "127.0.0.1:7000"}, "http"},
		{"AdminAsRESP", server.Config{RESP: "7000", Admin: "127.0.0.1:7000"}, "admin"},
		{"AdminAsHTTP", server.Config{HTTP: "7000", Admin: "127.0.0.1:7000"}, "admin"},
		{"AdminNotANumber", server.Config{Admin: "metrics"}, "admin"},
		{"AdminOnly", server.Config{RESP: "off", HTTP: "off", Admin: "7000"}, "http"},
		{"PortNotANumber", server.Config{RESP: "redis"}, "resp"},
		{"PortTooLarge", server.Config{HTTP: "127.0.0.1:65536"}, "http"},
		{"PortNegative", server.Config{HTTP: "-1"}, "http"},
		{"PortSigned", server.Config{HTTP: "+80"}, "http"},
		{"PortMissing", server.Config{HTTP: "127.0.0.1:"}, "http"},
		{"IPv6WithoutBrackets", server.Config{RESP: "::1:6380"}, "resp"},
		{"ProxiesEmpty", server.Config{ProxyProtocolFrom: []string{"10.0.0.0/8", ""}}, "proxy-protocol-from"},
		{"ProxiesNoNetwork", server.Config{ProxyProtocolFrom: []string{"proxy.internal"}}, "proxy-protocol-from"},
		{"ProxiesTooManyBits", server.Config{ProxyProtocolFrom: []string{"10.0.0.0/33"}}, "proxy-protocol-from"},
		{"ProxiesWithAZone", server.Config{ProxyProtocolFrom: []string{"fe80::1%eth0"}}, "proxy-protocol-from"},
		{"ProxiesWithAPort", server.Config{ProxyProtocolFrom: []string{"10.0.0.1:80"}}, "proxy-protocol-from"},
		{"ProxiesEverywhere", server.Config{ProxyProtocolFrom: []string{"0.0.0.0/0"}}, "proxy-protocol-from"},
		{"ProxiesEverywhereMapped", server.Config{ProxyProtocolFrom: []string{"::ffff:0.0.0.0/96"}}, "proxy-protocol-from"},
		{"ProxiesOfBothFamilies", server.Config{ProxyProtocolFrom: []string{"::ffff:0.0.0.0/90"}}, "proxy-protocol-from"},
		{"HostEmpty", server.Config{HTTPHosts: []string{"weir", ""}}, "http-host"},
		{"HostWithAPort", server.Config{HTTPHosts: []string{"weir.example.com:8080"}}, "http-host"},
		{"HostOfAURL", server.Config{HTTPHosts: []string{"http://weir.example.com"}}, "http-host"},
		{"HostEvery", server.Config{HTTPHosts: []string{"*"}}, "http-host"},
		{"MaxKeysNegative", server.Config{MaxKeys: -1}, "max-keys"},
		{"MaxKeysTooLarge", server.Config{MaxKeys: server.MostKeys + 1}, "max-keys"},
		{"ConnectionsNegative", server.Config{MaxConnections: -1}, "max-connections"},
		{"ConnectionsTooMany", server.Config{MaxConnections: server.MostConnections + 1}, "max-connections"},
		{"PerAddressNegative", server.Config{MaxConnectionsPerAddress: -1}, "max-connections-per-address"},
		{"PerAddressMoreThanAll", server.Config{MaxConnections: 5, MaxConnectionsPerAddress: 6}, "max-connections-per-address"},
		{"IdleTimeoutNegative", server.Config{IdleTimeout: -time.Second}, "idle-timeout"},
		{"IdleTimeoutTooShort", server.Config{IdleTimeout: time.Millisecond}, "idle-timeout"},
		{"MemoryNegative", server.Config{Memory: -1}, "memory"},
		{"MemoryTooSmall", server.Config{Memory: server.LeastMemory - 1}, "memory"},
		{"MemoryTooLarge", server.Config{Memory: server.MostMemory + 1}, "memory"},
		{"OverflowUnknown", server.Config{Overflow: 7}, "overflow"},
		{"TokenKeyWithoutPolicies", server.Config{TokenKeys: []string{"k"}}, "token-key"},
		{"TokenKeyEmpty", server.Config{Policies: "f", TokenKeys: []string{"k", ""}}, "token-key"},
		{"TokenKeysTooMany", server.Config{Policies: "f", TokenKeys: []string{"1", "2", "3", "4", "5"}}, "token-key"},
		{"GraceNegative", server.Config{Grace: -time.Second}, "grace"},
		{"GraceTooLong", server.Config{Grace: server.MaxGrace + 1}, "grace"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := server.New(test.cfg)
			var config *server.ConfigError
			if !errors.As(err, &config) || config.Field != test.field {
				t.Fatalf("got %v, want a *ConfigError of %s", err, test.field)
			}
			for _, part := range []string{config.Field, config.Value, config.Accept} {
				if part == "" || !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say field, value and what is accepted", err)
				}
			}
		})
	}
}

func TestAddressesAccepted(t *testing.T) {
	for _, text := range []string{"0", "127.0.0.1:0", "localhost:0", "off", "[::1]:65535", ":6380"} {
		s, err := server.New(server.Config{RESP: text, HTTP: "1", Overflow: memory.Share, Insecure: true})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBusyPortNamesItsField(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	s, err := server.New(server.Config{RESP: "0", HTTP: busy.Addr().String(), Admin: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Open(context.Background())
	var config *server.ConfigError
	if !errors.As(err, &config) || config.Field != "http" || config.Value != busy.Addr().String() {
		t.Fatalf("got %v, want a *ConfigError of http %v", err, busy.Addr())
	}
	if c, err := net.Dial("tcp", s.RESPAddr().String()); err == nil {
		c.Close()
		t.Error("the other protocol still listens")
	}
}
