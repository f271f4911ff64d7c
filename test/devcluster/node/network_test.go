// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"net"
	"net/netip"
	"testing"

	"github.com/configbutler/slipstream/test/container"
)

// A Pod reaches an external address through its own network, and does not have that address.
func TestPodNetwork(t *testing.T) {
	container.NeedRoot(t)
	outside := netip.MustParseAddr("198.51.100.1")
	made, err := newPodNetwork(outside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.close)
	listener, err := listen(t.Context(), made, net.JoinHostPort(outside.String(), "80"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connection, err := dial(t.Context(), made, listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	err = made.do(func() error {
		addrs, err := net.InterfaceAddrs()
		for _, each := range addrs {
			if prefix := netip.MustParsePrefix(each.String()); !prefix.Addr().IsLoopback() {
				t.Errorf("unexpected address %s in the Pod's network", prefix)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
