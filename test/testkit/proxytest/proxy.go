// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxytest

import (
	"bufio"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Options configure a proxy. With the zero value it forwards everything.
type Options struct {
	// Username and Password are required of clients unless they are empty.
	Username, Password string
	// Status is the status of the reply to CONNECT, instead of connecting.
	Status int
	// Reply is the code of the reply of a SOCKS5 proxy, instead of connecting.
	Reply byte
	// Hosts are the addresses to which the proxy connects for targets; others are connected to as they are.
	Hosts map[string]string
	// CutAfter ends tunnels after a number of bytes from the target, if it is not 0.
	CutAfter int64
	// Respond replaces the protocol on a connection.
	Respond func(net.Conn)
}

// Proxy is a running proxy.
type Proxy struct {
	// URL is the address, without credentials.
	URL string
	// CABundle has the authority of an HTTPS proxy.
	CABundle []byte

	options  Options
	listener net.Listener
	handle   func(net.Conn)
	running  sync.WaitGroup

	mu          sync.Mutex
	targets     []string
	connections []net.Conn
	closed      bool
}

// NewHTTP starts an HTTP proxy.
func NewHTTP(t *testing.T, options Options) *Proxy {
	t.Helper()
	p := newProxy(t, "http", options, nil)
	p.handle = p.serveHTTP
	p.start(t)
	return p
}

// NewHTTPS starts an HTTPS proxy.
func NewHTTPS(t *testing.T, options Options) *Proxy {
	t.Helper()
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	defer certified.Close()
	p := newProxy(t, "https", options, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates})
	p.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw})
	p.handle = p.serveHTTP
	p.start(t)
	return p
}

// NewSOCKS5 starts a SOCKS5 proxy.
func NewSOCKS5(t *testing.T, options Options) *Proxy {
	t.Helper()
	p := newProxy(t, "socks5", options, nil)
	p.handle = p.serveSOCKS
	p.start(t)
	return p
}

func newProxy(t *testing.T, scheme string, options Options, configuration *tls.Config) *Proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if configuration != nil {
		listener = tls.NewListener(listener, configuration)
	}
	return &Proxy{URL: scheme + "://" + listener.Addr().String(), options: options, listener: listener}
}

// Data returns the data of a Secret with the proxy, its credentials and its authority.
func (p *Proxy) Data() map[string][]byte {
	data := map[string][]byte{"address": []byte(p.URL)}
	for key, value := range map[string]string{
		"username": p.options.Username, "password": p.options.Password, "ca.crt": string(p.CABundle),
	} {
		if value != "" {
			data[key] = []byte(value)
		}
	}
	return data
}

// Targets returns what clients have asked the proxy to connect to.
func (p *Proxy) Targets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.targets)
}

func (p *Proxy) start(t *testing.T) {
	p.running.Go(func() {
		for {
			connection, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.track(connection)
			p.running.Go(func() {
				defer func() { _ = connection.Close() }()
				if p.options.Respond != nil {
					p.options.Respond(connection)
					return
				}
				p.handle(connection)
			})
		}
	})
	t.Cleanup(p.Close)
}

// Close ends the proxy and all tunnels.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for _, connection := range p.connections {
		_ = connection.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

// track has Close close a connection.
func (p *Proxy) track(connection net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connections = append(p.connections, connection)
	if p.closed {
		_ = connection.Close()
	}
}

// serveHTTP serves CONNECT. Other requests are refused.
func (p *Proxy) serveHTTP(client net.Conn) {
	reader := bufio.NewReader(client)
	request, err := http.ReadRequest(reader)
	if err != nil {
		reply(client, http.StatusBadRequest)
		return
	}
	p.record(request.Host)
	status := p.options.Status
	username, password, _ := basicAuth(request)
	switch {
	case request.Method != http.MethodConnect:
		status = http.StatusMethodNotAllowed
	case username != p.options.Username || password != p.options.Password:
		status = http.StatusProxyAuthRequired
	}
	if status != 0 {
		reply(client, status)
		return
	}
	target, err := p.connect(request.Host)
	if err != nil {
		reply(client, http.StatusBadGateway)
		return
	}
	reply(client, http.StatusOK)
	p.forward(client, reader, target)
}

// basicAuth returns the credentials for the proxy.
func basicAuth(request *http.Request) (username, password string, ok bool) {
	authorization := http.Request{Header: http.Header{"Authorization": request.Header["Proxy-Authorization"]}}
	return authorization.BasicAuth()
}

func reply(client net.Conn, status int) {
	response := http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1}
	if status == http.StatusProxyAuthRequired {
		response.Header = http.Header{"Proxy-Authenticate": {"Basic"}}
	}
	_ = response.Write(client)
}

// record records what a client asks for.
func (p *Proxy) record(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = append(p.targets, address)
}

// connect connects to a target.
func (p *Proxy) connect(address string) (net.Conn, error) {
	if mapped := p.options.Hosts[address]; mapped != "" {
		address = mapped
	}
	target, err := net.Dial("tcp", address) //nolint:noctx // Close ends it: all targets are on this host.
	if err == nil {
		p.track(target)
	}
	return target, err
}

// forward copies between a client and a target until one of them ends.
func (p *Proxy) forward(client net.Conn, fromClient io.Reader, target net.Conn) {
	var fromTarget io.Reader = target
	if p.options.CutAfter > 0 {
		fromTarget = io.LimitReader(target, p.options.CutAfter)
	}
	p.running.Go(func() {
		_, _ = io.Copy(target, fromClient)
		_ = target.Close()
	})
	_, _ = io.Copy(client, fromTarget)
	_, _ = client.Close(), target.Close()
}
