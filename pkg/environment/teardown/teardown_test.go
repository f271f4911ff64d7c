// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package teardown_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/test/testkit"
)

const (
	web      = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}"
	account  = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}"
	settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"
	database = "{apiVersion: v1, kind: Secret, metadata: {name: database}}"
	service  = "{apiVersion: v1, kind: Service, metadata: {name: web}}"
	scaler   = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}}"
	notes    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}}"
)

func TestDeletesInReverseOrder(t *testing.T) {
	s := newFixture(t)
	for _, text := range []string{account, settings, database, service, web, scaler} {
		s.mine(text)
	}
	s.removes()
	s.isDeleted()
	want := []string{
		"DELETE shop-alice/horizontalpodautoscalers/web", "DELETE shop-alice/deployments/web", "DELETE shop-alice/services/web",
		"DELETE shop-alice/secrets/database", "DELETE shop-alice/configmaps/settings", "DELETE shop-alice/serviceaccounts/web",
		"DELETE namespaces/shop-alice",
	}
	if diff := cmp.Diff(want, s.written()); diff != "" {
		t.Error(diff)
	}
	s.removes()
	if got := s.TakeRequests(); !slices.Equal(got, []string{"GET namespaces/shop-alice"}) {
		t.Errorf("requests after everything was deleted: %q", got)
	}
}

// TestDeletesCustomResources deletes objects of the kinds that the environment may have written. Neither a permission that the server has
// lost nor a cluster-scoped kind, for which API servers respond with 404, blocks the deletion of the environment.
func TestDeletesCustomResources(t *testing.T) {
	const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: web}}"
	kinds := []schema.GroupKind{
		{Group: "example.com", Kind: "Widget"}, {Group: "example.com", Kind: "Planet"}, {Group: "example.com", Kind: "Gone"},
	}
	s := newFixture(t)
	s.mine(widget)
	s.mine(web)
	s.theirs(strings.Replace(widget, "name: web", "name: theirs", 1))
	mayList := false
	s.Answer(func(request string) *metav1.Status {
		switch {
		case request == "GET shop-alice/widgets" && !mayList:
			return environmenttest.Status(403, metav1.StatusReasonForbidden, "no")
		case request == "GET shop-alice/planets":
			return &metav1.Status{Code: 404}
		}
		return nil
	})
	if left, err := s.remover.Remove(t.Context(), s.environment, kinds...); err != nil || len(left) > 0 {
		t.Errorf("without permission: left %q, %v", left, err)
	}
	mayList = true
	s.mine("{apiVersion: v1, kind: Namespace, metadata: {name: shop-alice}}")
	if left, err := s.remover.Remove(t.Context(), s.environment, kinds...); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	if got := s.Names(environmenttest.Target); !slices.Equal(got, []string{"widgets/theirs"}) {
		t.Errorf("objects = %q", got)
	}
}

func TestForeignObjectsStay(t *testing.T) {
	for name, put := range map[string]func(s *fixture){
		"of another owner":                          func(s *fixture) { s.theirs(notes) },
		"of another environment of the name":        func(s *fixture) { s.ofEnvironment(notes, "another") },
		"of one of the name in another namespace":   func(s *fixture) { s.mine(withLabel(notes, v1alpha1.LabelEnvironmentNamespace, "others")) },
		"of the Branch in the target":               func(s *fixture) { s.mine(withLabel(notes, v1alpha1.LabelEnvironment, "alice-fix")) },
		"made by a controller of what we have made": func(s *fixture) { s.mine(strings.Replace(notes, "}", controlled, 1)); s.theirs(claim) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.mine(web)
			put(s)
			before := slices.DeleteFunc(s.Names(environmenttest.Target), func(name string) bool { return name == "deployments/web" })
			s.removes()
			s.has(before...)
			if len(s.stays) != 1 {
				t.Errorf("reasons = %q", s.stays)
			}
		})
	}
}

