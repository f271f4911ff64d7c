// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirrortest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// Wire forwards connections to an address, and can be interrupted.
type Wire struct {
	net.Listener
	target string

	mu   sync.Mutex
	open map[net.Conn]struct{}
	cut  bool
}

// NewWire listens on a new address until the test ends, and forwards to the target.
func NewWire(t testing.TB, target string) *Wire {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{Listener: listener, target: target, open: map[net.Conn]struct{}{}}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(t.Context(), connection)
		}
	}()
	return w
}

func (w *Wire) carry(ctx context.Context, from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.target)
	if err != nil || !w.hold(from) {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}

func (w *Wire) hold(connection net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		w.open[connection] = struct{}{}
	}
	return !w.cut
}

// Sever closes all connections and rejects new ones, until it is called with false.
func (w *Wire) Sever(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for connection := range w.open {
		_ = connection.Close()
	}
	clear(w.open)
}

// NewWiredCluster starts a cluster whose server connects to kube-apiserver through a Wire.
func NewWiredCluster(t testing.TB, options devcluster.Options) (*AdminCluster, *Wire) {
	t.Helper()
	server := clustertest.Program(t, "cmd/slipstream")
	// The first start determines the address of kube-apiserver. The second one uses the wire.
	dir := t.TempDir()
	arguments := filepath.Join(dir, "arguments")
	options.ServerProgram = filepath.Join(dir, "slipstream")
	write(t, options.ServerProgram, fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" $(cat %s)\n", server, arguments))
	write(t, arguments, "")
	s := NewAdminCluster(t, options)
	kubeconfig, w := Wired(t, s.ServerAccount())
	write(t, arguments, "--kubeconfig="+string(kubeconfig))
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, w
}

// Wired returns a copy of a user's kubeconfig that uses a new Wire.
func Wired(t testing.TB, user devcluster.Kubeconfig) (kubeconfig devcluster.Kubeconfig, w *Wire) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(string(user))
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		target, err := url.Parse(cluster.Server)
		if err != nil {
			t.Fatal(err)
		}
		w = NewWire(t, target.Host)
		cluster.Server = "https://" + w.Addr().String()
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return devcluster.Kubeconfig(path), w
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// ForgetHistory compacts etcd to the current revision.
func (s *AdminCluster) ForgetHistory(t testing.TB) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.EtcdURL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	present, err := client.Get(t.Context(), "/", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), present.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
}
