// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	apiServer := netip.MustParseAddr("10.96.0.1")
	for _, tc := range []struct {
		name    string
		allow   []string
		address string
		refused string // class, empty when allowed
	}{
		{"public", nil, "203.0.113.7", ""},
		{"private", nil, "10.1.2.3", ""},
		{"loopback", nil, "127.0.0.1", "loopback"},
		{"loopback v6", nil, "::1", "loopback"},
		{"loopback mapped into v6", nil, "::ffff:127.0.0.1", "loopback"},
		{"loopback allowed", []string{Loopback}, "127.0.0.1", ""},
		{"instance metadata", nil, "169.254.169.254", "link-local"},
		{"instance metadata not by loopback", []string{Loopback}, "169.254.169.254", "link-local"},
		{"link-local allowed", []string{LinkLocal}, "fe80::1", ""},
		{"link-local of an interface", nil, "fe80::1%eth0", "link-local"},
		{"link-local of an interface allowed", []string{"fe80::/64"}, "fe80::1%eth0", ""},
		{"instance metadata behind a translator", nil, "64:ff9b::169.254.169.254", "link-local"},
		{"loopback behind a translator", nil, "64:ff9b::127.0.0.1", "loopback"},
		{"API server behind a translator", nil, "64:ff9b::10.96.0.1", "the API server"},
		{"translator allowed", []string{"64:ff9b::/96"}, "64:ff9b::10.96.0.1", ""},
		{"public behind a translator", nil, "64:ff9b::203.0.113.7", ""},
		{"instance metadata of EC2 over v6", nil, "fd00:ec2::254", "link-local"},
		{"instance metadata of Compute Engine over v6 allowed", []string{LinkLocal}, "fd20:ce::254", ""},
		{"private v6", nil, "fd00::1", ""},
		{"API server", nil, "10.96.0.1", "the API server"},
		{"API server allowed by CIDR", []string{"10.96.0.0/12"}, "10.96.0.1", ""},
		{"one loopback address allowed", []string{"127.0.0.2"}, "127.0.0.2", ""},
		{"one loopback address allowed, another not", []string{"127.0.0.2"}, "127.0.0.1", "loopback"},
		{"unspecified", []string{Loopback}, "0.0.0.0", "not a unicast address"},
		{"multicast", nil, "239.1.1.1", "not a unicast address"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policy, err := NewPolicy(tc.allow, apiServer)
			if err != nil {
				t.Fatal(err)
			}
			err = policy.Check(netip.MustParseAddr(tc.address))
			var refused *RefusedError
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.refused != "" && !errors.As(err, &refused):
				t.Errorf("not refused: %v", err)
			case tc.refused != "" && refused.Class != tc.refused:
				t.Errorf("class %q, want %q", refused.Class, tc.refused)
			}
		})
	}
}

func TestNewPolicyNamesWhatIsAllowed(t *testing.T) {
	_, err := NewPolicy([]string{"localhost"})
	if err == nil || !strings.Contains(err.Error(), `"loopback", "link-local", an IP address or a CIDR`) {
		t.Errorf("error = %v", err)
	}
}

func TestDialContextLooksAtTheResolvedAddress(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	closed, open := &Policy{}, &Policy{loopback: true}

	var refused *RefusedError
	if _, err := closed.DialContext(t.Context(), "tcp", net.JoinHostPort("localhost", port)); !errors.As(err, &refused) {
		t.Errorf("a name that resolves to loopback: %v, want a RefusedError", err)
	}
	conn, err := open.DialContext(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	if err != nil {
		t.Fatalf("with loopback allowed: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