const (
	controlled = ", ownerReferences: [{apiVersion: v1, kind: Service, name: web, uid: x, controller: true}]}"
	claim      = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}"
)

func withLabel(text, key, value string) string {
	return strings.Replace(text, "name: notes", "name: notes, labels: {"+key+": "+value+"}", 1)
}

func TestNamespaceStays(t *testing.T) {
	for name, test := range map[string]struct {
		put  func(s *fixture)
		want string
	}{
		"with a claim": {func(s *fixture) { s.theirs(claim) }, "PersistentVolumeClaim data is not of this environment"},
		"with many things": {
			func(s *fixture) {
				for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"} {
					s.theirs("{apiVersion: v1, kind: " + kind + ", metadata: {name: notes}}")
				}
			},
			"ConfigMap notes is not of this environment; PersistentVolumeClaim notes is not of this environment; " +
				"Secret notes is not of this environment; and 1 more",
		},
		"where the server may not look": {
			func(s *fixture) {
				s.Answer(func(request string) *metav1.Status {
					if request == "GET shop-alice/persistentvolumeclaims" {
						return environmenttest.Status(403, metav1.StatusReasonForbidden, "no")
					}
					return nil
				})
			},
			"the server may not list persistentvolumeclaims, of which there may be some",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			test.put(s)
			s.removes()
			s.has(s.Names(environmenttest.Target)...)
			if want := []string{"Namespace shop-alice stays: " + test.want}; !slices.Equal(s.stays, want) {
				t.Errorf("reasons = %q, want %q", s.stays, want)
			}
		})
	}
}

func TestStandardObjectsDoNotKeepNamespace(t *testing.T) {
	s := newFixture(t)
	for _, text := range []string{
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}",
		"{apiVersion: v1, kind: Event, metadata: {name: web.1}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: made, ownerReferences: [{apiVersion: v1, kind: Service, name: web, uid: x}]}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: going, deletionTimestamp: '2026-11-21T00:00:00Z'}}",
	} {
		s.theirs(text)
	}
	s.removes()
	s.isDeleted()
}

func TestForeignNamespaceStays(t *testing.T) {
	s := newFixture(t)
	s.Drop("namespaces", "", environmenttest.Target)
	s.theirs("{apiVersion: v1, kind: Namespace, metadata: {name: shop-alice}}")
	s.mine(settings)
	s.removes()
	s.has()
	if len(s.stays) > 0 {
		t.Errorf("reasons = %q", s.stays)
	}
}

func TestOrphansStay(t *testing.T) {
	s := newFixture(t)
	s.environment.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan
	s.mine(settings)
	s.removes()
	s.has("configmaps/settings")
	if got := s.TakeRequests(); len(got) > 0 {
		t.Errorf("requests = %q", got)
	}
}

func TestTerminatingTarget(t *testing.T) {
	s := newFixture(t)
	s.theirs("{apiVersion: v1, kind: Namespace, metadata: {name: shop-alice, deletionTimestamp: '2026-11-21T00:00:00Z'}}")
	s.mine(settings)
	s.removes()
	s.has("configmaps/settings")
}

