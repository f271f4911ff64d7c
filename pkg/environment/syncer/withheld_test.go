// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
)

// TestWhatTheEditorMayNotReadIsNotRead has a catalog editor who has lost permissions, or is unknown.
func TestWhatTheEditorMayNotReadIsNotRead(t *testing.T) {
	const (
		lost    = `user "eve" may not %s in the namespace production: grant that again`
		unknown = "it is not known who shares them: let a user who may get secrets in the namespace production " +
			"set spec.previewOnly of AppCatalog teams/shop to true and back"
		unsure = `it is not known whether user "eve" may still %s in the namespace production: no answer`
	)
	requester := func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Secrets = v1alpha1.CatalogSecretsRequester }
	noEditor := func(catalog *v1alpha1.AppCatalog) { catalog.Status.EditedBy = nil }
	because := func(reason, format, right string) plan.Denial {
		return plan.Denial{Reason: reason, Message: strings.Replace(format, "%s", right, 1)}
	}
	const permissionLost, unreachable = v1alpha1.ReasonPermissionLost, v1alpha1.ReasonUnreachable
	for name, tt := range map[string]struct {
		edit []func(*v1alpha1.AppCatalog)
		lost []string
		fail error
		want plan.Denied
	}{
		"nothing is lost": {want: plan.Denied{}},
		"Secrets": {lost: []string{"get secrets production"}, want: plan.Denied{
			v1alpha1.DependencySecret: because(permissionLost, lost, "get secrets"),
		}},
		"ConfigMaps and Services": {lost: []string{"list configmaps production", "list services production"}, want: plan.Denied{
			v1alpha1.DependencyConfigMap: because(permissionLost, lost, "list configmaps"),
			v1alpha1.DependencyService:   because(permissionLost, lost, "list services"),
		}},
		"Secrets that are not shared": {
			edit: []func(*v1alpha1.AppCatalog){requester}, lost: []string{"get secrets production"}, want: plan.Denied{},
		},
		"an unknown editor": {edit: []func(*v1alpha1.AppCatalog){noEditor}, want: plan.Denied{
			v1alpha1.DependencySecret: because(permissionLost, unknown, ""),
		}},
		"an unknown editor of what is not shared": {edit: []func(*v1alpha1.AppCatalog){noEditor, requester}, want: plan.Denied{}},
		"no answer": {fail: errors.New("no answer"), want: plan.Denied{
			v1alpha1.DependencyConfigMap: because(unreachable, unsure, "list configmaps"),
			v1alpha1.DependencySecret:    because(unreachable, unsure, "get secrets"),
			v1alpha1.DependencyService:   because(unreachable, unsure, "list services"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			environmenttest.Share(s.catalog)
			for _, edit := range tt.edit {
				edit(s.catalog)
			}
			s.rights.Lose(tt.lost...)
			s.rights.Fail(tt.fail)
			input := s.input(s.request())
			if diff := cmp.Diff(tt.want, input.Denied); diff != "" {
				t.Errorf("withheld (-want +got):\n%s", diff)
			}
			requests := s.TakeRequests()
			for of, resource := range map[v1alpha1.DependencyType]string{
				v1alpha1.DependencyConfigMap: "configmaps", v1alpha1.DependencySecret: "secrets", v1alpha1.DependencyService: "services",
			} {
				read := slices.ContainsFunc(requests, func(request string) bool {
					return strings.HasPrefix(request, "GET "+environmenttest.Production+"/"+resource)
				})
				if _, withheld := tt.want[of]; read == withheld {
					t.Errorf("%s of the source were read: %v", resource, read)
				}
			}
		})
	}
}

// TestWhatTheRequesterMayNotReadIsNotRead has the user who requested a sync lose permissions that the sync needs, or needs only since the
// request.
func TestWhatTheRequesterMayNotReadIsNotRead(t *testing.T) {
	jane := access.Requesting(&v1alpha1.AutomatedBy{Username: "jane", Groups: []string{"shop-team"}})
	requester := func(s *readerFixture) { s.catalog.Spec.Secrets = v1alpha1.CatalogSecretsRequester }
	patched := func(words string) func(*readerFixture) {
		return func(s *readerFixture) {
			s.environment.Spec.Patches = []v1alpha1.Patch{{
				Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: v1alpha1.PatchStrategicMerge,
				Patch: "{spec: {template: {spec: {containers: [{name: web, envFrom: [{" + words + ": {name: settings, optional: true}}]}]}}}}",
			}}
		}
	}
	for name, tt := range map[string]struct {
		do        func(*readerFixture)
		requester *access.Holder
		want      []v1alpha1.DependencyType
		// byConsent is set if Secrets are copied although the requester may not read them.
		byConsent bool
	}{
		"shared Secrets":                  {do: func(*readerFixture) {}, requester: &jane, byConsent: true},
		"Secrets that are shared no more": {do: requester, requester: &jane, want: []v1alpha1.DependencyType{v1alpha1.DependencySecret}},
		"Secrets that patches name": {
			do: patched("secretRef"), requester: &jane, want: []v1alpha1.DependencyType{v1alpha1.DependencySecret},
		},
		"ConfigMaps that patches name": {
			do: patched("configMapRef"), requester: &jane, want: []v1alpha1.DependencyType{v1alpha1.DependencyConfigMap}, byConsent: true,
		},
		"Secrets that are included": {
			do: included("v1", "Secret", "extra"), requester: &jane, want: []v1alpha1.DependencyType{v1alpha1.DependencySecret},
		},
		"ConfigMaps that are included": {
			do: included("v1", "ConfigMap", "extra"), requester: &jane, want: []v1alpha1.DependencyType{v1alpha1.DependencyConfigMap}, byConsent: true,
		},
		"a plan, which copies nothing": {do: requester},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			environmenttest.Share(s.catalog)
			tt.do(s)
			s.rights.Lose(`user "jane": get secrets production`, `user "jane": get configmaps production`)
			request := s.request()
			request.Requester = tt.requester
			input := s.input(request)
			if got := slices.Sorted(maps.Keys(input.Denied)); !slices.Equal(got, tt.want) {
				t.Errorf("withheld = %q, want %q", got, tt.want)
			}
			if input.SecretsByConsent != tt.byConsent {
				t.Errorf("Secrets by consent: %t, want %t", input.SecretsByConsent, tt.byConsent)
			}
			for _, why := range input.Denied {
				if why.Reason != v1alpha1.ReasonPermissionLost || !strings.HasPrefix(why.Message, `user "jane" may not get `) {
					t.Errorf("%+v", why)
				}
			}
		})
	}
}

