// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// api is a workload with its Service and a route of each kind, through a Gateway of its own and through a shared one.
const api = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  selector: {matchLabels: {app: api}}
  template: {metadata: {labels: {app: api}}, spec: {containers: [{name: api, image: "api:1"}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: api}, spec: {selector: {app: api}, ports: [{port: 80, targetPort: 80}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: api-tls}, data: {tls.key: aHVudGVyMg==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: other-tls}, data: {tls.key: aHVudGVyMg==}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  hostnames: [api.example.com]
  parentRefs: [{name: edge, port: 443}, {name: shared, namespace: infra}]
  rules: [{backendRefs: [{name: api, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: calls}
spec:
  hostnames: [api.example.com]
  parentRefs: [{name: edge, sectionName: https}]
  rules: [{backendRefs: [{name: api, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: envoy
  listeners:
  - {name: https, hostname: api.example.com, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: api-tls}]}}
  - {name: others, hostname: other.example.com, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: other-tls}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other}
spec:
  gatewayClassName: envoy
  listeners: [{name: https, hostname: other.example.com, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: other-tls}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: other}
spec:
  hostnames: [other.example.com]
  parentRefs: [{name: other}]
  rules: [{backendRefs: [{name: other, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: certificate}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}]
  to: [{group: "", kind: Secret, name: api-tls}, {group: "", kind: Secret, name: other-tls}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: services}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: infra}]
  to: [{group: example.com, kind: Pool}, {group: "", kind: Service}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: others}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}]
  to: [{group: "", kind: Secret, name: other-tls}, {group: "", kind: ConfigMap}]
`

func newAPIStage(t *testing.T) *fixture {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(api, "\n---\n") {
		objects = append(objects, object(t, document))
	}
	return newFixture(t, objects...)
}

// TestGatewayAPI checks that only objects for routes to a workload are copied: no other Gateway with its certificate, and no ReferenceGrant
// for it.
func TestGatewayAPI(t *testing.T) {
	withoutHosts := []string{
		"create Service api: Deployment api refers to it",
		"create Deployment api: the catalog offers it",
	}
	everything := []string{
		"create Secret api-tls: Gateway edge refers to it",
		withoutHosts[0], withoutHosts[1],
		"create ReferenceGrant certificate: it lets others refer to what is copied",
		"create ReferenceGrant services: it lets others refer to what is copied",
		"create Gateway edge: routes that are copied attach to it",
		"create GRPCRoute calls: it leads to Service api",
		"create HTTPRoute web: it leads to Service api",
	}
	permitted := map[string][]any{
		"certificate": {map[string]any{"group": "", "kind": "Secret", "name": "api-tls"}},
		"services":    {map[string]any{"group": "", "kind": "Service", "name": "api"}},
	}
	for name, tt := range map[string]struct {
		hosts v1alpha1.IngressHosts
		want  []string
	}{
		"by a template":   {environmenttest.Environment().Spec.Adapt.IngressHosts, everything},
		"as the source":   {v1alpha1.IngressHosts{Type: v1alpha1.IngressHostsAsSource}, everything},
		"left out":        {v1alpha1.IngressHosts{Type: v1alpha1.IngressHostsOmit}, withoutHosts},
		"nothing is said": {v1alpha1.IngressHosts{}, withoutHosts},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIStage(t)
			s.Environment.Spec.Adapt.IngressHosts = tt.hosts
			p := s.sync()
			if diff := cmp.Diff(tt.want, lines(p)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if len(p.Missing)+len(p.Warnings) > 0 {
				t.Errorf("missing: %v, reported: %q", p.Missing, p.Warnings)
			}
			for _, step := range p.Steps {
				if step.Kind == "ReferenceGrant" {
					to, _, err := unstructured.NestedSlice(step.Desired.Object, "spec", "to")
					if diff := cmp.Diff(permitted[step.Name], to); diff != "" || err != nil {
						t.Errorf("%v, targets of the ReferenceGrant %s: want -, got +:\n%s", err, step.Name, diff)
					}
				}
			}
		})
	}
}

// TestGatewayAPIChanges checks that changes of a route are counted, and that objects that are not needed any more are deleted.
func TestGatewayAPIChanges(t *testing.T) {
	s := newAPIStage(t)
	s.sync()
	route := s.Source[slices.IndexFunc(s.Source, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "HTTPRoute" && o.GetName() == "web"
	})]
	set(t, route, []any{"api.example.com", "more.example.com"}, "spec", "hostnames")
	_, others := plan.Prompt(s.plan().Changes(plan.HideSecrets))
	if want := []v1alpha1.DependencyCount{{Type: v1alpha1.CountedHTTPRoute, Count: 1}}; !slices.Equal(others, want) {
		t.Errorf("counted changes = %v, want %v", others, want)
	}
	s.drop("GRPCRoute", "calls")
	s.drop("HTTPRoute", "web")
	const gone = ": nothing needs it any more"
	want := []string{
		"delete HTTPRoute web" + gone, "delete GRPCRoute calls" + gone, "delete Gateway edge" + gone,
		"delete ReferenceGrant certificate" + gone, "delete Secret api-tls" + gone,
	}
	if diff := cmp.Diff(want, lines(s.sync())); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if len(s.Base) != 3 {
		t.Errorf("%d objects are left", len(s.Base))
	}
}

// TestGatewayCertificatesAreRefreshed checks that the certificate of a Gateway is refreshed with the workloads of its routes, like that of
// an Ingress.
func TestGatewayCertificatesAreRefreshed(t *testing.T) {
	s := newAPIStage(t)
	s.sync()
	s.put(object(t, "{apiVersion: v1, kind: Secret, metadata: {name: other-tls}, data: {tls.key: bmV3}}"))
	s.put(object(t, "{apiVersion: v1, kind: Secret, metadata: {name: api-tls}, data: {tls.key: bmV3}}"))
	s.Action = v1alpha1.SyncActionCluster
	for workload, want := range map[string]string{"api": "update Secret api-tls", "another": ""} {
		s.Only = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: workload}}
		if got := strings.Join(lines(s.plan()), ", "); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("steps with %s = %q, want %q", workload, got, want)
		}
	}
}

// TestRouteWithoutHosts checks that a route for all hosts of a Gateway is not copied if hosts have a template, and that this is reported if
// it leads to a workload.
func TestRouteWithoutHosts(t *testing.T) {
	s := newAPIStage(t)
	for _, route := range s.Source {
		if of := route.GetKind(); of == "HTTPRoute" || of == "GRPCRoute" {
			unstructured.RemoveNestedField(route.Object, "spec", "hostnames")
		}
	}
	want := []string{"GRPCRoute calls is not copied: no host of its own", "HTTPRoute web is not copied: no host of its own"}
	p := s.plan()
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(p.Warnings))); diff != "" ||
		slices.ContainsFunc(p.Steps, func(step plan.Step) bool { return step.Kind == "Gateway" }) {
		t.Errorf("steps %q, reported (-want +got):\n%s", lines(p), diff)
	}
}

// TestReferenceGrantOfMany checks that a ReferenceGrant is omitted if it would have too many entries.
func TestReferenceGrantOfMany(t *testing.T) {
	s := newAPIStage(t)
	for i := range 16 {
		s.add(object(t, fmt.Sprintf(
			"{apiVersion: v1, kind: Service, metadata: {name: more-%d}, spec: {selector: {app: api}, ports: [{port: 80, targetPort: 80}]}}", i)))
	}
	want := "ReferenceGrant services is not copied: it would name 17 objects, and can name 16"
	if p := s.plan(); !slices.Contains(p.Warnings, want) {
		t.Errorf("warnings = %q", p.Warnings)
	}
}

// TestObjectsGeneratedForGateways checks that a Service generated for a Gateway is not deleted. Like Istio, the controller
// copies the Gateway's labels and sets no controller reference.
func TestObjectsGeneratedForGateways(t *testing.T) {
	s := newAPIStage(t)
	s.sync()
	made := object(t, "{apiVersion: v1, kind: Service, metadata: {name: edge-istio, "+
		"ownerReferences: [{apiVersion: gateway.networking.k8s.io/v1, "+
		"kind: Gateway, name: edge, uid: u}]}, spec: {ports: [{port: 80, targetPort: 80}]}}")
	for key, live := range s.target.objects {
		if key.Kind == "Gateway" {
			made.SetLabels(live.GetLabels())
		}
	}
	s.target.update("istio", made)
	if p := s.plan(); len(lines(p)) > 0 || len(made.GetLabels()) == 0 {
		t.Errorf("steps = %q", lines(p))
	}
}

// TestGatewayAPIIsHidden checks that values of custom resources are hidden, because the role view does not include them.
func TestGatewayAPIIsHidden(t *testing.T) {
	for _, step := range newAPIStage(t).plan().Steps {
		if step.Hidden != plan.IsGatewayAPI(step.GroupKind) {
			t.Errorf("%s: hidden = %v", step.Key, step.Hidden)
		}
	}
}

// TestPartOfGateway syncs and restores one of two workloads that share a Gateway and a ReferenceGrant. The entries of the
// other one stay.
func TestPartOfGateway(t *testing.T) {
	s := newAPIStage(t)
	deployment, _, _ := strings.Cut(api, "\n---\n")
	s.add(object(t, strings.NewReplacer("name: api", "name: other", "app: api", "app: other").Replace(deployment)))
	s.add(object(t, "{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {selector: {app: other}, ports: [{port: 80, "+
		"targetPort: 80}]}}"))
	for _, o := range s.Source {
		if o.GetKind() == "HTTPRoute" && o.GetName() == "other" {
			set(t, o, []any{map[string]any{"name": "edge", "sectionName": "others"}}, "spec", "parentRefs")
		}
	}
	s.sync()
	s.Only = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "api"}}
	if got := lines(s.plan()); len(got) > 0 {
		t.Errorf("steps for one workload = %q", got)
	}
	for _, o := range s.Base {
		s.Snapshot = append(s.Snapshot, o)
	}
	if got := lines(s.plan()); len(got) > 0 {
		t.Errorf("steps of a rollback of one workload = %q", got)
	}
	s.Only = nil
	if got := lines(s.plan()); len(got) > 0 {
		t.Errorf("steps of a rollback = %q", got)
	}
}