func TestRemainingObjects(t *testing.T) {
	s := newFixture(t)
	s.mine(settings)
	s.mine(`{apiVersion: v1, kind: Service, metadata: {name: web, deletionTimestamp: "2026-11-21T00:00:00Z", finalizers: [cloud/balancer]}}`)
	s.mine(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, deletionTimestamp: "2026-11-21T00:00:00Z", ` +
		`finalizers: [foregroundDeletion]}}`)
	left, err := s.remove()
	want := []string{
		"Deployment web is being deleted, with what it has started",
		"Service web is being deleted, and has the finalizers cloud/balancer",
	}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left %q, %v; want %q", left, err, want)
	}
	s.has("deployments/web", "services/web")
	s.Drop("deployments", environmenttest.Target, "web")
	s.Drop("services", environmenttest.Target, "web")
	s.removes()
	s.isDeleted()
}

// An object whose owner has changed since it was listed is not deleted.
func TestObjectsTakenOverStay(t *testing.T) {
	s := newFixture(t)
	s.mine(settings)
	s.mine(notes)
	s.Answer(func(request string) *metav1.Status {
		switch request {
		case "DELETE shop-alice/configmaps/settings":
			if s.Live("configmaps", environmenttest.Target, "settings").GetLabels() != nil {
				s.theirs(settings)
			}
		case "DELETE shop-alice/configmaps/notes":
			if s.Live("configmaps", environmenttest.Target, "notes").GetAnnotations() == nil {
				s.mine(strings.Replace(notes, "name: notes", "name: notes, annotations: {a: b}", 1))
			}
		}
		return nil
	})
	s.removes()
	s.has("configmaps/settings")
}

func TestRemovedTypes(t *testing.T) {
	s := newFixture(t)
	s.mine(settings)
	s.Answer(func(request string) *metav1.Status {
		if strings.Contains(request, "ingresses") {
			return environmenttest.Status(404, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		}
		return nil
	})
	s.removes()
	s.isDeleted()
}

func TestRefusals(t *testing.T) {
	s := newFixture(t)
	s.mine(web)
	s.mine(settings)
	s.mine(database)
	s.Answer(func(request string) *metav1.Status {
		if request == "DELETE shop-alice/secrets/database" || request == "DELETE shop-alice/deployments/web" {
			return environmenttest.Status(403, "hunter2", "hunter2 is a bad password")
		}
		return nil
	})
	_, err := s.remove()
	want := "remove what environment teams/alice wrote: delete Deployment web: hunter2 is a bad password\n" +
		"delete Secret database: the API server returns 403 Forbidden; its message may quote the Secret and is left out"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	s.has("deployments/web", "secrets/database")
}

// TestTypesUnknown checks that the namespace stays while an aggregated API is down, and the environment only for a limited time.
func TestTypesUnknown(t *testing.T) {
	const why = "the types of backup.example.com/v1, metrics.k8s.io/v1beta1 cannot be discovered; check the APIService"
	down := served{err: &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{
		{Group: "metrics.k8s.io", Version: "v1beta1"}: errors.New("the server is currently unable to handle the request"),
		{Group: "backup.example.com", Version: "v1"}:  errors.New("the server is currently unable to handle the request"),
	}}}
	for name, tt := range map[string]struct {
		put   string
		since time.Duration
		left  []string
		stays []string
	}{
		"at first":            {since: time.Second, left: []string{"Namespace shop-alice is not deleted yet: " + why}},
		"for a long time":     {since: time.Hour, stays: []string{"Namespace shop-alice stays: " + why}},
		"with another object": {put: notes, stays: []string{"Namespace shop-alice stays: ConfigMap notes is not of this environment; " + why}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.mine(settings)
			if tt.put != "" {
				s.theirs(tt.put)
			}
			s.environment.DeletionTimestamp = &metav1.Time{Time: testkit.Noon.Add(-tt.since)}
			s.remover.Discovery = down
			left, err := s.remove()
			if err != nil || !slices.Equal(left, tt.left) || !slices.Equal(s.stays, tt.stays) {
				t.Errorf("left %q, %v; the namespace stays: %q", left, err, s.stays)
			}
			if s.Live("namespaces", "", environmenttest.Target) == nil {
				t.Error("namespace was deleted")
			}
		})
	}
}

// TestDiscoveryFails checks that no reason for keeping the namespace is reported while the types are unknown.
func TestDiscoveryFails(t *testing.T) {
	s := newFixture(t)
	s.mine(settings)
	down := errors.New("the API server is down")
	s.remover.Discovery = served{err: down}
	if left, err := s.remove(); !errors.Is(err, down) || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
	s.has()
	s.remover.Discovery = served{}
	s.removes()
	s.isDeleted()
}
