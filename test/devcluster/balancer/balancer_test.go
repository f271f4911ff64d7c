// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/configbutler/slipstream/test/devcluster/balancer"
	"github.com/configbutler/slipstream/test/testkit"
)

// deadline exceeds the duration of every test.
const deadline = 2 * time.Minute

// startNamed starts a server that sends its name, then echoes its input, and
// returns its address and a function that stops it.
func startNamed(t *testing.T, name string) (address string, stop func()) {
	t.Helper()
	listener := listen(t)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = connection.Close() }()
				if _, err := io.WriteString(connection, name); err == nil {
					_, _ = io.Copy(connection, connection)
				}
			}()
		}
	}()
	stop = func() { _ = listener.Close() }
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	return listener
}

// startBalancer starts a balancer and returns its address and a function that stops it.
func startBalancer(t *testing.T, servers ...string) (address string, stop func()) {
	t.Helper()
	b, err := balancer.New(servers...)
	if err != nil {
		t.Fatalf("make the balancer: %v", err)
	}
	listener := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, listener) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// dial opens a connection and reads the one letter that is the server's name.
func dial(t *testing.T, address string) (net.Conn, string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatalf("set the deadline: %v", err)
	}
	name := make([]byte, 1)
	if _, err := io.ReadFull(connection, name); err != nil {
		return connection, ""
	}
	return connection, string(name)
}

func TestRoundRobin(t *testing.T) {
	before := goleak.IgnoreCurrent()
	defer testkit.Eventually(t, "no goroutines are left", func() error { return goleak.Find(before) })
	a, stopA := startNamed(t, "a")
	defer stopA()
	b, stopB := startNamed(t, "b")
	defer stopB()
	address, stop := startBalancer(t, a, b)
	defer stop()
	seen := map[string]int{}
	for range 4 {
		connection, name := dial(t, address)
		seen[name]++
		_ = connection.Close()
	}
	if seen["a"] != 2 || seen["b"] != 2 {
		t.Errorf("got connections %v, want two each", seen)
	}
}

func TestStoppedServerSkipped(t *testing.T) {
	a, stopA := startNamed(t, "a")
	b, _ := startNamed(t, "b")
	address, _ := startBalancer(t, a, b)
	stopA()
	for range 4 {
		if _, name := dial(t, address); name != "b" {
			t.Errorf("got server %q, want b", name)
		}
	}
}

func TestNoServerAvailable(t *testing.T) {
	a, stopA := startNamed(t, "a")
	address, _ := startBalancer(t, a)
	stopA()
	if _, name := dial(t, address); name != "" {
		t.Errorf("got server %q, want a closed connection", name)
	}
}

func TestForwardBothDirections(t *testing.T) {
	a, _ := startNamed(t, "a")
	address, _ := startBalancer(t, a)
	connection, _ := dial(t, address)
	if _, err := io.WriteString(connection, "echoed"); err != nil {
		t.Fatalf("send: %v", err)
	}
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatalf("close the write side: %v", err)
	}
	got, err := io.ReadAll(connection)
	if err != nil || string(got) != "echoed" {
		t.Errorf("got %q, %v, want the bytes that were sent", got, err)
	}
}

func TestStopClosesConnections(t *testing.T) {
	a, _ := startNamed(t, "a")
	address, stop := startBalancer(t, a)
	connection, _ := dial(t, address)
	stop()
	if _, err := connection.Read(make([]byte, 1)); err == nil {
		t.Error("connection still open after the balancer has ended")
	}
}

func TestNewWithoutServers(t *testing.T) {
	if _, err := balancer.New(); err == nil {
		t.Error("got no error for a balancer without servers")
	}
}
