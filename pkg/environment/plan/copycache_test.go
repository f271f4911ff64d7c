// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// TestWarningsOfUnusedCopies has a Gateway with a host that cannot be rendered. It is copied only as long as the Service that it leads to,
// which is no longer in the source, has not been read in the target.
func TestWarningsOfUnusedCopies(t *testing.T) {
	service := object(t, "{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 80, targetPort: 80, protocol: TCP}]}}")
	s := newFixture(t, service,
		object(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {serviceName: db, selector: {matchLabels: {app: db}}, "+
			"template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: 'db:1'}]}}}}"),
		object(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: db}, spec: {hostnames: [a.example.com], "+
			"parentRefs: [{name: web}], rules: [{backendRefs: [{name: db, port: 80}]}]}}"),
		object(t, "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: web}, spec: {gatewayClassName: c, "+
			"listeners: [{name: l, port: 80, protocol: HTTP, hostname: "+strings.Repeat("a", 63)+".example.com}]}}"))
	s.Environment.Spec.Adapt.IngressHosts = v1alpha1.IngressHosts{Type: v1alpha1.IngressHostsTemplate, Template: "{environment}-{host}"}
	if p := s.sync(); len(p.Warnings) == 0 {
		t.Fatal("no warning while the Gateway is copied")
	}
	s.drop("Service", "db")
	s.target.objects[plan.KeyOf(service)].SetLabels(nil)
	want := s.plan()

	in := s.Input
	in.CopyCache, in.Live = &plan.CopyCache{}, withoutObject(s.Live, service)
	for range 2 {
		if _, err := planner.Needs(in); err != nil {
			t.Fatal(err)
		}
		in.Live = s.Live
	}
	got, err := planner.Plan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Warnings, got.Warnings); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func withoutObject(objects []*unstructured.Unstructured, object *unstructured.Unstructured) []*unstructured.Unstructured {
	var others []*unstructured.Unstructured
	for _, o := range objects {
		if plan.KeyOf(o) != plan.KeyOf(object) {
			others = append(others, o)
		}
	}
	return others
}
