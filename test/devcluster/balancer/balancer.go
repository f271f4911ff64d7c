// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package balancer forwards TCP connections on one address to several servers, round robin. It skips servers that do not
// accept connections.
package balancer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// dialTimeout is long for a server on the same machine.
const dialTimeout = 2 * time.Second

// Balancer forwards connections to servers.
type Balancer struct {
	dial func(ctx context.Context) (net.Conn, error)
}

// New returns a balancer over servers, each host:port.
func New(servers ...string) (*Balancer, error) {
	if len(servers) == 0 {
		return nil, errors.New("a balancer needs a server")
	}
	return Through((&roundRobin{servers: servers}).dial), nil
}

// Through returns a balancer whose connections are made by dial.
func Through(dial func(ctx context.Context) (net.Conn, error)) *Balancer {
	return &Balancer{dial: dial}
}

// Serve forwards connections until ctx ends, then closes those that are open, and
// returns when all are closed. It closes the listener.
func (b *Balancer) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		client, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("failed to accept a connection: %w", err)
		}
		connections.Go(func() { b.serveClient(ctx, client) })
	}
}

// serveClient forwards one connection.
func (b *Balancer) serveClient(ctx context.Context, client net.Conn) {
	server, err := b.dial(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "No server accepts connections")
		_ = client.Close()
		return
	}
	join(ctx, client, server)
}

// roundRobin selects servers in turn.
type roundRobin struct {
	servers []string
	next    atomic.Uint64
}

// dial connects to the next server, or to the first one after it that accepts the connection.
func (t *roundRobin) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	first := t.next.Add(1)
	var failures []error
	for offset := range uint64(len(t.servers)) {
		address := t.servers[(first+offset)%uint64(len(t.servers))]
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return connection, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// join copies in both directions until both ends have sent all data, one of them fails, or
// ctx ends, and closes both.
func join(ctx context.Context, client, server net.Conn) {
	hangUp := func() {
		_ = client.Close()
		_ = server.Close()
	}
	stop := context.AfterFunc(ctx, hangUp)
	defer stop()
	defer hangUp()
	var directions sync.WaitGroup
	directions.Go(func() { forward(server, client, hangUp) })
	directions.Go(func() { forward(client, server, hangUp) })
	directions.Wait()
}

// forward copies in one direction and forwards the end of the input.
func forward(to, from net.Conn, hangUp func()) {
	if _, err := io.Copy(to, from); err != nil {
		hangUp()
		return
	}
	half, ok := to.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		hangUp()
	}
}
