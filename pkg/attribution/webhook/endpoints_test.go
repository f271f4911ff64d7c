// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/webhook"
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/test/testkit"
)

const (
	events = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[{"level":"RequestResponse","auditID":"a1","stage":"ResponseComplete",
		"requestURI":"/api/v1/namespaces/shop/configmaps/settings","verb":"update","user":{"username":"jane"},
		"objectRef":{"resource":"configmaps","namespace":"shop","name":"settings"},"responseStatus":{"code":200},
		"responseObject":{"metadata":{"name":"settings","uid":"u1","resourceVersion":"42"}},
		"requestReceivedTimestamp":"2026-11-21T12:00:00.000001Z","stageTimestamp":"2026-11-21T12:00:00.000002Z"}]}`
	review = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"r1",
		"resource":{"version":"v1","resource":"configmaps"},"name":"settings","namespace":"shop","operation":"CREATE",
		"userInfo":{"username":"jane"},
		"object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"shop","uid":"u1"}}}}`
)

// metric returns the value of a counter with labels.
func metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	return metrictest.Values(t)[strings.Join(append([]string{name}, labels...), " ")]
}

// checkCounted waits until a counter is one more than before.
func checkCounted(t *testing.T, before float64, name string, labels ...string) {
	t.Helper()
	testkit.Eventually(t, "the count", func() error {
		if now := metric(t, name, labels...); now != before+1 {
			return fmt.Errorf("%s%v grew from %v to %v, want one more", name, labels, before, now)
		}
		return nil
	})
}

func TestAudit(t *testing.T) {
	s := newTestServer(t, nil)
	const refusals, accepted = "attribution_refusals_total", "audit_events_total"
	auditor := certificate(t, s.audit, "kube-apiserver-audit")
	proxy := certificate(t, s.proxy, "front-proxy")
	tests := map[string]struct {
		exchange
		want int
		// message is part of the response's body; counted is the counter that is incremented, with its labels.
		message string
		counted []string
	}{
		"the audit backend": {exchange: exchange{certificate: auditor, pick: true}, want: 200, counted: []string{accepted, "recorded"}},
		"no certificate":    {want: 401, counted: []string{refusals, "audit", "unauthenticated"}},
		"another name": {
			exchange: exchange{certificate: certificate(t, s.audit, "jane")}, want: 401, counted: []string{refusals, "audit", "unauthenticated"},
		},
		"another authority": {
			exchange: exchange{certificate: certificate(t, s.cluster, "kube-apiserver-audit")},
			want:     401, counted: []string{refusals, "audit", "unauthenticated"},
		},
		"an administrator": {
			exchange: exchange{certificate: certificate(t, s.cluster, "root", "system:masters")},
			want:     401, counted: []string{refusals, "audit", "unauthenticated"},
		},
		"the front proxy": {
			exchange: exchange{
				certificate: proxy, headers: http.Header{"X-Remote-User": {"kube-apiserver-audit"}, "X-Remote-Group": {"system:masters"}},
			},
			want: 401, counted: []string{refusals, "audit", "unauthenticated"},
		},
		"headers of the front proxy": {
			exchange: exchange{certificate: auditor, headers: http.Header{"X-Remote-User": {"root"}, "X-Remote-Group": {"system:masters"}}},
			want:     200, counted: []string{accepted, "recorded"},
		},
		"a name without the right": {
			exchange: exchange{certificate: certificate(t, s.audit, "another-audit")},
			want:     403, counted: []string{refusals, "audit", "unauthorized"},
		},
		"groups in the certificate": {
			exchange: exchange{certificate: certificate(t, s.audit, "another-audit", "system:masters")},
			want:     403, counted: []string{refusals, "audit", "unauthorized"},
		},
		"reading": {
			exchange: exchange{certificate: auditor, method: http.MethodGet}, want: 403, counted: []string{refusals, "audit", "unauthorized"},
		},
		"no JSON": {exchange: exchange{certificate: auditor, body: "hello"}, want: 400, message: "the body is no EventList"},
		"another kind": {
			exchange: exchange{certificate: auditor, body: strings.Replace(events, "audit.k8s.io/v1", "audit.k8s.io/v1beta1", 1)},
			want:     400, message: `want \"audit.k8s.io/v1\" and \"EventList\"`,
		},
		"too large": {exchange: exchange{certificate: auditor, body: strings.Repeat(" ", 16<<20+1)}, want: 413, message: "16777216 bytes"},
		"an event that contradicts itself": {
			exchange: exchange{certificate: auditor, body: strings.Replace(events, `"username":"jane"`, "", 1)},
			want:     200, counted: []string{accepted, "unreadable"},
		},
		"an event of no interest": {
			exchange: exchange{certificate: auditor, body: strings.Replace(events, "update", "get", 1)},
			want:     200, counted: []string{accepted, "ignored"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := tt.exchange
			e.path = auditPath
			if e.method == "" {
				e.method = http.MethodPost
			}
			if e.body == "" {
				e.body = events
			}
			before := 0.0
			if tt.counted != nil {
				before = metric(t, tt.counted[0], tt.counted[1:]...)
			}
			facts := len(s.recorder.recorded())
			code, _, body := s.send(t, e)
			if code != tt.want || !strings.Contains(body, tt.message) {
				t.Errorf("code = %d, want %d with %q; body: %s", code, tt.want, tt.message, body)
			}
			if tt.counted != nil {
				checkCounted(t, before, tt.counted[0], tt.counted[1:]...)
			}
			recorded := len(tt.counted) > 1 && tt.counted[1] == "recorded"
			if got := len(s.recorder.recorded()) - facts; (got == 1) != recorded {
				t.Errorf("%d facts were recorded", got)
			}
		})
	}
}

