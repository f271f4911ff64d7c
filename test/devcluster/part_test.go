// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"os"
	"path/filepath"
	"testing"
)

// Reports of the race detector, as they are in the log of a server.
const (
	ownRace = `==================
WARNING: DATA RACE
Write at 0x00c000f04228 by goroutine 7:
  github.com/configbutler/slipstream/pkg/mirror.(*worker).run()
      /clone/pkg/mirror/worker.go:7 +0x17d6

Previous read at 0x00c000f04228 by goroutine 8:
  crypto/tls.(*Config).Clone()
      /go/src/crypto/tls/common.go:980 +0x1c
==================
`
	upstreamRace = `==================
WARNING: DATA RACE
Write at 0x00c000f04228 by main goroutine:
  k8s.io/apiserver/pkg/server.(*SecureServingInfo).tlsConfig()
      /go/pkg/mod/k8s.io/apiserver@v0.37.1/pkg/server/secure_serving.go:148 +0x17d6

Previous read at 0x00c000f04228 by goroutine 8:
  crypto/tls.(*Config).Clone()
      /go/src/crypto/tls/common.go:980 +0x1c
  k8s.io/apiserver/pkg/server/dynamiccertificates.(*DynamicServingCertificateController).syncCerts()
      /go/pkg/mod/k8s.io/apiserver@v0.37.1/pkg/server/dynamiccertificates/tlsconfig.go:166 +0x6c4
==================
`
	upstreamRaceOfHTTP2 = `==================
WARNING: DATA RACE
Read at 0x00c002381b00 by goroutine 520:
  crypto/tls.(*Config).Clone()
      /go/src/crypto/tls/common.go:1020 +0x99c
  k8s.io/apiserver/pkg/server/dynamiccertificates.(*DynamicServingCertificateController).syncCerts()
      /go/pkg/mod/k8s.io/apiserver@v0.37.2/pkg/server/dynamiccertificates/tlsconfig.go:171 +0xa9

Previous write at 0x00c002381b00 by main goroutine:
  golang.org/x/net/http2.configureServer()
      /go/pkg/mod/golang.org/x/net@v0.62.0/http2/server.go:203 +0x4b4
  k8s.io/apiserver/pkg/server.(*SecureServingInfo).Serve()
      /go/pkg/mod/k8s.io/apiserver@v0.37.2/pkg/server/secure_serving.go:206 +0x46b
  github.com/configbutler/slipstream/pkg/apiserver.(*Server).Run()
      /clone/pkg/apiserver/server.go:77 +0x31c
==================
`
)

func TestRaceReport(t *testing.T) {
	for name, test := range map[string]struct {
		log  string
		want bool
	}{
		"no race":                {"I1125 server started\n", false},
		"a race":                 {"I1125 server started\n" + ownRace + "I1125 server ended\n", true},
		"a race of upstream":     {"I1125 server started\n" + upstreamRace, false},
		"another of upstream":    {"I1125 server started\n" + upstreamRaceOfHTTP2, false},
		"both, upstream's first": {"I1125 server started\n" + upstreamRace + ownRace, true},
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "server.log")
			if err := os.WriteFile(log, []byte(test.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := raceReport(log); (err != nil) != test.want {
				t.Errorf("report %v, want one: %t", err, test.want)
			}
		})
	}
	if err := raceReport(filepath.Join(t.TempDir(), "missing.log")); err != nil {
		t.Error(err)
	}
}
