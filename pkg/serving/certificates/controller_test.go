// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestStart checks that the server has a certificate when it starts, for any content of the Secret and any permissions.
// An authority that a user has put into the Secret stays there.
func TestStart(t *testing.T) {
	t.Parallel()
	valid := newIssuer(t, time.Now(), 1000*time.Hour)
	everything := func(string, string) (int, bool) { return http.StatusForbidden, false }
	tests := map[string]struct {
		certificate, key []byte
		absent           bool
		refuse           func(method, path string) (int, bool)
		// shared says that other replicas sign with the same authority, kept that the Secret is as it was.
		shared, kept bool
	}{
		"no Secret":              {absent: true, shared: true},
		"an empty Secret":        {shared: true},
		"a user's own authority": {certificate: valid.certificates, key: valid.key, shared: true, kept: true},
		"garbage":                {certificate: []byte("garbage"), key: []byte("garbage"), kept: true},
		"another's key":          {certificate: valid.certificates, key: newIssuer(t, time.Now(), time.Hour).key, kept: true},
		"no authority":           {certificate: valid.server(t, "a").certificates, key: valid.server(t, "a").key, kept: true},
		"nothing may be read":    {certificate: valid.certificates, key: valid.key, kept: true, refuse: everything},
		"nothing may be written": {absent: true, refuse: func(method, _ string) (int, bool) {
			if method == http.MethodGet {
				return 0, false
			}
			return http.StatusForbidden, false
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if !test.absent {
				c.putSecret(t, test.certificate, test.key)
			}
			c.setRefuse(test.refuse)
			one, other := c.start(t, nil), c.start(t, nil)
			one.leader.RunOnce(quiet(t))
			if got := string(one.leaf(t).RawIssuer) == string(other.leaf(t).RawIssuer) &&
				one.trusted(t, c.secret(t, "tls.crt"), c.clock.Now()) == nil; got != test.shared {
				t.Errorf("replicas share the authority in the Secret: %v, want %v", got, test.shared)
			}
			if got := c.secret(t, "tls.crt"); test.kept && got != string(test.certificate) {
				t.Errorf("what was in the Secret has been replaced by %q", got)
			}
			for place, bundle := range c.bundles(t) {
				if err := other.trusted(t, bundle, c.clock.Now()); (err != nil) != (test.refuse != nil) {
					t.Errorf("place %d: %v", place, err)
				}
			}
		})
	}
}

// everyFewSeconds lets replicas do what is due until some time has passed.
func (c *cluster) everyFewSeconds(t *testing.T, pause time.Duration, replicas ...*replica) {
	t.Helper()
	for end := c.clock.Now().Add(pause); c.clock.Now().Before(end); {
		c.clock.Step(min(5*time.Second, end.Sub(c.clock.Now())))
		for index, each := range replicas {
			if err := each.controller.RunOnce(quiet(t)); err != nil {
				t.Fatal(err)
			}
			if index == 0 {
				each.leader.RunOnce(quiet(t))
			}
		}
	}
}

func TestRenewalAtTwoThirds(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.start(t, nil)
	first, authority := r.leaf(t), c.secret(t, "tls.crt")
	c.clock.Step(certificateLifetime*2/3 - time.Minute)
	c.everyFewSeconds(t, 10*time.Second, r)
	if !r.leaf(t).Equal(first) {
		t.Error("the certificate is another before two thirds of its life are over")
	}
	c.clock.Step(time.Minute)
	c.everyFewSeconds(t, 5*time.Second, r)
	if r.leaf(t).Equal(first) || r.trusted(t, authority, c.clock.Now()) != nil {
		t.Error("the certificate is the same after two thirds of its life, or of another authority")
	}
	c.clock.Step(authorityLifetime*2/3 - certificateLifetime*2/3)
	c.everyFewSeconds(t, 10*time.Second, r)
	if c.secret(t, "tls.crt") != authority {
		t.Error("the authority was replaced before all clients can have read the next one")
	}
	c.everyFewSeconds(t, 15*time.Second, r)
	next := c.secret(t, "tls.crt")
	if next == authority || r.trusted(t, next, c.clock.Now()) != nil {
		t.Error("the authority is the same after two thirds of its life, or does not sign")
	}
	for place, bundle := range append([]string{c.secret(t, "ca.crt")}, c.bundles(t)[0], c.bundles(t)[1]) {
		if !strings.Contains(bundle, authority) || !strings.Contains(bundle, next) {
			t.Errorf("place %d does not have both authorities", place)
		}
	}
	// Until no certificate of it is valid any more.
	c.clock.Step(certificateLifetime)
	c.everyFewSeconds(t, 10*time.Second, r)
	for place, bundle := range append([]string{c.secret(t, "ca.crt")}, c.bundles(t)[0], c.bundles(t)[1]) {
		if strings.Contains(bundle, authority) {
			t.Errorf("place %d still has the authority of before", place)
		}
	}
}

// A clock that was wrong for a while does no lasting harm.
func TestClockThatJumps(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.start(t, nil)
	began := c.clock.Now()
	for _, jump := range []time.Duration{10000 * time.Hour, 0, -10000 * time.Hour, 0} {
		c.clock.SetTime(began.Add(jump))
		c.everyFewSeconds(t, 30*time.Second, r)
		for place, bundle := range append([]string{c.secret(t, "tls.crt")}, c.bundles(t)[0], c.bundles(t)[1]) {
			if err := r.trusted(t, bundle, c.clock.Now()); err != nil {
				t.Errorf("%v later, place %d: %v", jump, place, err)
			}
		}
	}
}

