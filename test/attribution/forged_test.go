// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// Metrics of the server.
const (
	refusals       = "slipstream_attribution_refusals_total"
	contradictions = "slipstream_enrich_contradictions_total"
)

// caller is a client that sends facts to the server, directly or through the aggregator.
type caller struct {
	config *rest.Config
	header http.Header
}

// direct returns a client that connects to the server directly as a user of the cluster.
func (s *testCluster) direct(t *testing.T, user devcluster.Kubeconfig) caller {
	t.Helper()
	config, err := user.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Host, config.CAData, config.Insecure = s.Env(devcluster.EnvServerURL), nil, true
	return caller{config: config}
}

// post sends a body and returns the response code.
func (c caller) post(t *testing.T, path string, body []byte) int {
	t.Helper()
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(c.config.Host, "/audit")+path,
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if c.header != nil {
		request.Header = c.header
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body) // only the status matters
	return response.StatusCode
}

const (
	auditPath      = "/audit"
	aggregatedPath = "/apis/configbutler.ai/v1alpha1/admissionreviews"
	directPath     = "/process-validating-webhook/"
)

// review is an admission review of a ConfigMap that mallory creates.
const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",
"kind":{"version":"v1","kind":"ConfigMap"},"resource":{"version":"v1","resource":"configmaps"},"namespace":"forged","name":"web",
"userInfo":{"username":"mallory"},
"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"forged"},"data":{"value":"x"}}}}`

// forged has clients without permission send facts.
func forged(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "forged", "configmaps")
	ordinary := s.direct(t, s.alice.kubectl.User)
	administrator := s.direct(t, s.Admin())
	anonymous := caller{config: rest.AnonymousClientConfig(ordinary.config)}
	withHeaders := caller{
		config: ordinary.config, header: http.Header{"X-Remote-User": {devcluster.AuditUser}, "X-Remote-Group": {"system:masters"}},
	}
	aggregated := caller{config: restConfig(t, s.alice.kubectl.User)}
	aggregatedAdmin := caller{config: restConfig(t, s.Admin())}
	auditor := caller{config: restConfig(t, s.AuditWebhook())}
	events := encode(t, &auditv1.EventList{
		Items: []auditv1.Event{madeBy("mallory", &metav1.ObjectMeta{Name: "web", Namespace: "forged", UID: "1", ResourceVersion: "1"})},
	})

	for name, test := range map[string]struct {
		caller caller
		path   string
		body   []byte
		want   []int
		// accepted is true if the client is authorized and only the body is invalid.
		accepted bool
	}{
		"audit without a certificate":                      {anonymous, auditPath, events, []int{401, 403}, false},
		"audit by an ordinary user":                        {ordinary, auditPath, events, []int{401, 403}, false},
		"audit by an administrator of the cluster":         {administrator, auditPath, events, []int{401, 403}, false},
		"audit with the headers of the aggregator":         {withHeaders, auditPath, events, []int{401, 403}, false},
		"a review by an ordinary user":                     {aggregated, aggregatedPath, []byte(review), []int{403}, false},
		"a review by an administrator of the cluster":      {aggregatedAdmin, aggregatedPath, []byte(review), []int{403}, false},
		"a review past the aggregator":                     {ordinary, aggregatedPath, []byte(review), []int{401, 403}, false},
		"a review past the aggregator by an administrator": {administrator, aggregatedPath, []byte(review), []int{401, 403}, false},
		"a review with the audit webhook's certificate":    {auditor, aggregatedPath, []byte(review), []int{401, 403}, false},
		"a review at a path without a secret":              {anonymous, directPath, []byte(review), []int{401, 403, 404}, false},
		"a review at a path with a wrong secret": {
			anonymous, directPath + strings.Repeat("0", 64), []byte(review), []int{401, 403, 404}, false,
		},
		"audit with invalid JSON": {auditor, auditPath, []byte("{"), []int{400}, true},
		"audit of another kind":   {auditor, auditPath, []byte(review), []int{400}, true},
		"audit that is too large": {auditor, auditPath, bytes.Repeat([]byte(" "), 17<<20), []int{413}, true},
	} {
		t.Run(name, func(t *testing.T) {
			send := func() { wantStatus(t, test.caller.post(t, test.path, test.body), test.want) }
			if send(); !test.accepted {
				s.counts(t, refusals, send)
			}
		})
	}
	m.mustSet(t, s.alice, "web", "x")
	m.expectAuthors(t, "v1/configmaps", expected{"web", "CREATE", "alice"})
}

