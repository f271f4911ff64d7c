// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// refusing is another webhook of the cluster. kube-apiserver calls all webhooks in parallel, so the server also receives the
// requests that this webhook rejects.
const refusing = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refusing}
webhooks:
- name: refusing.example.com
  clientConfig: {url: %q, caBundle: %s}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  rules:
  - {operations: [CREATE, UPDATE, DELETE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}
`

// refuse installs a webhook that rejects a user's changes of ConfigMaps in the namespace, except for dry runs.
func (m *mirror) refuse(t *testing.T, user *person) {
	t.Helper()
	const probe = "probe"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		dryRun := review.Request.DryRun != nil && *review.Request.DryRun
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: dryRun && review.Request.Name != probe || review.Request.UserInfo.Username != user.name,
			Result: &metav1.Status{Message: "not by " + user.name, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden},
		}
		_ = json.NewEncoder(w).Encode(review) // kube-apiserver detects a truncated response
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	m.Apply(t, fmt.Sprintf(refusing, server.URL, base64.StdEncoding.EncodeToString(authority), m.Namespace))
	t.Cleanup(func() {
		// The context of the test has ended already.
		if _, err := m.Administrator.Run(context.Background(), "delete", "validatingwebhookconfiguration", "refusing"); err != nil {
			t.Error(err)
		}
	})
	mirrortest.Eventually(t, "the webhook is effective", func(ctx context.Context) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: probe}}
		_, err := user.client.CoreV1().ConfigMaps(m.Namespace).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("request was not rejected: %w", err)
		}
		return nil
	})
}

// failedAttempts has one user make requests that fail, and another user make the same requests with success.
func failedAttempts(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "attempts", "configmaps")
	const name = "guarded"
	m.mustSet(t, s.alice, name, "first")
	wants := []expected{{name, "CREATE", "alice"}}
	succeeds := func(value string) {
		t.Helper()
		m.mustSet(t, s.alice, name, value)
		wants = append(wants, expected{name, "UPDATE", "alice"})
	}

	// A dry run.
	s.bob.run(t, "patch", "configmap", name, "-n", m.Namespace, "--dry-run=server", "-p", `{"data":{"value":"dry"}}`)
	s.bob.run(t, "delete", "configmap", name, "-n", m.Namespace, "--dry-run=server")
	succeeds("dry")

	// An update with an outdated resourceVersion.
	m.conflict(t, s.bob, name, "conflict")
	succeeds("conflict")

	// A create that exceeds the quota, which is checked after all webhooks.
	m.overQuota(t, s.bob, "limited")
	mirrortest.Eventually(t, "kube-apiserver has seen that the quota is deleted", func(ctx context.Context) error {
		return m.set(ctx, s.alice, "limited", "x")
	})
	wants = append(wants, expected{"limited", "CREATE", "alice"})

	m.expectAuthors(t, "v1/configmaps", wants...)

	// Requests that another webhook rejects: the update and the deletion are the same as those that succeed.
	m.refuse(t, s.bob)
	for i := range 10 {
		value := fmt.Sprint("refused-", i)
		if err := m.set(t.Context(), s.bob, name, value); !apierrors.IsForbidden(err) {
			t.Fatalf("request was not rejected: %v", err)
		}
		succeeds(value)
	}
	s.bob.fails(t, "not by bob", "delete", "configmap", name, "-n", m.Namespace)
	s.alice.run(t, "delete", "configmap", name, "-n", m.Namespace)
	m.expectNoWrongAuthors(t, "v1/configmaps", append(wants, expected{name, "DELETE", "alice"})...)
}

// conflict has a user write an object with an outdated resourceVersion.
func (m *mirror) conflict(t *testing.T, by *person, name, value string) {
	t.Helper()
	configMaps := by.client.CoreV1().ConfigMaps(m.Namespace)
	object, err := configMaps.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.ResourceVersion, object.Data["value"] = "1", value
	if _, err := configMaps.Update(t.Context(), object, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatalf("no conflict: %v", err)
	}
}

// overQuota has a user fail to create a ConfigMap because of a quota, and deletes the quota.
func (m *mirror) overQuota(t *testing.T, by *person, name string) {
	t.Helper()
	m.Run(t, "create", "quota", "few", "-n", m.Namespace, "--hard=count/configmaps=1")
	mirrortest.Eventually(t, "the quota is full", func(ctx context.Context) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: m.Namespace}, Data: map[string]string{"value": "x"}}
		_, err := by.client.CoreV1().ConfigMaps(m.Namespace).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("request was not rejected: %w", err)
		}
		return nil
	})
	if err := m.set(t.Context(), by, name, "x"); !apierrors.IsForbidden(err) {
		t.Fatalf("request was not rejected: %v", err)
	}
	m.Delete(t, m.Namespace, "quota/few")
}
