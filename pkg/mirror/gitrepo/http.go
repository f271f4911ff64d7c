// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

const (
	discoveryPath = "/info/refs"
	maxRedirects  = 5
)

// errRedirected is the cause of an error if the server redirects a request that is not for the advertisement.
var errRedirected = errors.New("the server redirects the request")

// newHTTPClient returns the client that all sessions share; it keeps connections open between them.
func (r *Remote) newHTTPClient() (*http.Client, error) {
	configuration, err := r.tlsConfig()
	if err != nil {
		return nil, err
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{}
	}
	transport = transport.Clone()
	transport.TLSClientConfig = configuration
	// A compressed response would count with its decompressed size, which can be zero however much was read.
	transport.MaxResponseHeaderBytes, transport.DisableCompression = maxHeader, true
	// HTTP/2 has frames that belong to no response, so the budget could not count them.
	transport.Protocols = &http.Protocols{}
	transport.Protocols.SetHTTP1(true)
	return &http.Client{Transport: r.dialer().RoundTripper(transport), CheckRedirect: checkRedirect}, nil
}

func (r *Remote) tlsConfig() (*tls.Config, error) {
	configuration := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(r.Credentials.CABundle) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(r.Credentials.CABundle) {
			return nil, refuse(Invalid, "the CA bundle holds no certificate in PEM form")
		}
		configuration.RootCAs = pool
	}
	if len(r.Credentials.ClientCert) > 0 || len(r.Credentials.ClientKey) > 0 {
		if len(r.Credentials.ClientKey) > maxPrivateKey {
			return nil, refuse(Invalid, "the key of the client certificate is larger than %s", sizeText(maxPrivateKey))
		}
		pair, err := tls.X509KeyPair(r.Credentials.ClientCert, r.Credentials.ClientKey)
		if err != nil {
			return nil, refuse(Invalid, "the client certificate cannot be used: %v", err)
		}
		configuration.Certificates = []tls.Certificate{pair}
	}
	return configuration, nil
}

// checkRedirect allows redirects within the host, and from http to https. Credentials and client certificates must not
// reach another host, and without them a push there would fail.
func checkRedirect(request *http.Request, via []*http.Request) error {
	from, to := via[0].URL, request.URL
	upgrade := from.Scheme == "http" && to.Scheme == "https" && from.Hostname() == to.Hostname()
	switch {
	case len(via) > maxRedirects:
		return refuse(Protocol, "the server redirects too often")
	case request.Method != http.MethodGet || !strings.HasSuffix(to.Path, discoveryPath):
		return &refusal{
			kind: Protocol, text: fmt.Sprintf("the server redirects to %s, which is no repository", to.Redacted()), cause: errRedirected,
		}
	case !upgrade && (from.Scheme != to.Scheme || from.Host != to.Host):
		return refuse(Rejected, "the server redirects to another host, %s; credentials are not sent there: name it in the URL",
			to.Host)
	}
	return nil
}

// httpSession is a session of two HTTP requests.
type httpSession struct {
	remote  *Remote
	client  *http.Client
	service service
	budget  *budget
	// base is the repository's URL, after redirects.
	base string
}

func (r *Remote) openHTTP(service service, budget *budget) (*httpSession, error) {
	client, err := r.httpClient()
	if err != nil {
		return nil, err
	}
	return &httpSession{remote: r, client: client, service: service, budget: budget, base: r.base()}, nil
}

// base returns the URL of the repository, to which the paths of the protocol are added.
func (r *Remote) base() string { return strings.TrimSuffix(r.endpoint.String(), "/") }

func (s *httpSession) close() {}