func TestAuditIsRetried(t *testing.T) {
	s := newTestServer(t, nil)
	before := metric(t, "audit_events_total", "failed")
	e := exchange{method: http.MethodPost, path: auditPath, certificate: certificate(t, s.audit, "kube-apiserver-audit"), body: events}
	s.recorder.fails = true
	code, header, body := s.send(t, e)
	if code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("code = %d, Retry-After = %q; body: %s", code, header.Get("Retry-After"), body)
	}
	if strings.Contains(body, "full") {
		t.Errorf("response contains the store's error: %s", body)
	}
	checkCounted(t, before, "audit_events_total", "failed")
	s.recorder.mu.Lock()
	s.recorder.fails = false
	s.recorder.mu.Unlock()
	if code, _, body := s.send(t, e); code != http.StatusOK || len(s.recorder.recorded()) != 1 {
		t.Errorf("code = %d with %d facts; body: %s", code, len(s.recorder.recorded()), body)
	}
}

// TestAuthorityIsRotated checks that the server accepts certificates of a new authority, and no longer those of the old
// one, without a restart.
func TestAuthorityIsRotated(t *testing.T) {
	s := newTestServer(t, nil)
	post := func(certificate *exchange) int {
		code, _, _ := s.send(t, *certificate)
		return code
	}
	old := &exchange{
		method: http.MethodPost, path: auditPath, certificate: certificate(t, s.audit, "kube-apiserver-audit"), pick: true, body: events,
	}
	if code := post(old); code != http.StatusOK {
		t.Fatalf("code = %d before the rotation", code)
	}
	next := *old
	next.certificate = certificate(t, s.newAuthority(t, "audit"), "kube-apiserver-audit")
	testkit.Eventually(t, "the rotation", func() error {
		if with, without := post(&next), post(old); with != http.StatusOK || without != http.StatusUnauthorized {
			return fmt.Errorf("codes = %d with the new certificate, %d with the old one", with, without)
		}
		return nil
	})
}

