// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/test/testkit"
)

// bundle returns the CA bundle of a server.
func bundle(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// secure starts a receiver with TLS that supports HTTP/2.
func (s *fixture) secure(handler http.HandlerFunc) *httptest.Server {
	s.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	// Handshakes that fail are what is tested.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	s.Cleanup(server.Close)
	s.spec.URL = server.URL
	return server
}

// Errors without a response are explained, and retried.
func TestNoAnswer(t *testing.T) {
	taken := func(http.ResponseWriter, *http.Request) {}
	for name, tt := range map[string]struct {
		arrange func(s *fixture)
		want    string
	}{
		"hangs": {func(s *fixture) {
			s.receiver(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				<-r.Context().Done()
			})
			s.spec.Timeout = &metav1.Duration{Duration: 50 * time.Millisecond}
		}, "HOST has not answered within 50ms; a longer timeout may help"},
		"hangs within its answer": {func(s *fixture) {
			s.receiver(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, "well")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			s.spec.Timeout = &metav1.Duration{Duration: 200 * time.Millisecond}
		}, "HOST has not answered within 200ms; a longer timeout may help"},
		"hangs up": {func(s *fixture) {
			s.receiver(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}, "the call to HOST failed: EOF"},
		"refused": {func(s *fixture) {
			s.receiver(taken).Close()
		}, "HOST refuses connections: does it run, and is the port of url right?"},
		"no such name": {func(s *fixture) {
			s.receiver(taken)
			s.dial = failingDial(&net.DNSError{Err: "no such host", Name: "index.search.svc", IsNotFound: true})
		}, "the name index.search.svc cannot be resolved (no such host): is the host of url right?"},
		"an address that is not allowed": {func(s *fixture) {
			s.receiver(taken)
			s.dial = (&egress.Policy{}).DialContext
		}, "connections to 127.0.0.1 (loopback) are refused; --allow-destinations can allow them"},
		"an unknown authority": {func(s *fixture) {
			s.secure(taken)
		}, "the certificate of HOST is signed by an authority that is not known: put that authority into caBundle"},
		"a certificate of another host": {func(s *fixture) {
			s.spec.CABundle = bundle(s.secure(taken))
			_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.spec.URL, "https://"))
			s.spec.URL = "https://127.0.0.2:" + port
			s.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+port)
			}
		}, "the certificate of HOST is for another host: x509: certificate is valid for 127.0.0.1, ::1, not 127.0.0.2"},
		"no TLS": {func(s *fixture) {
			s.receiver(taken)
			s.spec.URL = strings.Replace(s.spec.URL, "http:", "https:", 1)
		}, "HOST answers without TLS: url has to begin with http://, or the port is another one"},
		"headers without end": {func(s *fixture) {
			s.receiver(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X", strings.Repeat("x", 1<<20))
			})
		}, "the call to HOST failed: net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; " +
			"aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			tt.arrange(s)
			_, host, _ := strings.Cut(s.spec.URL, "://")
			want := strings.ReplaceAll(tt.want, "HOST", host)
			if got := s.deliver(s.sink()); got.Outcome != format.Retry || got.Message != want {
				t.Errorf("got %+v, want %q", got, want)
			}
		})
	}
}

func TestCABundle(t *testing.T) {
	s := newFixture(t)
	server := s.secure(func(http.ResponseWriter, *http.Request) {})
	s.spec.CABundle = bundle(server)
	if got := s.deliver(s.sink()); got.Outcome != format.Delivered {
		t.Errorf("with the bundle: %+v", got)
	}
	s.spec.CABundle = []byte("none")
	_, err := delivery.NewHTTP(delivery.Config{}, format.Source{}, s.spec)
	if err == nil || err.Error() != "caBundle holds no certificate in PEM form" {
		t.Error(err)
	}
}

// Connections without a TLS handshake are closed after the timeout.
func TestEndlessHandshake(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(testkit.Timeout)); err != nil {
		t.Fatal(err)
	}
	s := newFixture(t)
	// Long enough to connect on a busy machine.
	s.spec.URL, s.spec.Timeout = "https://"+listener.Addr().String(), &metav1.Duration{Duration: 2 * time.Second}
	sink := s.sink()
	for range 3 {
		if got := s.deliver(sink); got.Outcome != format.Retry {
			t.Errorf("got %+v", got)
		}
		taken, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(taken); err != nil { // Until it is closed.
			t.Log(err)
		}
		_ = taken.Close()
	}
}

// Only the beginning of an endless response is read, and its connection is closed.
func TestEndlessAnswer(t *testing.T) {
	s := newFixture(t)
	ended := make(chan struct{})
	s.receiver(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		_, _ = io.ReadAll(r.Body)
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<10)); err != nil {
				return
			}
		}
	})
	if got := s.deliver(s.sink()); got.Outcome != format.Delivered || len(got.Message) > 200 {
		t.Errorf("got %+v", got)
	}
	<-ended
}

// A compressed response is not decompressed.
func TestCompressedAnswer(t *testing.T) {
	var bomb bytes.Buffer
	packer := gzip.NewWriter(&bomb)
	for range 4 {
		_, _ = packer.Write(make([]byte, 1<<20))
	}
	if err := packer.Close(); err != nil {
		t.Fatal(err)
	}
	s := newFixture(t)
	s.receiver(func(w http.ResponseWriter, r *http.Request) {
		if accepted := r.Header.Get("Accept-Encoding"); accepted != "" {
			t.Errorf("Accept-Encoding = %s", accepted)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	if got := s.deliver(s.sink()); got.Outcome != format.Delivered || got.Message != "200 OK" {
		t.Errorf("got %+v", got)
	}
}

// Batches share a connection until the sink is closed.
func TestConnections(t *testing.T) {
	for _, name := range []string{"http", "https"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			var opened atomic.Int32
			closed := make(chan struct{}, 10)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Proto != "HTTP/1.1" {
					t.Errorf("protocol = %s", r.Proto)
				}
			}))
			server.EnableHTTP2 = true
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				switch state {
				case http.StateNew:
					opened.Add(1)
				case http.StateClosed:
					closed <- struct{}{}
				}
			}
			if name == "https" {
				server.StartTLS()
				s.spec.CABundle = bundle(server)
			} else {
				server.Start()
			}
			t.Cleanup(server.Close)
			s.spec.URL = server.URL
			sink := s.sink()
			for range 5 {
				if got := s.deliver(sink); got.Outcome != format.Delivered {
					t.Fatalf("got %+v", got)
				}
			}
			// The transport does not keep a connection whose request it has written late, as on a busy machine.
			if got := opened.Load(); got == 5 {
				t.Error("each batch has opened a connection")
			}
			// The transport may notice only now that the last response has ended.
			for open := true; open; {
				sink.Close()
				select {
				case <-closed:
					open = false
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
}

// A connection that the receiver has closed meanwhile is not a failure.
func TestClosedConnection(t *testing.T) {
	s := newFixture(t)
	used, aborted := sync.Map{}, atomic.Bool{}
	s.receiver(func(_ http.ResponseWriter, r *http.Request) {
		if _, again := used.LoadOrStore(r.RemoteAddr, true); again && aborted.CompareAndSwap(false, true) {
			panic(http.ErrAbortHandler)
		}
	})
	sink := s.sink()
	for range 20 {
		if got := s.deliver(sink); got.Outcome != format.Delivered {
			t.Errorf("got %+v", got)
		}
		if aborted.Load() {
			return
		}
	}
	t.Error("no connection was used again")
}
