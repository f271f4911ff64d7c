// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The Certificate for cert-manager has the server name that kube-apiserver verifies, and the Secret that the server reads.
func TestCertificate(t *testing.T) {
	for values, issuer := range map[string]map[string]any{
		"{tls: {mode: cert-manager, secretName: mine}}": {"name": "slipstream"},
		"{tls: {mode: cert-manager, secretName: mine, certManager: {issuerRef: {name: corporate, kind: ClusterIssuer}}}}": {
			"name": "corporate", "kind": "ClusterIssuer",
		},
	} {
		want := map[string]any{
			"secretName": "mine", "dnsNames": []any{"slipstream.slipstream-system.svc"}, "usages": []any{"digital signature", "server auth"},
			"privateKey": map[string]any{"algorithm": "ECDSA", "size": 256.0, "rotationPolicy": "Always"}, "issuerRef": issuer,
		}
		if diff := cmp.Diff(want, other(t, objects(t, values), "Certificate", "slipstream")); diff != "" {
			t.Errorf("%s:\n%s", values, diff)
		}
	}
}

// The chart's own issuer uses an authority of cert-manager, in another Secret than the server's own authority.
func TestIssuerOfTheChart(t *testing.T) {
	all := objects(t, "{tls: {mode: cert-manager}}")
	authority := other(t, all, "Certificate", "slipstream-authority")
	want := map[string]any{
		"isCA": true, "commonName": "slipstream", "secretName": "slipstream-cert-manager-ca", "duration": "43800h",
		"privateKey": map[string]any{"algorithm": "ECDSA", "size": 256.0, "rotationPolicy": "Always"},
		"issuerRef":  map[string]any{"name": "slipstream-self-signed"},
	}
	if diff := cmp.Diff(want, authority); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"selfSigned": map[string]any{}}, other(t, all, "Issuer", "slipstream-self-signed")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"ca": map[string]any{"secretName": authority["secretName"]}},
		other(t, all, "Issuer", "slipstream")); diff != "" {
		t.Error(diff)
	}
}

// Without cert-manager, the chart has no objects of its kinds, which the cluster may not have.
func TestNoCertificates(t *testing.T) {
	for _, values := range []string{"{}", "{tls: {mode: secret}}"} {
		for _, each := range objects(t, values) {
			if object, ok := each.(*unstructured.Unstructured); ok && object.GetKind() != "APIService" {
				t.Errorf("values %s: got a %s", values, object.GetKind())
			}
		}
	}
}