// included adds an object to the included ones of the environment.
func included(apiVersion, kind, name string) func(*readerFixture) {
	return func(s *readerFixture) {
		s.environment.Spec.Include = append(s.environment.Spec.Include, v1alpha1.IncludedObject{APIVersion: apiVersion, Kind: kind, Name: name})
	}
}

// TestCustomResourcesThatAreIncluded checks that only included custom resources that can be copied, and that the requester may read, are
// read.
func TestCustomResourcesThatAreIncluded(t *testing.T) {
	jane := access.Requesting(&v1alpha1.AutomatedBy{Username: "jane"})
	for name, tt := range map[string]struct {
		kind, apiVersion string
		lost             string
		answer           string
		why              string
	}{
		"may be read":     {kind: "Widget"},
		"may not be read": {kind: "Widget", lost: "get widgets production", why: `user "jane" may not get widgets.example.com`},
		"not by the server": {
			kind: "Widget", answer: "GET production/widgets/extra", why: "the server may not get it in production and shop-alice",
		},
		"not by the server over there": {
			kind: "Widget", answer: "GET shop-alice/widgets/extra", why: "the server may not get it in production and shop-alice",
		},
		"of no kind": {kind: "Gadget", why: "the cluster has no kind Gadget in example.com/v1"},
		"of a kind of another name": {
			kind: "Oddity", why: "the resource of the kind Oddity is things.example.com, and only oddities.example.com could be copied",
		},
		"in no namespace": {kind: "Planet", why: "objects of the kind Planet are in no namespace"},
		"of a platform": {
			kind: "App", apiVersion: "catalog.cattle.io/v1", why: "the cluster has no kind App in catalog.cattle.io/v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			apiVersion := "example.com/v1"
			if tt.apiVersion != "" {
				apiVersion = tt.apiVersion
			}
			included(apiVersion, tt.kind, "extra")(s)
			s.produce("{apiVersion: " + apiVersion + ", kind: " + tt.kind + ", metadata: {name: extra}, spec: {size: 1}}")
			s.rights.Lose(tt.lost)
			s.Answer(func(request string) *metav1.Status {
				if request == tt.answer {
					return environmenttest.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")
				}
				return nil
			})
			request := s.request()
			request.Requester = &jane
			input := s.input(request)
			key := plan.KeyOfIncluded(s.environment.Spec.Include[0])
			is := slices.Contains(names(input.Source), key.String())
			if why := input.DeniedObjects[key]; is != (tt.why == "") || !strings.HasPrefix(why.Message, tt.why) || is && why.Message != "" {
				t.Errorf("read = %v, withheld = %+v", is, why)
			}
		})
	}
}

// TestKindsInNoNamespace includes an object of a cluster-scoped kind, which was applied while the kind was namespaced. API servers respond
// to the namespaced path with 404.
func TestKindsInNoNamespace(t *testing.T) {
	s := shop(t)
	included("example.com/v1", "Planet", "extra")(s)
	planet := environmenttest.Object(t, "{apiVersion: example.com/v1, kind: Planet, metadata: {name: applied, namespace: shop-alice}}")
	err := s.copies.Put(t.Context(), copies.Environment{UID: s.environment.UID}, copies.Change{
		Revision: 1, Applied: []*unstructured.Unstructured{planet},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Answer(func(request string) *metav1.Status {
		if strings.Contains(request, "/planets/") {
			return &metav1.Status{Code: http.StatusNotFound}
		}
		return nil
	})
	input := s.input(s.request())
	why := input.DeniedObjects[plan.KeyOfIncluded(s.environment.Spec.Include[0])]
	if want := "objects of the kind Planet are in no namespace"; len(input.DeniedObjects) != 1 || why.Message != want {
		t.Errorf("withheld = %v", input.DeniedObjects)
	}
}

// produce puts an object into the source.
func (s *readerFixture) produce(text string) {
	s.T.Helper()
	o := environmenttest.Object(s.T, text)
	o.SetNamespace(environmenttest.Production)
	s.Put(o)
}
