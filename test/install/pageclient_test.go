// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"testing"
)

// pageClient is the proxy in front of the page. It verifies the certificate of the page's Service.
type pageClient struct {
	address  string
	settings *tls.Config
}

// pageClient returns a client without a certificate of its own.
func (s *testCluster) pageClient(t *testing.T) *pageClient {
	t.Helper()
	authority, err := base64.StdEncoding.DecodeString(s.Run(t, "get", "secret/slipstream-page-tls", "-n", namespace, "-o", "jsonpath={.data.ca\\.crt}"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		t.Fatal("no authority in ca.crt")
	}
	address := s.Run(t, "get", "service/slipstream-page", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}")
	return &pageClient{
		address:  net.JoinHostPort(address, "443"),
		settings: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "slipstream-page." + namespace + ".svc"},
	}
}

// expect opens a session for the namespace paged and lists its destinations, and compares the status of the first response that is no
// success.
func (p *pageClient) expect(t *testing.T, what string, status int, user http.Header) {
	t.Helper()
	var opened struct{ Session string }
	got, text := p.post(t, "session", map[string]string{"namespace": "paged"}, user, &opened)
	if got == http.StatusOK {
		user = maps.Clone(user)
		user.Set("X-Slipstream-Session", opened.Session)
		var list struct{ Rows []struct{ Name string } }
		got, text = p.post(t, "list", map[string]string{"resource": "gitdestinations", "namespace": "paged"}, user, &list)
		if got == http.StatusOK && (len(list.Rows) != 1 || list.Rows[0].Name != "main") {
			t.Errorf("%s: destinations = %v", what, list.Rows)
		}
	}
	if got != status {
		t.Errorf("%s: status %d, want %d: %s", what, got, status, text)
	}
}

// post sends a request as the page in a browser does, and decodes the response of a success.
func (p *pageClient) post(t *testing.T, route string, body any, user http.Header, into any) (status int, text string) {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, pageURL+"/api/"+route, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	if user != nil {
		request.Header = maps.Clone(user)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Origin": pageURL, "Sec-Fetch-Site": "same-origin"} {
		request.Header.Set(name, value)
	}
	transport := &http.Transport{
		TLSClientConfig: p.settings, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", p.address)
		},
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode == http.StatusOK {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w: %s", route, err, content))
	}
	return response.StatusCode, string(content)
}