func TestAdmission(t *testing.T) {
	s := newTestServer(t, nil)
	const refusals = "attribution_refusals_total"
	proxy := certificate(t, s.proxy, "front-proxy")
	as := func(user string, groups ...string) http.Header {
		return http.Header{"X-Remote-User": {user}, "X-Remote-Group": groups}
	}
	itself := as("system:apiserver", "system:masters", "system:authenticated")
	tests := map[string]struct {
		exchange
		want    int
		facts   bool
		refused string
	}{
		"kube-apiserver": {exchange: exchange{certificate: proxy, headers: itself}, want: 200, facts: true},
		"with a query": {
			exchange: exchange{certificate: proxy, headers: itself, path: admissionPath + "?timeout=2s"}, want: 200, facts: true,
		},
		"an administrator": {exchange: exchange{certificate: proxy, headers: as("root", "system:masters")}, want: 403, refused: "unauthorized"},
		"only its name": {
			exchange: exchange{certificate: proxy, headers: as("system:apiserver", "system:authenticated")}, want: 403, refused: "unauthorized",
		},
		"a user": {exchange: exchange{certificate: certificate(t, s.cluster, "jane")}, want: 403, refused: "unauthorized"},
		"a direct administrator": {
			exchange: exchange{certificate: certificate(t, s.cluster, "root", "system:masters")}, want: 403, refused: "unauthorized",
		},
		"anonymous":         {want: 403, refused: "unauthorized"},
		"anonymous headers": {exchange: exchange{headers: itself}, want: 403, refused: "unauthorized"},
		"headers by a user": {
			exchange: exchange{certificate: certificate(t, s.cluster, "jane"), headers: itself}, want: 403, refused: "unauthorized",
		},
		"headers by a name": {
			exchange: exchange{certificate: certificate(t, s.cluster, "front-proxy"), headers: itself}, want: 403, refused: "unauthorized",
		},
		"headers by another": {
			exchange: exchange{certificate: certificate(t, s.proxy, "jane"), headers: itself}, want: 401, refused: "unauthenticated",
		},
		"audit's certificate": {
			exchange: exchange{certificate: certificate(t, s.audit, "system:apiserver", "system:masters"), headers: itself},
			want:     401, refused: "unauthenticated",
		},
		"reading":      {exchange: exchange{certificate: proxy, headers: itself, method: http.MethodGet}, want: 405},
		"a name below": {exchange: exchange{certificate: proxy, headers: itself, path: admissionPath + "/x"}, want: 404},
		"below, by an administrator": {
			exchange: exchange{certificate: proxy, headers: as("root", "system:masters"), path: admissionPath + "/x"},
			want:     403, refused: "unauthorized",
		},
		"a malformed one": {exchange: exchange{certificate: proxy, headers: itself, body: "{"}, want: 400},
		"one without a uid": {
			exchange: exchange{certificate: proxy, headers: itself, body: strings.Replace(review, `"uid":"r1",`, "", 1)}, want: 400,
		},
		"one that is too large": {exchange: exchange{certificate: proxy, headers: itself, body: strings.Repeat(" ", 8<<20+1)}, want: 413},
		"one that is invalid": {
			exchange: exchange{certificate: proxy, headers: itself, body: `{"request":{"uid":"r1","operation":7}}`}, want: 200,
		},
		"another version": {
			exchange: exchange{certificate: proxy, headers: itself, body: strings.Replace(review, "admission.k8s.io/v1", "admission.k8s.io/v2", 1)},
			want:     200,
		},
		"one without a user": {
			exchange: exchange{certificate: proxy, headers: itself, body: strings.Replace(review, `"username":"jane"`, "", 1)}, want: 200,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s.checkReview(t, tt.exchange, admissionPath, tt.want, tt.facts, func(t *testing.T) func() {
				if tt.refused == "" {
					return func() {}
				}
				before := metric(t, refusals, "admission", tt.refused)
				return func() { checkCounted(t, before, refusals, "admission", tt.refused) }
			})
		})
	}
}

