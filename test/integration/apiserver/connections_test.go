// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
)

// connections are the connections of a client, which a test can close and count requests on.
type connections struct {
	mu   sync.Mutex
	open []net.Conn
	// down makes new connections fail.
	down bool
	// lists counts list requests, including watches that start with a list.
	lists atomic.Int32
}

func (l *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		l.open = append(l.open, connection)
	}
	return connection, err
}

// cut closes all connections and makes new ones fail until it is called with false.
func (l *connections) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, connection := range l.open {
		_ = connection.Close()
	}
	l.open = nil
}

func (l *connections) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		query := request.URL.Query()
		if err == nil && response.StatusCode == http.StatusOK && (!query.Has("watch") || query.Get("sendInitialEvents") == "true") {
			l.lists.Add(1)
		}
		return response, err
	})
}

// roundTripper is a function that implements http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