func wantStatus(t *testing.T, got int, want []int) {
	t.Helper()
	if !slices.Contains(want, got) {
		t.Errorf("response code = %d, want %v", got, want)
	}
}

// counts fails the test unless a function increases a counter of the server.
func (s *testCluster) counts(t *testing.T, counter string, call func()) {
	t.Helper()
	before, err := s.Counted(t.Context(), counter)
	if err != nil {
		t.Fatal(err)
	}
	call()
	mirrortest.Eventually(t, counter+" is increased", func(ctx context.Context) error {
		after, err := s.Counted(ctx, counter)
		if err == nil && after <= before {
			err = fmt.Errorf("unchanged: %v", after)
		}
		return err
	})
}

// secretPath sends a review to the secret path without other credentials.
func secretPath(t *testing.T, s *testCluster) {
	segment, err := os.ReadFile(s.Env(devcluster.EnvAdmissionSegmentFile))
	if err != nil {
		t.Fatal(err)
	}
	anonymous := caller{config: rest.AnonymousClientConfig(s.direct(t, s.alice.kubectl.User).config)}
	wantStatus(t, anonymous.post(t, directPath+strings.TrimSpace(string(segment)), []byte(review)), []int{http.StatusOK})
}

// contradicted sends contradicting audit events with the certificate of the audit webhook: two users make each of the next changes.
func contradicted(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "contradicted", "configmaps")
	m.mustSet(t, s.alice, "web", "1")
	m.expectAuthors(t, "v1/configmaps", expected{"web", "CREATE", "alice"})
	object, err := s.admin.CoreV1().ConfigMaps(m.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	auditor := caller{config: restConfig(t, s.AuditWebhook())}
	wantStatus(t, auditor.post(t, auditPath, encode(t, toCome(t, object, "bob", "mallory"))), []int{http.StatusOK})
	s.counts(t, contradictions, func() {
		m.mustSet(t, s.alice, "web", "2")
		changed := m.changesOf(t, "v1/configmaps", "web", 2)[1]
		if changed.Signal != "unknown" || changed.Author == "bob" || changed.Author == "mallory" {
			t.Errorf("%s, want no author", changed)
		}
	})
	m.mustSet(t, s.bob, "other", "1")
	checkAuthor(t, m.changesOf(t, "v1/configmaps", "other", 1)[0], "bob", true)
}

// toCome returns audit events of the next versions of an object, one by each user.
func toCome(t *testing.T, object metav1.Object, users ...string) *auditv1.EventList {
	t.Helper()
	const versions = 200
	newest, err := strconv.Atoi(object.GetResourceVersion())
	if err != nil {
		t.Fatal(err)
	}
	events := &auditv1.EventList{}
	for version := newest + 1; version <= newest+versions; version++ {
		meta := &metav1.ObjectMeta{
			Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(), ResourceVersion: strconv.Itoa(version),
		}
		for _, user := range users {
			events.Items = append(events.Items, madeBy(user, meta))
		}
	}
	return events
}

// madeBy returns the audit event of an update of a ConfigMap.
func madeBy(user string, meta *metav1.ObjectMeta) auditv1.Event {
	now := metav1.NowMicro()
	// cannot fail
	response, _ := json.Marshal(metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: *meta,
	})
	return auditv1.Event{
		Level: auditv1.LevelRequestResponse, AuditID: types.UID(user + "-" + meta.ResourceVersion), Stage: auditv1.StageResponseComplete,
		RequestURI: "/api/v1/namespaces/" + meta.Namespace + "/configmaps/" + meta.Name, Verb: "update",
		User: authenticationv1.UserInfo{Username: user},
		ObjectRef: &auditv1.ObjectReference{
			Resource: "configmaps", Namespace: meta.Namespace, Name: meta.Name, APIVersion: "v1", UID: meta.UID,
		},
		ResponseStatus:           &metav1.Status{Code: http.StatusOK},
		ResponseObject:           &runtime.Unknown{Raw: response, ContentType: runtime.ContentTypeJSON},
		RequestReceivedTimestamp: now, StageTimestamp: metav1.NewMicroTime(now.Add(time.Millisecond)),
	}
}

func encode(t *testing.T, events *auditv1.EventList) []byte {
	t.Helper()
	events.TypeMeta = metav1.TypeMeta{APIVersion: "audit.k8s.io/v1", Kind: "EventList"}
	body, err := json.Marshal(events)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func restConfig(t *testing.T, user devcluster.Kubeconfig) *rest.Config {
	t.Helper()
	config, err := user.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}
