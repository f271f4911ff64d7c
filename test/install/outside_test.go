// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/balancer"
	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// Addresses of servers outside of the cluster in Pods, from ranges for documentation.
const (
	gitAddress      = "198.51.100.1:443"
	receiverAddress = "198.51.100.2:443"
	etcdAddress     = "198.51.100.3:2379"
)

// outside are the servers outside of the cluster. They use HTTPS, because the server rejects HTTP by default.
type outside struct {
	// addresses maps the addresses in Pods to those of the machine.
	addresses map[string]string
	// authority is the PEM certificate of the servers' authority.
	authority string
}

func newOutside(t *testing.T, cluster *devcluster.Cluster) *outside {
	t.Helper()
	authority, err := pki.NewAuthority("outside")
	if err != nil {
		t.Fatal(err)
	}
	return &outside{
		authority: string(authority.Certificate),
		addresses: map[string]string{
			gitAddress:      secured(t, authority, gitAddress, cluster.Env(devcluster.EnvGitURL)),
			receiverAddress: secured(t, authority, receiverAddress, cluster.Env(devcluster.EnvReceiverURL)),
			etcdAddress:     strings.TrimPrefix(cluster.EtcdURL(), "http://"),
		},
	}
}

// secured starts a TLS proxy for a server until the test ends, and returns its address.
func secured(t *testing.T, authority *pki.Authority, address, url string) string {
	t.Helper()
	pair, err := authority.Server("outside", netip.MustParseAddrPort(address).Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	forward, err := balancer.New(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	settings := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	go func() { ended <- forward.Serve(ctx, tls.NewListener(listener, settings)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}
