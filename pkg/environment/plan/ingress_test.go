// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestPatchesLeadToNoOtherIngress has patches that lead to an Ingress. Its certificates are copied with it only if the catalog's workloads
// need them. None of these patches names a Secret, so none requires permission to read one.
func TestPatchesLeadToNoOtherIngress(t *testing.T) {
	const (
		certificate = "{apiVersion: v1, kind: Secret, metadata: {name: admin-tls}, data: {tls.key: aHVudGVyMg==}}"
		backend     = "{apiVersion: v1, kind: Service, metadata: {name: admin}, spec: {selector: {app: admin}, ports: [{port: 80}]}}"
		admin       = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: admin}
spec:
  rules: [{host: admin.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: admin, port: {number: 80}}}}]}}]
  tls: [{hosts: [admin.example.com], secretName: admin-tls}]
`
		database = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: "db:1"}]}}
`
	)
	own, others := "create Service db: StatefulSet db refers to it", "create Service admin: StatefulSet db refers to it"
	tests := map[string]struct {
		patch v1alpha1.Patch
		want  []string
	}{
		"by the labels of pods": {v1alpha1.Patch{
			Target: v1alpha1.PatchTarget{Kind: "StatefulSet"}, Type: v1alpha1.PatchMerge,
			Patch: "{spec: {selector: {matchLabels: {app: admin}}, template: {metadata: {labels: {app: admin}}}}}",
		}, []string{others, own}},
		"by the name of a Service": {v1alpha1.Patch{
			Target: v1alpha1.PatchTarget{Kind: "StatefulSet"}, Type: v1alpha1.PatchMerge, Patch: "{spec: {serviceName: admin}}",
		}, []string{others, own}},
		"by where an Ingress leads": {v1alpha1.Patch{
			Target: v1alpha1.PatchTarget{Kind: "Ingress"}, Type: v1alpha1.PatchJSON6902,
			Patch: `[{op: replace, path: /spec/rules/0/http/paths/0/backend/service/name, value: db}]`,
		}, []string{own}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, object(t, database), object(t, certificate), object(t, backend), object(t, admin),
				replaced(t, backend, "admin", "db"))
			s.SecretsByConsent, s.Environment.Spec.Patches = true, []v1alpha1.Patch{tt.patch}
			want := slices.Concat(tt.want, []string{"create StatefulSet db: the catalog offers it"})
			if diff := cmp.Diff(want, lines(s.plan())); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPatchesLeadToNoOtherAccount has a patch that takes the account of a workload away, so that its Pods use that of the namespace. The
// Secrets of this account are copied only if another workload uses it, too, or if the requester of the sync may read them.
func TestPatchesLeadToNoOtherAccount(t *testing.T) {
	const (
		account  = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}, imagePullSecrets: [{name: registry}]}"
		own      = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: db}, imagePullSecrets: [{name: own}]}"
		registry = "{apiVersion: v1, kind: Secret, metadata: {name: registry}, data: {password: aHVudGVyMg==}}"
		database = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {serviceAccountName: db, containers: [{name: db, image: "db:1"}]}}
`
		worker = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  selector: {matchLabels: {app: worker}}
  template: {metadata: {labels: {app: worker}}, spec: {containers: [{name: worker, image: "worker:1"}]}}
`
		step = "create Secret registry: ServiceAccount default refers to it"
	)
	patch := v1alpha1.Patch{
		Target: v1alpha1.PatchTarget{Kind: "StatefulSet"}, Type: v1alpha1.PatchJSON6902,
		Patch: `[{op: replace, path: /spec/template/spec, value: {containers: [{name: db, image: "db:1"}]}}]`,
	}
	for name, tt := range map[string]struct {
		patches   []v1alpha1.Patch
		byConsent bool
		others    []string
		copied    bool
	}{
		"no patch":                       {nil, true, nil, false},
		"by consent":                     {[]v1alpha1.Patch{patch}, true, nil, false},
		"by consent, with other users":   {[]v1alpha1.Patch{patch}, true, []string{worker}, true},
		"by the rights of the requester": {[]v1alpha1.Patch{patch}, false, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []*unstructured.Unstructured{
				object(t, database), object(t, account), object(t, own), object(t, registry), replaced(t, registry, "registry", "own"),
			}
			for _, other := range tt.others {
				objects = append(objects, object(t, other))
			}
			s := newFixture(t, objects...)
			s.SecretsByConsent, s.Environment.Spec.Patches = tt.byConsent, tt.patches
			got := lines(s.plan())
			if copied := slices.Contains(got, step); copied != tt.copied {
				t.Errorf("Secret is copied: %t, want %t; steps:\n%s", copied, tt.copied, strings.Join(got, "\n"))
			}
		})
	}
}
