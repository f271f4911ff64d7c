// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/pipeline/format"
)

// mostReceived bounds what a sink reads for a call: 64 KiB of headers and 64 KiB of a body, each byte of which may be a chunk of six.
const mostReceived = 512 << 10

// hostile is a receiver that writes raw bytes to each connection.
type hostile struct {
	// received counts what the sink takes from it.
	received atomic.Int64
	// ended gets what ended a connection.
	ended chan error
}

// hostile starts a receiver that sends the greeting after the request, and then again repeatedly until the connection is closed. With
// https, it does so instead of a TLS handshake, unless handshake is set.
func (s *fixture) hostile(scheme string, handshake bool, greeting, again []byte) *hostile {
	s.Helper()
	h := &hostile{ended: make(chan error, 10)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.spec.URL = scheme + "://" + listener.Addr().String()
	if handshake {
		certified := httptest.NewTLSServer(http.NotFoundHandler())
		s.Cleanup(certified.Close)
		s.spec.CABundle = bundle(certified)
		listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certified.TLS.Certificates})
	}
	s.Cleanup(func() { _ = listener.Close() })
	// What is not bounded ends at this time, and says so.
	s.spec.Timeout = &metav1.Duration{Duration: time.Minute}
	s.dial = h.dial
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = connection.Close() }()
				h.ended <- speak(connection, greeting, again)
			}()
		}
	}()
	return h
}

// speak writes after it has read the beginning of the request. It keeps reading, because the client would block otherwise.
func speak(connection net.Conn, greeting, again []byte) error {
	input := bufio.NewReader(connection)
	if _, err := input.ReadByte(); err != nil {
		return err
	}
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, input)
		close(closed)
	}()
	if _, err := connection.Write(greeting); err != nil {
		return err
	}
	if len(again) == 0 {
		<-closed
		return io.EOF
	}
	again = bytes.Repeat(again, 1+4<<10/len(again))
	for sent := 0; sent < 64*mostReceived; sent += len(again) {
		if _, err := connection.Write(again); err != nil {
			return err
		}
	}
	return nil
}

func (h *hostile) dial(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &watched{connection, &h.received}, nil
}

// watched counts what is read from a connection.
type watched struct {
	net.Conn
	received *atomic.Int64
}

func (w *watched) Read(into []byte) (int, error) {
	read, err := w.Conn.Read(into)
	w.received.Add(int64(read))
	return read, err
}

// The bytes that are read of an endless response are bounded.
func TestEndlessReceiver(t *testing.T) {
	kilobyte := bytes.Repeat([]byte("x"), 1<<10)
	const ok, chunked = "HTTP/1.1 200 OK\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	for name, tt := range map[string]struct {
		scheme          string
		handshake       bool
		greeting, again []byte
		// want is the result's text, or a part of it.
		want    string
		outcome format.Outcome
	}{
		"status":          {greeting: []byte("HTTP/1.1 200 "), again: kilobyte, want: "exceeded 65536 bytes", outcome: format.Retry},
		"field":           {greeting: []byte(ok + "A: "), again: kilobyte, want: "exceeded 65536 bytes", outcome: format.Retry},
		"fields":          {greeting: []byte(ok), again: []byte("A: a\r\n"), want: "exceeded 65536 bytes", outcome: format.Retry},
		"interim answers": {again: []byte("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"), want: "HOST ", outcome: format.Retry},
		"body":            {greeting: []byte(ok + "\r\n"), again: kilobyte, want: "200 OK: xxx", outcome: format.Delivered},
		"chunks":          {greeting: []byte(ok + chunked), again: []byte("1\r\nx\r\n"), want: "200 OK: xxx", outcome: format.Delivered},
		"an extension":    {greeting: []byte(ok + chunked + "1;"), again: kilobyte, want: "read the answer", outcome: format.Retry},
		"extensions": {
			greeting: []byte(ok + chunked), again: []byte("1;" + strings.Repeat("x", 4000) + "\r\nx\r\n"),
			want: "read the answer", outcome: format.Retry,
		},
		"trailers": {
			greeting: []byte(ok + chunked + "0\r\n"), again: []byte("A: a\r\n"), want: "suspiciously long trailer", outcome: format.Retry,
		},
		"other protocol": {
			greeting: []byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), want: "101", outcome: format.Rejected,
		},
		"over TLS": {
			scheme: "https", handshake: true, greeting: []byte(ok + "A: "), again: kilobyte, want: "exceeded 65536 bytes", outcome: format.Retry,
		},
		// Records of TLS 1.2: warnings, and a message of 16 MiB.
		"warnings": {scheme: "https", again: []byte{21, 3, 3, 0, 2, 1, 0}, want: "the call to HOST failed: ", outcome: format.Retry},
		"handshake": {
			scheme: "https", greeting: []byte{22, 3, 3, 4, 0, 2, 255, 255, 255},
			again: kilobyte, want: "the call to HOST failed: ", outcome: format.Retry,
		},
		"no records": {scheme: "https", again: []byte{23, 3, 3, 0, 0}, want: "the call to HOST failed: ", outcome: format.Retry},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			h := s.hostile(cmp.Or(tt.scheme, "http"), tt.handshake, tt.greeting, tt.again)
			got := s.deliver(s.sink())
			_, host, _ := strings.Cut(s.spec.URL, "://")
			if want := strings.ReplaceAll(tt.want, "HOST", host); got.Outcome != tt.outcome || !strings.Contains(got.Message, want) {
				t.Errorf("result = %+v, want %s with %q", got, tt.outcome, want)
			}
			if strings.Contains(got.Message, "timeout") {
				t.Errorf("call was ended by its timeout only: %s", got.Message)
			}
			if err := <-h.ended; err == nil {
				t.Error("endless response was read completely")
			}
			if received := h.received.Load(); received > mostReceived {
				t.Errorf("%d bytes were received, want %d at most", received, mostReceived)
			}
		})
	}
}