// checkReview sends a review and checks the response, and that a fact is recorded or none.
func (s *testServer) checkReview(t *testing.T, e exchange, path string, want int, facts bool, count func(*testing.T) func()) {
	t.Helper()
	counted := count(t)
	if e.path == "" {
		e.path = path
	}
	if e.method == "" {
		e.method = http.MethodPost
	}
	if e.body == "" {
		e.body = review
	}
	code, header, body := s.send(t, e)
	if code != want {
		t.Errorf("code = %d, want %d; body: %s", code, want, body)
	}
	if strings.Contains(body, secret) {
		t.Errorf("response contains the secret: %s", body)
	}
	if code == http.StatusOK {
		checkAllowed(t, header, body)
	}
	counted()
	if facts {
		select {
		case fact := <-s.recorder.enqueued:
			if fact.Actor.Username != "jane" || fact.Signal != attribution.Admission || fact.UID != "u1" {
				t.Errorf("fact = %+v", fact)
			}
		case <-time.After(testkit.Timeout):
			t.Error("no fact was enqueued")
		}
	}
	if len(s.recorder.enqueued) > 0 {
		t.Errorf("unexpected fact of another request: %+v", <-s.recorder.enqueued)
	}
}

func checkAllowed(t *testing.T, header http.Header, body string) {
	t.Helper()
	var decoded admissionv1.AdmissionReview
	if err := json.Unmarshal([]byte(body), &decoded); err != nil {
		t.Fatal(err)
	}
	if decoded.APIVersion != "admission.k8s.io/v1" || decoded.Kind != "AdmissionReview" || decoded.Response == nil ||
		decoded.Response.UID != "r1" || !decoded.Response.Allowed || header.Get("Content-Type") != "application/json" {
		t.Errorf("response does not allow the request: %s", body)
	}
}

func TestWebhook(t *testing.T) {
	const refusals = "attribution_refusals_total"
	refused := func(t *testing.T) func() {
		before := metric(t, refusals, "webhook", "unauthenticated")
		return func() { checkCounted(t, before, refusals, "webhook", "unauthenticated") }
	}
	uncounted := func(*testing.T) func() { return func() {} }
	open := newTestServer(t, nil)
	closed := newTestServer(t, func(s *testServer, config *webhook.Config, _ *genericapiserver.Config) {
		config.AdmissionClientCAFile = s.file("webhook.crt")
	})
	administrator := certificate(t, open.cluster, "root", "system:masters")
	tests := map[string]struct {
		*testServer
		exchange
		want  int
		facts bool
		count func(*testing.T) func()
	}{
		"the secret": {testServer: open, want: 200, facts: true, count: uncounted},
		"the secret and a query": {
			testServer: open, exchange: exchange{path: webhookPath + secret + "?timeout=2s"}, want: 200, facts: true, count: uncounted,
		},
		"the secret by an administrator": {
			testServer: open, exchange: exchange{certificate: administrator}, want: 200, facts: true, count: uncounted,
		},
		"another secret": {
			testServer: open, exchange: exchange{path: webhookPath + strings.Repeat("0", 32)}, want: 401, count: refused,
		},
		"part of it":   {testServer: open, exchange: exchange{path: webhookPath + secret[:31]}, want: 401, count: refused},
		"more than it": {testServer: open, exchange: exchange{path: webhookPath + secret + "/"}, want: 401, count: refused},
		"none":         {testServer: open, exchange: exchange{path: webhookPath}, want: 401, count: refused},
		"none by an administrator": {
			testServer: open, exchange: exchange{path: webhookPath, certificate: administrator}, want: 401, count: refused,
		},
		"reading": {testServer: open, exchange: exchange{method: http.MethodGet}, want: 405, count: uncounted},
		"with the certificate": {
			testServer: closed, exchange: exchange{certificate: certificate(t, closed.webhook, "x"), pick: true},
			want: 200, facts: true, count: uncounted,
		},
		"without the certificate": {testServer: closed, want: 401, count: refused},
		"with a user's certificate": {
			testServer: closed, exchange: exchange{certificate: certificate(t, closed.cluster, "root", "system:masters")}, want: 401, count: refused,
		},
		"the certificate, no secret": {
			testServer: closed, exchange: exchange{certificate: certificate(t, closed.webhook, "x"), path: webhookPath}, want: 401, count: refused,
		},
		"an impersonator": {
			testServer: open, exchange: exchange{headers: http.Header{"Impersonate-User": {"root"}}}, want: 403, count: uncounted,
		},
		"the certificate at /audit": {
			testServer: closed, exchange: exchange{certificate: certificate(t, closed.webhook, "kube-apiserver-audit"), path: auditPath},
			want: 401, count: uncounted,
		},
		"the certificate at the API": {
			testServer: closed,
			exchange:   exchange{certificate: certificate(t, closed.webhook, "x", "system:masters"), path: "/version", method: http.MethodGet},
			want:       401, count: uncounted,
		},
		"audit's certificate for API": {
			testServer: closed,
			exchange:   exchange{certificate: certificate(t, closed.audit, "x", "system:masters"), path: "/version", method: http.MethodGet},
			want:       401, count: uncounted,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { tt.checkReview(t, tt.exchange, webhookPath+secret, tt.want, tt.facts, tt.count) })
	}
}

