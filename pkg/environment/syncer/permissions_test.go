// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: extra}, spec: {size: 1}}"

// TestRightsOnCustomResources has jane, who cannot write Widgets in the target, request a sync that would write one: also if spec.include
// does not list one any more, because it is being deleted or an earlier revision had it. Nothing is written until she has the permission.
func TestRightsOnCustomResources(t *testing.T) {
	included := []v1alpha1.IncludedObject{{APIVersion: "example.com/v1", Kind: "Widget", Name: "extra"}}
	for name, tt := range map[string]struct {
		prepare  func(*fixture)
		revision int64
		// lost is the verb that is revoked from jane, and step the step that it prevents.
		lost, step string
		written    string
	}{
		"a first copy": {
			prepare: func(s *fixture) { s.environment.Spec.Include = included }, lost: "create", step: "create", written: "Added Widget extra",
		},
		"a change": {
			prepare: func(s *fixture) {
				s.environment.Spec.Include = included
				s.sync()
				s.put(strings.ReplaceAll(widget, "size: 1", "size: 2"))
			}, lost: "patch", step: "update", written: "Changed Widget extra",
		},
		"an entry less": {
			prepare: func(s *fixture) {
				s.environment.Spec.Include = included
				s.sync()
				s.environment.Spec.Include = nil
			}, lost: "delete", step: "delete", written: "Removed Widget extra",
		},
		"back to a revision that had it": {
			prepare: func(s *fixture) {
				s.environment.Spec.Include = included
				s.sync()
				s.next()
				s.environment.Spec.Include = nil
				s.sync()
			}, revision: 1, lost: "create", step: "create", written: "Added Widget extra",
		},
		"back to a revision that had none": {
			prepare: func(s *fixture) {
				s.sync()
				s.next()
				s.environment.Spec.Include = included
				s.sync()
				s.environment.Spec.Include = nil
			}, revision: 1, lost: "delete", step: "delete", written: "Removed Widget extra",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.put(widget)
			tt.prepare(s)
			s.rights.Lose(tt.lost + " widgets " + environmenttest.Target)
			s.cluster.TakeRequests()
			request := s.request()
			request.Revision = tt.revision
			planned := false
			request.Planned = func(*plan.Plan) error { planned = true; return nil }
			result, err := s.runner().Run(t.Context(), request)
			if err != nil || result.Complete || len(result.Failures) != 1 || planned {
				t.Fatalf("%v: planned %v: %+v", err, planned, result)
			}
			failure := result.Failures[0]
			want := "Failed to " + tt.step + ` Widget 'extra' of shop-alice - user "jane" may not `
			if failure.Reason != v1alpha1.ReasonPermissionLost || failure.Type != "Widget" || failure.Name != "extra" ||
				failure.Namespace != environmenttest.Target || !strings.HasPrefix(failure.Message, want) {
				t.Errorf("failure = %+v", failure)
			}
			if writes, dry := written(s.cluster.TakeRequests()); len(writes)+len(dry) > 0 {
				t.Errorf("writes = %q, dry runs = %q", writes, dry)
			}

			s.rights.Fail(errors.New("no answer"))
			if unknown, err := s.runner().Run(t.Context(), request); err == nil || len(lines(unknown)) > 0 {
				t.Errorf("with an unknown permission: %v: written %q", err, lines(unknown))
			}
			s.rights.Lose()
			result, err = s.runner().Run(t.Context(), request)
			if err != nil || !result.Complete || len(result.Failures) > 0 || !slices.Contains(lines(result), tt.written) {
				t.Errorf("with the permission: %v: written %q, failures %v", err, lines(result), result.Failures)
			}
		})
	}
}

// TestRightsAreCheckedBeforeWriting has jane lose a permission after her request: to write a kind in the target, or to read the catalog.
func TestRightsAreCheckedBeforeWriting(t *testing.T) {
	for lost, want := range map[string]string{
		"create deployments " + environmenttest.Target: `Failed to create Deployment 'web' of shop-alice - user "jane" may not `,
		"create configmaps " + environmenttest.Target:  `Failed to create ConfigMap 'queue' of shop-alice - user "jane" may not `,
		"get appcatalogs teams":                        `Failed to read AppCatalog 'shop' of teams - user "jane" may not `,
	} {
		t.Run(lost, func(t *testing.T) {
			s := newFixture(t)
			s.rights.Lose(lost)
			s.cluster.TakeRequests()
			result, err := s.runner().Run(t.Context(), s.request())
			if err != nil || result.Complete || len(result.Failures) == 0 {
				t.Fatalf("%v: %+v", err, result)
			}
			if failure := result.Failures[0]; failure.Reason != v1alpha1.ReasonPermissionLost || !strings.HasPrefix(failure.Message, want) {
				t.Errorf("failure = %+v", failure)
			}
			if writes, dry := written(s.cluster.TakeRequests()); len(writes)+len(dry) > 0 {
				t.Errorf("writes = %q, dry runs = %q", writes, dry)
			}
			s.rights.Lose()
			s.sync()
		})
	}
}

// TestRightsOnTheGatewayAPI has jane, whose role edit does not include the Gateway API, request a sync that would copy a route.
func TestRightsOnTheGatewayAPI(t *testing.T) {
	s := newFixture(t)
	s.cluster.HasGatewayAPI = true
	s.environment.Spec.Adapt.IngressHosts.Type = v1alpha1.IngressHostsAsSource
	s.put("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}")
	s.put(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: web}, spec: {
		parentRefs: [{name: shared, namespace: infra}],
		rules: [{backendRefs: [{name: web}]}]}}`)
	s.rights.Lose("create httproutes " + environmenttest.Target)
	s.cluster.TakeRequests()
	result, err := s.runner().Run(t.Context(), s.request())
	if err != nil || result.Complete || len(result.Failures) != 1 {
		t.Fatalf("%v: %+v", err, result)
	}
	failure := result.Failures[0]
	if failure.Reason != v1alpha1.ReasonPermissionLost || failure.Type != "HTTPRoute" ||
		!strings.HasPrefix(failure.Message, `Failed to create HTTPRoute 'web' of shop-alice - user "jane" may not `) ||
		!strings.HasSuffix(failure.Message, ", or set spec.adapt.ingressHosts.type to Omit") {
		t.Errorf("failure = %+v", failure)
	}
	if writes, dry := written(s.cluster.TakeRequests()); len(writes)+len(dry) > 0 {
		t.Errorf("writes = %q, dry runs = %q", writes, dry)
	}
	s.rights.Lose()
	if result = s.sync(); !slices.Contains(lines(result), "Added HTTPRoute web") {
		t.Errorf("with the permission: written %q", lines(result))
	}
}
