// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package balancer answers TCP connections on one address by joining each to one of
// several servers, in turn, past those that do not answer.
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

// Balancer joins connections to servers.
type Balancer struct {
	dial func(ctx context.Context) (net.Conn, error)
}

// New returns a balancer over servers, each host:port.
func New(servers ...string) (*Balancer, error) {
	if len(servers) == 0 {
		return nil, errors.New("a balancer needs a server")
	}
	return Through((&turns{servers: servers}).dial), nil
}

// Through returns a balancer that has dial choose the server for each connection.
func Through(dial func(ctx context.Context) (net.Conn, error)) *Balancer {
	return &Balancer{dial: dial}
}

// Serve joins connections until ctx ends, then closes those that are open, and
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
			return fmt.Errorf("accepting a connection: %w", err)
		}
		connections.Go(func() { b.serveClient(ctx, client) })
	}
}

// serveClient joins one client to a server.
func (b *Balancer) serveClient(ctx context.Context, client net.Conn) {
	server, err := b.dial(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "No server answers")
		_ = client.Close()
		return
	}
	join(ctx, client, server)
}

// turns goes round servers.
type turns struct {
	servers []string
	next    atomic.Uint64
}

// dial connects to the server whose turn it is, or to the next one that answers.
func (t *turns) dial(ctx context.Context) (net.Conn, error) {
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

// join copies both ways until both ends have sent all they had, one of them fails, or
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

// forward copies one way and passes the end of the input on.
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
