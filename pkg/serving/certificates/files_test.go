// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/serving/certificates"
)

// filesOf are files with a certificate of an authority.
func filesOf(t *testing.T, folder string, pair, authority *issuer) certificates.Files {
	t.Helper()
	files := certificates.Files{
		Certificate: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key"), Authority: filepath.Join(folder, "ca.crt"),
		Name: certificates.ServerName(service),
	}
	for path, content := range map[string][]byte{
		files.Certificate: pair.certificates, files.Key: pair.key, files.Authority: authority.certificates,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestFilesThatDoNotFit(t *testing.T) {
	t.Parallel()
	c, folder := newCluster(t), t.TempDir()
	name := certificates.ServerName(service)
	authority := newIssuer(t, c.clock.Now(), 1000*time.Hour)
	pair := authority.server(t, name)
	expired := newIssuer(t, c.clock.Now(), -time.Minute).server(t, name)
	tests := map[string]struct {
		pair, authority *issuer
		want            string
	}{
		"of another authority": {pair, newIssuer(t, c.clock.Now(), time.Hour), "must be a certificate for " + name + " that an authority in"},
		"for another name":     {authority.server(t, "example.com"), authority, "must be a certificate for " + name},
		// What is wrong besides is found although it has expired.
		"expired, without an authority": {expired, &issuer{}, "must be a certificate for " + name + " that an authority in"},
		"expired, of another authority": {expired, authority, "must be a certificate for " + name + " that an authority in"},
		"another's key": {
			&issuer{certificates: pair.certificates, key: authority.key}, authority, "must be a certificate and its private key in PEM",
		},
		"garbage": {
			&issuer{certificates: []byte("garbage"), key: pair.key}, authority, "must be a certificate and its private key in PEM",
		},
	}
	for label, test := range tests {
		err := c.newReplica(t, filesOf(t, folder, test.pair, test.authority)).controller.RunOnce(quiet(t))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", label, err, test.want)
		}
	}
	// Later they change nothing.
	r := c.start(t, filesOf(t, folder, pair, authority))
	for label, test := range tests {
		filesOf(t, folder, test.pair, test.authority)
		c.everyFewSeconds(t, time.Minute, r)
		if !r.leaf(t).Equal(pair.certificate) {
			t.Errorf("%s: another certificate is shown", label)
		}
	}
	if err := r.trusted(t, c.bundles(t)[0], c.clock.Now()); err != nil {
		t.Error(err)
	}
}

func TestFilesOfAnotherAuthority(t *testing.T) {
	t.Parallel()
	name := certificates.ServerName(service)
	forbidden := func(method, _ string) (int, bool) {
		if method == http.MethodGet {
			return 0, false
		}
		return http.StatusForbidden, false
	}
	blind := func(string, string) (int, bool) { return http.StatusForbidden, false }
	tests := map[string]struct {
		refuse func(method, path string) (int, bool)
		// lives is how long the first certificate does.
		lives time.Duration
		// waits is how long the second is not shown, at least. It is shown half a minute later.
		waits time.Duration
	}{
		"trusted as soon as may be":     {lives: 1000 * time.Hour, waits: 10 * time.Second},
		"bundles cannot be written":     {lives: time.Hour, waits: 59 * time.Minute, refuse: forbidden},
		"bundles cannot be read":        {lives: 1000 * time.Hour, waits: 4 * time.Minute, refuse: blind},
		"the first expires before that": {lives: 2 * time.Minute, waits: time.Minute, refuse: blind},
	}
	for label, test := range tests {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			c, folder := newCluster(t), t.TempDir()
			first, second := newIssuer(t, c.clock.Now(), test.lives), newIssuer(t, c.clock.Now(), 1000*time.Hour)
			r := c.start(t, filesOf(t, folder, first.server(t, name), first))
			c.setRefuse(test.refuse)
			pair := second.server(t, name)
			filesOf(t, folder, pair, second)
			c.everyFewSeconds(t, test.waits, r)
			if r.leaf(t).Equal(pair.certificate) {
				t.Errorf("it is shown within %v", test.waits)
			}
			c.everyFewSeconds(t, 65*time.Second, r)
			if !r.leaf(t).Equal(pair.certificate) {
				t.Error("it is not shown")
			}
		})
	}
}

// TestFilesAndAnInjector checks that a new certificate is served only once the injector has written the bundle.
func TestFilesAndAnInjector(t *testing.T) {
	t.Parallel()
	c, folder, name := newCluster(t), t.TempDir(), certificates.ServerName(service)
	first, second := newIssuer(t, c.clock.Now(), 1000*time.Hour), newIssuer(t, c.clock.Now(), 1000*time.Hour)
	inject := func(authority *issuer) {
		registration := apiService(object{"caBundle": base64.StdEncoding.EncodeToString(authority.certificates)})
		registration["metadata"].(object)["annotations"] = object{"cert-manager.io/inject-ca-from": "a/b"}
		c.put(t, apiServicePath, registration)
	}
	inject(first)
	r := c.start(t, filesOf(t, folder, first.server(t, name), first))
	pair := second.server(t, name)
	filesOf(t, folder, pair, second)
	c.everyFewSeconds(t, 10*time.Minute, r)
	if r.leaf(t).Equal(pair.certificate) {
		t.Error("it is shown before it is trusted")
	}
	inject(second)
	c.everyFewSeconds(t, 15*time.Second, r)
	if !r.leaf(t).Equal(pair.certificate) {
		t.Error("it is not shown although it is trusted")
	}
}
