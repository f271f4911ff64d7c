// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// gatewayEditors is a role for objects of the Gateway API, which the roles admin and edit do not include.
const gatewayEditors = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gateway-editors}
rules:
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, grpcroutes, httproutes, referencegrants]
  verbs: [get, list, create, update, patch, delete]
`

// installGatewayAPI installs the CustomResourceDefinitions of the Gateway API, and the role for its objects.
func (s *testCluster) installGatewayAPI(t *testing.T) {
	t.Helper()
	s.admin.InstallGatewayAPI(t)
	s.Apply(t, gatewayEditors)
}

// gatewayProduction is a workload with a route through a Gateway with a certificate and through one of another namespace.
const gatewayProduction = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: 'shop/web:v1'}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
apiVersion: v1
kind: Secret
metadata: {name: shop-tls}
type: kubernetes.io/tls
stringData: {tls.crt: certificate, tls.key: hunter2}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shop, annotations: {external-dns.alpha.kubernetes.io/hostname: shop.example.com}}
spec:
  gatewayClassName: envoy
  addresses: [{value: 192.0.2.1}]
  listeners:
  - {name: https, hostname: shop.example.com, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: shop-tls}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web}
spec:
  hostnames: [shop.example.com]
  parentRefs: [{name: shop, namespace: routed-production}, {name: public, namespace: platform}]
  rules: [{backendRefs: [{name: web, namespace: routed-production, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: platform}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: platform}]
  to: [{group: "", kind: Secret, name: shop-tls}]
`

// testGatewayAPI creates, changes and deletes copies of routes and Gateways, with hosts of their own. Mallory has the role edit
// in the target, but no permissions on the Gateway API.
func (s *testCluster) testGatewayAPI(t *testing.T) {
	s.allowGatewayAPI(t, "routed-production", s.ann)
	c := s.newFixture(t, "routed", gatewayProduction, workloads("web"))
	s.allowGatewayAPI(t, c.target, s.dave)
	s.Apply(t, people.In(c.target, "edit", s.mallory.Name))
	c.mustApply(t, "alice", "adapt: {ingressHosts: {type: Template, template: '{label}.{environment}.dev.example.com'}}")
	record := c.waitForState(t, c.syncBy(t, s.mallory, "alice", all), v1alpha1.SyncStateManualIntervention)
	if !strings.Contains(fmt.Sprint(record.Status.Failures), "Failed to create HTTPRoute 'web' of routed - ") ||
		len(c.objectsIn(t, c.target)) > 0 {
		t.Errorf("without permissions on routes: objects %q, failures %+v", c.objectsIn(t, c.target).names(), record.Status.Failures)
	}
	c.mustSync(t, "alice", all)
	want := []string{"Deployment web", "Gateway shop", "HTTPRoute web", "ReferenceGrant platform", "Secret shop-tls", "Service web"}
	objects := c.objectsIn(t, c.target)
	if diff := cmp.Diff(want, objects.names()); diff != "" {
		t.Fatalf("objects of the target: want -, got +:\n%s", diff)
	}
	gateway, route := objects["Gateway shop"], objects["HTTPRoute web"]
	if hosts := text(route, "spec", "hostnames"); hosts != "[shop.alice.dev.example.com]" {
		t.Errorf("hosts of the route = %s", hosts)
	}
	written := fmt.Sprint(gateway.Object["metadata"], gateway.Object["spec"], route.Object["spec"])
	for _, production := range []string{c.source, " shop.example.com", ":shop.example.com", "192.0.2.1"} {
		if strings.Contains(written, production) {
			t.Errorf("copies contain %q: %s", production, written)
		}
	}
	c.waitForStatus(t, "alice", "Synced")

	c.ann.Patch(t, c.source, "httproute/web", `{"spec": {"hostnames": ["shop.example.com", "www.example.com"]}}`)
	c.waitForStatus(t, "alice", "1 HTTPRoute changed")
	c.mustSync(t, "alice", all)
	if hosts := text(c.objectsIn(t, c.target)["HTTPRoute web"], "spec", "hostnames"); !strings.Contains(hosts, "www.alice.dev.example.com") {
		t.Errorf("hosts of the route = %s", hosts)
	}
	c.dave.Delete(t, c.team, "envt/alice")
	if left := c.objectsIn(t, c.target).names(); len(left) > 0 {
		t.Errorf("objects left after the deletion of the environment: %q", left)
	}
}

// allowGatewayAPI grants a user the role for the Gateway API in a namespace, which is created if it does not exist.
func (s *testCluster) allowGatewayAPI(t *testing.T, in string, who *people.Person) {
	t.Helper()
	s.Apply(t, namespace(in)+people.In(in, "gateway-editors", who.Name))
}
