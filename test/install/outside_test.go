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

// Where Pods find what is outside of the cluster: addresses for documentation, which are nobody's.
const (
	gitAddress      = "198.51.100.1:443"
	receiverAddress = "198.51.100.2:443"
	etcdAddress     = "198.51.100.3:2379"
)

// outside is what there is around the cluster. Its servers speak HTTPS, since the server refuses anything less unless it is
// told otherwise.
type outside struct {
	// addresses lead Pods to the machine's.
	addresses map[string]string
	// authority is that of the servers, PEM.
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

// secured puts HTTPS before a server until the test ends, and returns the machine's address of that.
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