// TestSegmentIsRotated checks that a new secret is accepted without a restart, and the old one for as long as the file
// has it.
func TestSegmentIsRotated(t *testing.T) {
	s := newTestServer(t, nil)
	const next = "abcdef0123456789abcdef0123456789"
	code := func(segment string) int {
		code, _, _ := s.send(t, exchange{method: http.MethodPost, path: webhookPath + segment, body: review})
		return code
	}
	for _, step := range []struct {
		content    string
		next, last int
	}{{next + "\n" + secret, 200, 200}, {"too short", 200, 200}, {next, 200, 401}} {
		s.write(t, "segment", step.content)
		testkit.Eventually(t, "the secrets", func() error {
			if with, without := code(next), code(secret); with != step.next || without != step.last {
				return fmt.Errorf("codes = %d with the new secret, %d with the old one, want %d and %d", with, without, step.next, step.last)
			}
			return nil
		})
	}
}

func TestUnconfiguredEndpoints(t *testing.T) {
	s := newTestServer(t, func(_ *testServer, config *webhook.Config, _ *genericapiserver.Config) {
		config.AuditClientCAFile, config.AdmissionSegmentFile = "", ""
	})
	for _, path := range []string{auditPath, webhookPath + secret} {
		for code, client := range map[int]exchange{404: {certificate: certificate(t, s.cluster, "root", "system:masters")}, 403: {}} {
			client.method, client.path, client.body = http.MethodPost, path, events
			if got, _, body := s.send(t, client); got != code {
				t.Errorf("%s: code = %d, want %d; body: %s", path, got, code, body)
			}
		}
	}
}

// full is priority and fairness that rejects every request.
type full struct{ flowcontrol.Interface }

func (full) Handle(
	_ context.Context, _ flowcontrol.RequestDigest, note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	_ func() fcrequest.WorkEstimate, _ fq.QueueNoteFn, _ func(),
) {
	note(&flowcontrolv1.FlowSchema{}, &flowcontrolv1.PriorityLevelConfiguration{}, "")
}

func (full) Install(*mux.PathRecorderMux) {}

func (full) Run(<-chan struct{}) error { return nil }

func (full) GetInterestedWatchCount(*request.RequestInfo) int { return 0 }

func TestEndpointsAreExemptFromFlowControl(t *testing.T) {
	s := newTestServer(t, func(_ *testServer, _ *webhook.Config, server *genericapiserver.Config) { server.FlowControl = full{} })
	auditor := certificate(t, s.audit, "kube-apiserver-audit")
	for name, tt := range map[string]struct {
		exchange
		want int
	}{
		"audit":          {exchange{method: http.MethodPost, path: auditPath, certificate: auditor, body: events}, 200},
		"webhook":        {exchange{method: http.MethodPost, path: webhookPath + secret, body: review}, 200},
		"anonymous":      {exchange{method: http.MethodGet, path: "/version"}, 429},
		"without secret": {exchange{method: http.MethodPost, path: webhookPath, body: review}, 401},
	} {
		if code, _, body := s.send(t, tt.exchange); code != tt.want {
			t.Errorf("%s: code = %d, want %d; body: %s", name, code, tt.want, body)
		}
	}
}
