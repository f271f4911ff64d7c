// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attribution tests on a real control plane that audit events and admission reviews of kube-apiserver reach the server, with
// which identity, and that they match the events of watches.
package attribution

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// deadline is longer than any wait of these tests on a busy machine.
const deadline = 2 * time.Minute

// reviews is the path to which kube-apiserver sends reviews through its own aggregator.
const reviews = "/apis/configbutler.ai/v1alpha1/admissionreviews"

// badReviews is the start of the line in kube-apiserver's metrics that counts the reviews to which it received the response to a bad request.
const badReviews = `apiserver_admission_webhook_request_total{code="400",name="attribution.configbutler.ai"`

// ownAudit is an audit policy of the server for requests with facts.
const ownAudit = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: configbutler.ai, resources: [admissionreviews]}]
- level: Metadata
  nonResourceURLs: [/audit, /process-validating-webhook/*]
- level: None
`

// intake is a cluster that sends facts to its server.
type intake struct {
	*devcluster.Cluster
	admin   devcluster.Kubectl
	objects *devcluster.Objects
	direct  *http.Client
	// log is the path of the server's own audit log.
	log string
}

func newIntake(t *testing.T) *intake {
	t.Helper()
	folder := t.TempDir()
	policy, log := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "audit.log")
	if err := os.WriteFile(policy, []byte(ownAudit), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := clustertest.Start(t, devcluster.Options{
		Server: true, Audit: true, Admission: true,
		ServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log, "--audit-log-mode=blocking", "-v=3"},
	})
	config, err := cluster.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	// The server's certificate has another authority than the aggregator's.
	config.TLSClientConfig.Insecure, config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = true, nil, ""
	direct, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := cluster.Admin().Objects()
	if err != nil {
		t.Fatal(err)
	}
	return &intake{Cluster: cluster, admin: cluster.Kubectl(cluster.Admin()), objects: objects, direct: direct, log: log}
}

func TestIntake(t *testing.T) {
	s := newIntake(t)
	t.Run("Aggregated", s.testAggregated)
	t.Run("OnlyTheAPIServer", s.testOnlyTheAPIServer)
	t.Run("Direct", s.testDirect)
}

// recorded returns the number of events or reviews with facts that the server has recorded.
func (s *intake) recorded(ctx context.Context, metric string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Env(devcluster.EnvServerURL)+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := s.direct.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^slipstream_` + metric + `\{outcome="recorded"\} (\S+)$`).FindSubmatch(body)
	if found == nil {
		return 0, nil
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// change makes changes of a ConfigMap, which both signals must report. A change whose review was cut off, because it took longer than the
// two seconds of the webhook on a busy machine, is repeated. It returns the average duration of admission reviews.
func (s *intake) change(t *testing.T, name string, times int) time.Duration {
	t.Helper()
	signals := []string{"audit_events_total", "admission_reviews_total"}
	var before [2]float64
	for i, signal := range signals {
		var err error
		if before[i], err = s.recorded(t.Context(), signal); err != nil {
			t.Fatal(err)
		}
	}
	sum, count := s.waited(t)
	cutOff := s.cutOff(t)
	manifest := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {n: '0'}}", name)
	if err := s.objects.Apply(t.Context(), "", manifest); err != nil {
		t.Fatal(err)
	}
	for made := 0; made < times || made < times+int(s.cutOff(t)-cutOff); made++ {
		if err := s.objects.Patch(t.Context(), "", "configmap/"+name, fmt.Sprintf(`{"data":{"n":"%d"}}`, made+1)); err != nil {
			t.Fatal(err)
		}
	}
	for i, signal := range signals {
		testkit.EventuallyWithin(t, deadline, signal+" counts all changes", func(ctx context.Context) error {
			now, err := s.recorded(ctx, signal)
			if err == nil && now < before[i]+float64(times+1) {
				err = fmt.Errorf("before = %v, after %d changes = %v", before[i], times+1, now)
			}
			return err
		})
	}
	sumNow, countNow := s.waited(t)
	return time.Duration((sumNow - sum) / (countNow - count) * float64(time.Second))
}

// waited returns the sum of the durations of admission reviews in seconds, and their number.
func (s *intake) waited(t *testing.T) (sum, count float64) {
	t.Helper()
	return s.reviewMetric(t, "admission_duration_seconds_sum"), s.reviewMetric(t, "admission_duration_seconds_count")
}

// cutOff returns how many changes kube-apiserver has made without a response to their review.
func (s *intake) cutOff(t *testing.T) float64 {
	t.Helper()
	return s.reviewMetric(t, "fail_open_count")
}

// reviewMetric returns the sum of one of kube-apiserver's metrics about the webhook.
func (s *intake) reviewMetric(t *testing.T, name string) float64 {
	t.Helper()
	sum, err := mirrortest.ReviewMetric(s.metrics(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// metrics returns kube-apiserver's metrics.
func (s *intake) metrics(t *testing.T) string {
	t.Helper()
	metrics, err := s.objects.Read(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

// requests returns the requests for a path in the server's audit log.
func (s *intake) requests(t *testing.T, path string) []auditv1.Event {
	t.Helper()
	content, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	var events []auditv1.Event
	for line := range strings.Lines(string(content)) {
		var event auditv1.Event
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(event.RequestURI, path) {
			events = append(events, event)
		}
	}
	return events
}

// testAggregated tests a webhook for the Service default/kubernetes, to which the API server sends reviews as itself.
func (s *intake) testAggregated(t *testing.T) {
	t.Logf("average duration of a review: %v", s.change(t, "aggregated", 50))
	var events []auditv1.Event
	testkit.EventuallyWithin(t, deadline, "the audit log has the reviews", func(context.Context) error {
		events = s.requests(t, reviews)
		if answered := len(slices.DeleteFunc(slices.Clone(events), isCutOff)); answered < 51 {
			return fmt.Errorf("%d reviews with a response, want at least 51", answered)
		}
		return nil
	})
	for _, event := range events {
		user := event.User
		if user.Username != "system:apiserver" || !slices.Contains(user.Groups, "system:masters") ||
			!isCutOff(event) && event.ResponseStatus.Code != http.StatusOK {
			t.Fatalf("review of %+v, response %+v", user, event.ResponseStatus)
		}
	}
	// A review with this response was cut off only if kube-apiserver has not received the response.
	if strings.Contains(s.metrics(t), badReviews) {
		t.Error("kube-apiserver received the response to a bad request")
	}
	t.Logf("identity: %+v", events[0].User)
	for _, event := range s.requests(t, "/audit") {
		if event.User.Username != devcluster.AuditUser || !isCutOff(event) && event.ResponseStatus.Code != http.StatusOK {
			t.Fatalf("events of %+v, response %+v", event.User, event.ResponseStatus)
		}
	}
}

// isCutOff reports whether a client no longer waited for the response to a request. If the body was not read by then, the response is a bad
// request.
func isCutOff(event auditv1.Event) bool {
	return event.ResponseStatus == nil || event.ResponseStatus.Code == http.StatusBadRequest ||
		event.ResponseStatus.Code >= http.StatusInternalServerError
}

// testOnlyTheAPIServer checks that an administrator cannot send reviews or audit events.
func (s *intake) testOnlyTheAPIServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "review.json")
	forged := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"forged"}}`
	if err := os.WriteFile(file, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, as := range [][]string{nil, {"--as=system:apiserver"}, {"--as=jane", "--as-group=system:masters"}} {
		out, err := s.admin.Run(t.Context(), append([]string{"create", "--raw", reviews, "-f", file}, as...)...)
		if err == nil || !strings.Contains(err.Error(), "(Forbidden)") {
			t.Errorf("as %v: %s (%v)", as, out, err)
		}
	}
	response, err := s.direct.Post(s.Env(devcluster.EnvServerURL)+"/audit", "application/json", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("response code for audit events of an administrator = %d", response.StatusCode)
	}
}

// testDirect tests a webhook with a secret in its path, which must be in no log of the server.
func (s *intake) testDirect(t *testing.T) {
	if err := s.UseDirectAdmission(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("average duration of a review: %v", s.change(t, "direct", 50))
	path, err := s.objects.Field(t.Context(), "", "validatingwebhookconfiguration/slipstream-attribution",
		"{.webhooks[0].clientConfig.service.path}{.webhooks[0].clientConfig.url}")
	if err != nil {
		t.Fatal(err)
	}
	secret := path[strings.LastIndex(path, "/")+1:]
	if len(secret) < 32 {
		t.Fatalf("path of the webhook = %q", path)
	}
	testkit.EventuallyWithin(t, deadline, "the audit log has the reviews", func(context.Context) error {
		if n := len(s.requests(t, "/process-validating-webhook/")); n < 51 {
			return fmt.Errorf("%d reviews, want at least 51", n)
		}
		return nil
	})
	for _, file := range []string{s.log, s.Env(devcluster.EnvServerLog)} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), "/process-validating-webhook/") || strings.Contains(string(content), secret) {
			t.Errorf("%s lacks the webhook's requests, or contains the secret", file)
		}
	}
}