func (s *httpSession) advertisement(ctx context.Context, reference string) (*packp.AdvRefs, error) {
	address := s.base + discoveryPath + "?service=" + url.QueryEscape(string(s.service))
	response, err := s.do(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	want := fmt.Sprintf("application/x-%s-advertisement", s.service)
	if kind := response.Header.Get("Content-Type"); kind != want {
		return nil, refuse(Protocol, "the server does not speak Git's protocol over HTTP: it answers with %q", kind)
	}
	final := *response.Request.URL
	final.RawQuery, final.User = "", nil
	s.base = strings.TrimSuffix(final.String(), discoveryPath)
	if base := s.base; base != s.remote.base() {
		s.remote.redirect.Store(&base)
	}
	advertised, err := readAdvertisement(response.Body, reference)
	if err == nil {
		drain(response.Body)
	}
	return advertised, err
}

func (s *httpSession) request(ctx context.Context, parts ...[]byte) (io.ReadCloser, error) {
	response, err := s.do(ctx, http.MethodPost, s.base+"/"+string(s.service), parts) //nolint:bodyclose // The caller closes it.
	if err != nil {
		return nil, err
	}
	return drained{response.Body}, nil
}

// drained is a response body that Close drains.
type drained struct{ io.ReadCloser }

// Close drains and closes the body.
func (d drained) Close() error {
	drain(d.ReadCloser)
	return d.ReadCloser.Close()
}

// drain reads the rest of a body, so that the connection can be reused. After a valid response a few bytes are left, so
// it reads no more than that.
func drain(body io.Reader) { _, _ = io.CopyN(io.Discard, body, maxMessage) }

// meteredBody is a response body that counts against the budget.
type meteredBody struct {
	io.Reader
	io.Closer
}

// do makes a request. If the server refuses a token, it is made once more with a new one.
func (s *httpSession) do(ctx context.Context, method, address string, parts [][]byte) (*http.Response, error) {
	token, err := s.remote.token(ctx, "")
	if err != nil {
		return nil, err
	}
	response, err := s.send(ctx, method, address, token, parts)
	if err != nil || response.StatusCode != http.StatusUnauthorized || token == "" {
		return accepted(response, err)
	}
	renewed, err := s.remote.token(ctx, token)
	if err == nil && renewed == token {
		return accepted(response, nil)
	}
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	return accepted(s.send(ctx, method, address, renewed, parts))
}

// accepted returns a response with the status 200; otherwise it closes the response.
func accepted(response *http.Response, err error) (*http.Response, error) {
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	return nil, refusedByStatus(response)
}

func (s *httpSession) send(ctx context.Context, method, address, token string, parts [][]byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, refuse(Invalid, "the repository URL cannot be used")
	}
	request.Header.Set("User-Agent", capability.DefaultAgent())
	if method == http.MethodPost {
		request.Header.Set("Content-Type", fmt.Sprintf("application/x-%s-request", s.service))
		request.Header.Set("Accept", fmt.Sprintf("application/x-%s-result", s.service))
		setBody(request, parts)
	}
	s.authorize(request, token)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	if response.StatusCode == http.StatusSwitchingProtocols { // The context does not end reads of another protocol.
		_ = response.Body.Close()
		return nil, refuse(Protocol, "the server switches to another protocol: %s", printable([]byte(response.Status)))
	}
	response.Body = meteredBody{s.budget.meter(response.Body), response.Body}
	return response, nil
}

// setBody sets a body of the parts without joining them. The client can send it again if the connection was closed.
func setBody(request *http.Request, parts [][]byte) {
	body := func() (io.ReadCloser, error) {
		readers := make([]io.Reader, len(parts))
		for i, part := range parts {
			readers[i] = bytes.NewReader(part)
		}
		return io.NopCloser(io.MultiReader(readers...)), nil
	}
	for _, part := range parts {
		request.ContentLength += int64(len(part))
	}
	request.GetBody = body
	request.Body, _ = body()
}

// authorize adds the credentials, or the token if there is one.
func (s *httpSession) authorize(request *http.Request, token string) {
	switch credentials := s.remote.credentials; {
	case token != "" && s.remote.Credentials.Username != "":
		request.SetBasicAuth(credentials.Username, token)
	case token != "":
		request.Header.Set("Authorization", "Bearer "+token)
	case credentials.BearerToken != "":
		request.Header.Set("Authorization", "Bearer "+credentials.BearerToken)
	case credentials.Password != "":
		request.SetBasicAuth(credentials.Username, credentials.Password)
	}
}

// withoutURL unwraps url.Error, which would repeat the URL in every message.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// refusedByStatus returns the error for a status other than 200.
func refusedByStatus(response *http.Response) error {
	text := response.Status
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") {
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxMessage))
		text += ": " + printable(body)
	}
	switch code := response.StatusCode; {
	case code == http.StatusForbidden:
		return &refusal{kind: Unauthorized, text: "the server refuses the credentials: " + text, cause: &forbidden{text}}
	case code == http.StatusUnauthorized || code == http.StatusProxyAuthRequired:
		return refuse(Unauthorized, "the server refuses the credentials: %s", text)
	case code == http.StatusNotFound || code == http.StatusGone:
		return refuse(NotFound, "the server knows no such repository: %s", text)
	case code == http.StatusTooManyRequests:
		return &refusal{kind: Unreachable, text: "the server limits requests: " + text, cause: errLimited}
	case code >= http.StatusInternalServerError || code == http.StatusRequestTimeout:
		return refuse(Unreachable, "the server cannot answer: %s", text)
	default:
		return refuse(Rejected, "the server refuses the request: %s", text)
	}
}
