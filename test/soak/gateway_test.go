// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// gateway is a reverse proxy between the server and another program, at which that program can fail.
type gateway struct {
	*httptest.Server

	mutex sync.Mutex
	// refuses responds to a request instead of the program, and reports whether it did. Nil while the program works.
	refuses func(http.ResponseWriter, *http.Request) bool
}

// newGateway starts a gateway for a URL. With a certificate it serves HTTPS, also HTTP/2.
func newGateway(t *testing.T, target string, certificate *tls.Certificate, transport http.RoundTripper) *gateway {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	g := &gateway{}
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses := g.fault(); refuses == nil || !refuses(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	g.Config.ErrorLog = proxy.ErrorLog
	if certificate == nil {
		g.Start()
	} else {
		g.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}
		g.EnableHTTP2 = true
		g.StartTLS()
	}
	t.Cleanup(g.end)
	return g
}

// end closes the gateway. Clients connect again when their connections are closed, until the gateway does not listen any more, and Close
// waits for their watches, which would not end.
func (g *gateway) end() {
	closed := make(chan struct{})
	go func() {
		g.Close()
		close(closed)
	}()
	for {
		g.CloseClientConnections()
		select {
		case <-closed:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (g *gateway) fault() func(http.ResponseWriter, *http.Request) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.refuses
}

func (g *gateway) set(refuses func(http.ResponseWriter, *http.Request) bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.refuses = refuses
}

// sever closes all connections, and those of new requests, until open is called.
func (g *gateway) sever() {
	g.set(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	g.CloseClientConnections()
}

// open ends the fault.
func (g *gateway) open() { g.set(nil) }

// newAPIGateway starts a gateway for kube-apiserver, and returns the kubeconfig with which the server uses it.
func newAPIGateway(t *testing.T, cluster *devcluster.Cluster) (g *gateway, kubeconfig string) {
	t.Helper()
	folder := filepath.Join(filepath.Dir(filepath.Dir(string(cluster.Admin()))), "pki")
	pair, err := pki.Read(folder, "cluster-ca")
	if err != nil {
		t.Fatal(err)
	}
	authority, err := pki.ParseAuthority(pair)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := authority.Server("gateway", "localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(serving.Certificate, serving.Key)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(string(cluster.ServerAccount()))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, ForceAttemptHTTP2: true}
	for _, each := range config.Clusters {
		g = newGateway(t, each.Server, &certificate, transport)
		each.Server = g.URL
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return g, kubeconfig
}
