// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/configbutler/slipstream/test/devcluster"
)

// wire carries connections to an address until it is cut.
type wire struct {
	net.Listener
	target string

	mu   sync.Mutex
	open map[net.Conn]struct{}
	cut  bool
}

func newWire(t *testing.T, target string) *wire {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: listener, target: target, open: map[net.Conn]struct{}{}}
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

func (w *wire) carry(ctx context.Context, from net.Conn) {
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

func (w *wire) hold(connection net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		w.open[connection] = struct{}{}
	}
	return !w.cut
}

// sever cuts the wire, or joins it again.
func (w *wire) sever(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for connection := range w.open {
		_ = connection.Close()
	}
	clear(w.open)
}

// wired makes a cluster whose server reaches kube-apiserver over a wire.
func wired(t *testing.T) (*stage, *wire) {
	t.Helper()
	dir := t.TempDir()
	program, arguments := filepath.Join(dir, "slipstream"), filepath.Join(dir, "arguments")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program+".bin", "github.com/configbutler/slipstream/cmd/slipstream")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	writeFile(t, program, fmt.Sprintf("#!/bin/sh\nexec %s.bin \"$@\" $(cat %s)\n", program, arguments))
	writeFile(t, arguments, "")
	s := newStage(t, devcluster.Options{ServerProgram: program})
	config, err := clientcmd.LoadFromFile(string(s.Admin()))
	if err != nil {
		t.Fatal(err)
	}
	var w *wire
	for _, cluster := range config.Clusters {
		target, err := url.Parse(cluster.Server)
		if err != nil {
			t.Fatal(err)
		}
		w = newWire(t, target.Host)
		cluster.Server = "https://" + w.Addr().String()
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	writeFile(t, arguments, "--kubeconfig="+kubeconfig)
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, w
}

// TestWatchExpired has an object deleted, and the history that would tell of it compacted, while the server cannot watch.
// kube-apiserver keeps no Events in memory, so that their watches are as old as etcd's history.
func TestWatchExpired(t *testing.T) {
	s, w := wired(t)
	m := s.newMirror(t, "expired")
	m.Watch(t, "events", "events")
	path := func(name string) string { return "core/v1/events/expired/" + name + ".yaml" }
	say := func(name, message string) {
		t.Helper()
		s.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: %s, namespace: expired}
involvedObject: {kind: Namespace, name: expired, namespace: expired}
reason: Tested
message: %s
`, name, message))
	}
	say("goes", "before")
	say("stays", "before")
	m.Holds(t, path("goes"), "message: before\n")
	m.Holds(t, path("stays"), "message: before\n")
	m.Settled(t)

	w.sever(true)
	s.Run(t, "delete", "event", "goes", "-n", "expired")
	say("stays", "after")
	say("comes", "after")
	forgetHistory(t, s.EtcdURL())
	w.sever(false)

	m.Holds(t, path("comes"), "message: after\n")
	m.Holds(t, path("stays"), "message: after\n")
	m.Lacks(t, path("goes"))
	m.Intact(t)
	if log, err := m.Git(t.Context(), "log", "-1", "--format=%s", "main"); err != nil || !strings.HasPrefix(log, "[SEED] ") || !strings.Contains(log, "1 deleted") {
		t.Errorf("no comparison has found it: the last commit is %q (%v)", log, err)
	}
}

// forgetHistory makes etcd forget all but the present.
func forgetHistory(t *testing.T, endpoint string) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
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
