// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/proxy"
)

// maxReply bounds the reply to CONNECT, in bytes.
const maxReply = 64 << 10

// tlsConfig returns the configuration for TLS with the proxy itself. What servers behind it require has no part in it.
func (p *Proxy) tlsConfig() (*tls.Config, error) {
	host, _, _ := net.SplitHostPort(p.host) // setAddress has joined them.
	configuration := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if len(p.caBundle) == 0 {
		return configuration, nil
	}
	configuration.RootCAs = x509.NewCertPool()
	if !configuration.RootCAs.AppendCertsFromPEM(p.caBundle) {
		return nil, errors.New("its caBundle holds no certificate in PEM form")
	}
	return configuration, nil
}

// encrypt starts TLS on a connection to the proxy, which it closes if that fails.
func (p *Proxy) encrypt(ctx context.Context, connection net.Conn) (net.Conn, error) {
	configuration, err := p.tlsConfig()
	if err != nil {
		_ = connection.Close()
		return nil, err
	}
	encrypted := tls.Client(connection, configuration)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = connection.Close()
		return nil, err
	}
	return encrypted, nil
}

// tunnel has the proxy connect to a target. It closes the connection if that fails.
func (p *Proxy) tunnel(ctx context.Context, connection net.Conn, target string) (net.Conn, error) {
	if p.isSOCKS() {
		return p.socks(ctx, connection, target)
	}
	deadline, _ := ctx.Deadline()
	_ = connection.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = connection.SetDeadline(time.Unix(1, 0)) })
	err := p.connectHTTP(connection, target)
	if !stop() {
		err = errors.Join(err, p.interrupted(ctx.Err(), target))
	}
	if err != nil {
		_ = connection.Close()
		return nil, err
	}
	return connection, connection.SetDeadline(time.Time{})
}

// connectHTTP sends CONNECT and reads the reply.
func (p *Proxy) connectHTTP(connection net.Conn, target string) error {
	request := &http.Request{
		Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{"User-Agent": {"slipstream"}},
	}
	if p.username != "" {
		basic := base64.StdEncoding.EncodeToString([]byte(p.username + ":" + p.password))
		request.Header.Set("Proxy-Authorization", "Basic "+basic)
	}
	if err := request.Write(connection); err != nil {
		return p.interrupted(err, target)
	}
	limited := &io.LimitedReader{R: connection, N: maxReply}
	reader := bufio.NewReader(limited)
	response, err := http.ReadResponse(reader, request) //nolint:bodyclose // Closing the body would read it. The caller closes the connection.
	switch {
	case err != nil && limited.N <= 0:
		return p.failed(err, "replies with more than %d bytes of headers: is its address right?", maxReply)
	case err != nil:
		return p.interrupted(err, target)
	case response.StatusCode/100 != 2:
		return p.ofStatus(response.StatusCode, target)
	case reader.Buffered() > 0: // Nothing can come before the client has sent something.
		return p.failed(nil, "does not reply as an HTTP proxy does: is its address right?")
	}
	return nil
}

// established is a dialer that returns a connection which exists already.
type established struct{ net.Conn }

// Dial returns the connection.
func (e established) Dial(string, string) (net.Conn, error) { return e.Conn, nil }

// DialContext returns the connection.
func (e established) DialContext(context.Context, string, string) (net.Conn, error) {
	return e.Conn, nil
}

// socks has a SOCKS5 proxy connect to a target.
func (p *Proxy) socks(ctx context.Context, connection net.Conn, target string) (net.Conn, error) {
	var auth *proxy.Auth
	if p.username != "" {
		auth = &proxy.Auth{User: p.username, Password: p.password}
	}
	dialer, err := proxy.SOCKS5("tcp", p.host, auth, established{connection})
	if err != nil {
		_ = connection.Close()
		return nil, p.interrupted(err, target)
	}
	through, ok := dialer.(proxy.ContextDialer)
	if !ok {
		_ = connection.Close()
		return nil, p.interrupted(errors.ErrUnsupported, target)
	}
	tunneled, err := through.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, p.ofSOCKS(err, target)
	}
	return tunneled, nil
}

// ofSOCKS returns the Error of a failed SOCKS5 connection. The library has texts for the replies of RFC 1928, and no types.
func (p *Proxy) ofSOCKS(err error, target string) error {
	text := err.Error()
	if failed := (*net.OpError)(nil); errors.As(err, &failed) {
		text = failed.Err.Error()
	}
	reply, isReply := strings.CutPrefix(text, "unknown error ")
	switch {
	case strings.Contains(text, "authentication"):
		return p.unauthorized(text)
	case reply == "connection not allowed by ruleset":
		return p.failed(err, "forbids connections to %s (%s): allow it there", target, reply)
	case isReply:
		return p.failed(err, "cannot connect to %s (%s)", target, reply)
	}
	return p.interrupted(err, target)
}
