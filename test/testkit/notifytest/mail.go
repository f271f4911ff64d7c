// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifytest

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/mailcatcher"
)

// MailServer is an SMTP server that keeps the mail.
type MailServer struct {
	*mailcatcher.Catcher
	Host string
	Port int32
	// CABundle is the authority of the certificate as PEM.
	CABundle []byte
}

// Mail starts an SMTP server on the loopback interface, which runs until the end of the test. With TLS, it has a certificate of an unknown
// authority for its address.
func Mail(t testing.TB, options mailcatcher.Options, withTLS bool) *MailServer {
	t.Helper()
	server := &MailServer{}
	if withTLS {
		// httptest makes the certificate.
		certified := httptest.NewTLSServer(http.NotFoundHandler())
		t.Cleanup(certified.Close)
		options.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates}
		server.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw})
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	server.Host, server.Port = address.IP.String(), int32(address.Port)
	server.Catcher = mailcatcher.New(io.Discard, options)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = listener.Close()
		_ = server.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return server
}