// Bundles that others look after, and those of clients that do not come to this server, stay as they are.
func TestWhatIsLeftAlone(t *testing.T) {
	t.Parallel()
	other := base64.StdEncoding.EncodeToString(newIssuer(t, time.Now(), time.Hour).certificates)
	tests := map[string]struct {
		changes     object
		annotations object
		// says is part of the message in the log.
		says string
	}{
		"another Service": {
			changes: object{"service": object{"namespace": "other", "name": "slipstream"}, "caBundle": other}, says: "--serving-service",
		},
		"no verification":  {changes: object{"insecureSkipTLSVerify": true}, says: "insecureSkipTLSVerify"},
		"custom resources": {changes: object{"service": nil}, says: "is served by CustomResourceDefinitions of this group and version"},
		"cert-manager's own": {
			changes: object{"caBundle": other}, annotations: object{"cert-manager.io/inject-ca-from": "a/b"}, says: "annotations",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			registration := apiService(test.changes)
			registration["metadata"].(object)["annotations"] = test.annotations
			c.put(t, apiServicePath, registration)
			before := c.bundles(t)[0]
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
			r := c.newReplica(t, nil)
			for range 3 {
				if err := r.controller.RunOnce(klog.NewContext(t.Context(), logger)); err != nil {
					t.Fatal(err)
				}
				c.clock.Step(5 * time.Second)
			}
			if got := c.bundles(t)[0]; got != before {
				t.Errorf("the bundle has become %q", got)
			}
			if err := r.trusted(t, c.bundles(t)[1], c.clock.Now()); err != nil {
				t.Errorf("the webhook does not trust the server: %v", err)
			}
			said := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
			if strings.Count(said, test.says) != 1 {
				t.Errorf("%q is not said once in\n%s", test.says, said)
			}
		})
	}
}

// TestOthersInTheBundle checks that another authority in a bundle stays for as long as it may be needed.
func TestOthersInTheBundle(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	other := newIssuer(t, time.Now(), 1000*time.Hour)
	text := "garbage\n" + string(other.certificates)
	c.put(t, apiServicePath, apiService(object{"caBundle": base64.StdEncoding.EncodeToString([]byte(text))}))
	r := c.start(t, nil)
	r.leader.RunOnce(quiet(t))
	if got := c.bundles(t)[0]; !strings.Contains(got, string(other.certificates)) || strings.Contains(got, "garbage") {
		t.Errorf("the bundle is %q", got)
	}
	c.clock.Step(certificateLifetime)
	c.everyFewSeconds(t, 5*time.Second, r)
	if got := c.bundles(t)[0]; strings.Contains(got, string(other.certificates)) {
		t.Error("an authority that is not needed any more is still trusted")
	}
}

// TestExpiredInTheBundle checks that expired authorities are removed, and before others that may still be needed.
func TestExpiredInTheBundle(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	lasting := newIssuer(t, c.clock.Now(), 1000*time.Hour)
	ending := newIssuer(t, c.clock.Now(), certificateLifetime/10)
	text := slices.Concat(lasting.certificates, ending.certificates)
	c.put(t, apiServicePath, apiService(object{"caBundle": base64.StdEncoding.EncodeToString(text)}))
	r := c.start(t, nil)
	r.leader.RunOnce(quiet(t))
	if got := c.bundles(t)[0]; !strings.Contains(got, string(ending.certificates)) {
		t.Fatalf("an authority was removed before it expired: %q", got)
	}
	c.clock.Step(certificateLifetime / 5)
	r.leader.RunOnce(quiet(t))
	if got := c.bundles(t)[0]; strings.Contains(got, string(ending.certificates)) || !strings.Contains(got, string(lasting.certificates)) {
		t.Errorf("the bundle is %q", got)
	}
}

// What others leave in a bundle again and again does not make it longer for ever.
func TestTooManyInTheBundle(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var text []byte
	for range 12 {
		text = append(text, newIssuer(t, c.clock.Now(), 1000*time.Hour).certificates...)
	}
	c.put(t, apiServicePath, apiService(object{"caBundle": base64.StdEncoding.EncodeToString(text)}))
	c.start(t, nil)
	if got := strings.Count(c.bundles(t)[0], "BEGIN CERTIFICATE"); got != 9 {
		t.Errorf("the bundle has %d authorities, want the server's and 8 of others", got)
	}
}

// No mirror takes the key of the authority to Git.
func TestAuthorityIsNotMirrored(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.start(t, nil)
	metadata, _ := c.get(t, secretPath)["metadata"].(object)
	if annotations, _ := metadata["annotations"].(object); annotations["configbutler.ai/mirror"] != "false" {
		t.Errorf("the Secret has %v", metadata)
	}
}

// Keys are in no log, however much is logged.
func TestKeysAreNotLogged(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(10)))
	ctx := klog.NewContext(t.Context(), logger)
	r := c.newReplica(t, nil)
	for range 10 {
		if err := r.controller.RunOnce(ctx); err != nil {
			t.Fatal(err)
		}
		r.leader.RunOnce(ctx)
		c.clock.Step(certificateLifetime)
	}
	_, served := r.controller.CurrentCertKeyContent()
	said := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	if !strings.Contains(said, "Serving a new certificate") {
		t.Fatalf("nothing is logged:\n%s", said)
	}
	for _, key := range []string{string(served), c.secret(t, "tls.key")} {
		line := strings.Split(key, "\n")[1]
		if strings.Contains(said, line) || strings.Contains(said, base64.StdEncoding.EncodeToString([]byte(key))) {
			t.Error("a private key is in the log")
		}
	}
}
