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
)

// deadline is more than anything here takes.
const deadline = 2 * time.Minute

// startNamed starts a server that sends its name, then whatever it is sent, and
// returns its address and what ends it.
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
		t.Fatalf("listening: %v", err)
	}
	return listener
}

// startBalancer starts a balancer and returns its address and what ends it.
func startBalancer(t *testing.T, servers ...string) (address string, stop func()) {
	t.Helper()
	b, err := balancer.New(servers...)
	if err != nil {
		t.Fatalf("making the balancer: %v", err)
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
			t.Errorf("serving: %v", err)
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
		t.Fatalf("dialling: %v", err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatalf("limiting: %v", err)
	}
	name := make([]byte, 1)
	if _, err := io.ReadFull(connection, name); err != nil {
		return connection, ""
	}
	return connection, string(name)
}

func TestServersTakeTurns(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
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
		t.Errorf("want two connections each, got %v", seen)
	}
}

func TestServerThatIsDownIsPassedOver(t *testing.T) {
	a, stopA := startNamed(t, "a")
	b, _ := startNamed(t, "b")
	address, _ := startBalancer(t, a, b)
	stopA()
	for range 4 {
		if _, name := dial(t, address); name != "b" {
			t.Errorf("want the server that is up, got %q", name)
		}
	}
}

func TestNoServerEndsTheConnection(t *testing.T) {
	a, stopA := startNamed(t, "a")
	address, _ := startBalancer(t, a)
	stopA()
	if _, name := dial(t, address); name != "" {
		t.Errorf("want a closed connection, got %q", name)
	}
}

func TestBytesGoBothWaysUntilTheEnd(t *testing.T) {
	a, _ := startNamed(t, "a")
	address, _ := startBalancer(t, a)
	connection, _ := dial(t, address)
	if _, err := io.WriteString(connection, "there and back"); err != nil {
		t.Fatalf("sending: %v", err)
	}
	if err := connection.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatalf("ending: %v", err)
	}
	got, err := io.ReadAll(connection)
	if err != nil || string(got) != "there and back" {
		t.Errorf("want what was sent, got %q and %v", got, err)
	}
}

func TestEndClosesOpenConnections(t *testing.T) {
	a, _ := startNamed(t, "a")
	address, stop := startBalancer(t, a)
	connection, _ := dial(t, address)
	stop()
	if _, err := connection.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open after the balancer's end")
	}
}

func TestNewNeedsAServer(t *testing.T) {
	if _, err := balancer.New(); err == nil {
		t.Error("no error for a balancer without servers")
	}
}
