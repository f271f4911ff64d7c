// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// through makes requests use a proxy.
func through(config *genericclioptions.ConfigFlags, proxy string) {
	config.WithWrapConfigFn(func(of *rest.Config) *rest.Config {
		of.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
		return of
	})
}

// TestErrorsOfConnections checks what the page shows if there is no connection to the API server: the reason, and no address.
func TestErrorsOfConnections(t *testing.T) {
	closes := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	forbids := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer forbids.Close()
	gone := httptest.NewServer(closes)
	gone.Close()
	secure := httptest.NewUnstartedServer(closes)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(closes)
	defer plain.Close()
	authority := filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	const failed = "The connection to the API server failed: "
	name := "api.example.org"
	for title, test := range map[string]struct {
		server string
		change func(*genericclioptions.ConfigFlags)
		want   string
	}{
		"nothing listens":     {gone.URL, nil, unreachable},
		"closed":              {plain.URL, nil, unreachable},
		"unknown certificate": {secure.URL, nil, failed + "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"another name": {secure.URL, func(config *genericclioptions.ConfigFlags) {
			config.CAFile, config.TLSServerName = &authority, &name
		}, "The certificate of the API server is for another name"},
		"no TLS": {strings.Replace(forbids.URL, "http:", "https:", 1), nil, failed + "http: server gave HTTP response to HTTPS client"},
		"no proxy": {
			secure.URL, func(config *genericclioptions.ConfigFlags) { through(config, gone.URL) },
			failed + "proxyconnect tcp: dial tcp: connect: connection refused",
		},
		"a proxy that refuses": {secure.URL, func(config *genericclioptions.ConfigFlags) { through(config, forbids.URL) }, failed + "Forbidden"},
	} {
		config, nowhere := genericclioptions.NewConfigFlags(true), os.DevNull
		config.APIServer, config.KubeConfig = &test.server, &nowhere
		if test.change != nil {
			test.change(config)
		}
		c, err := connect(config)
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(c.rest) // It does not try again, other than that of the API.
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.server, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		if got, do := c.explain(t.Context(), err); got != test.want || do != unreachableDo {
			t.Errorf("%s: %q, %q, want %q; the error is %v", title, got, do, test.want, err)
		}
	}
}
