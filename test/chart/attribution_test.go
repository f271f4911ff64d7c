// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/artifacts/attribution"
)

const webhookName = "slipstream-attribution"

// The webhook of the chart differs from the one in artifacts only in its namespace selector.
func TestWebhookMatchesArtifacts(t *testing.T) {
	want := admissionv1.ValidatingWebhookConfiguration{}
	artifact(t, "validating-webhook-configuration.yaml", &want)
	got := find[*admissionv1.ValidatingWebhookConfiguration](t, objects(t, "{}"), webhookName)
	if diff := cmp.Diff(want.Annotations, got.Annotations); diff != "" {
		t.Errorf("annotations differ:\n%s", diff)
	}
	want.Webhooks[0].NamespaceSelector = outside("kube-system", namespace)
	if diff := cmp.Diff(want.Webhooks, got.Webhooks); diff != "" {
		t.Errorf("webhooks differ:\n%s", diff)
	}
}

// Both files in artifacts differ only in the client configuration.
func TestArtifactsHaveTheSameRules(t *testing.T) {
	var aggregated, direct admissionv1.ValidatingWebhookConfiguration
	artifact(t, "validating-webhook-configuration.yaml", &aggregated)
	artifact(t, "validating-webhook-configuration-direct.yaml", &direct)
	aggregated.Webhooks[0].ClientConfig, direct.Webhooks[0].ClientConfig = admissionv1.WebhookClientConfig{}, admissionv1.WebhookClientConfig{}
	if diff := cmp.Diff(aggregated, direct); diff != "" {
		t.Error(diff)
	}
}

func TestExcludedNamespaces(t *testing.T) {
	for values, want := range map[string]*metav1.LabelSelector{
		"{attribution: {admission: {excludedNamespaces: []}}}":                                 outside(namespace),
		"{attribution: {admission: {excludedNamespaces: [slipstream-system, gatekeeper, a]}}}": outside(namespace, "gatekeeper", "a"),
		"{attribution: {admission: {excludedNamespaces: [kube-system, kube-node-lease, flux]}}}": outside("kube-system", "kube-node-lease",
			"flux", namespace),
	} {
		webhooks := find[*admissionv1.ValidatingWebhookConfiguration](t, objects(t, values), webhookName).Webhooks
		if diff := cmp.Diff(want, webhooks[0].NamespaceSelector); diff != "" {
			t.Errorf("%s:\n%s", values, diff)
		}
	}
}

func TestWithoutWebhook(t *testing.T) {
	for _, values := range []string{
		"{attribution: {admission: {mode: none}}}",
		"{attribution: {admission: {create: false}}}",
		"{attribution: {admission: {create: false, mode: direct, segmentSecret: segment}}}",
	} {
		if got := among[*admissionv1.ValidatingWebhookConfiguration](t, objects(t, values), webhookName); len(got) > 0 {
			t.Errorf("values %s: got webhooks %v", values, got)
		}
	}
}

// outside returns a selector for everything that is not in these namespaces.
func outside(namespaces ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: namespaces},
	}}
}

// artifact decodes a file of artifacts/attribution, whose variables are in string fields.
func artifact(t *testing.T, name string, into *admissionv1.ValidatingWebhookConfiguration) {
	t.Helper()
	content, err := attribution.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var webhooks map[string]any
	if err := yaml.UnmarshalStrict(content, &webhooks); err != nil {
		t.Fatal(err)
	}
	// ${CA_BUNDLE} is not valid base64.
	delete(webhooks["webhooks"].([]any)[0].(map[string]any)["clientConfig"].(map[string]any), "caBundle")
	if content, err = yaml.Marshal(webhooks); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		t.Fatal(err)
	}
}
