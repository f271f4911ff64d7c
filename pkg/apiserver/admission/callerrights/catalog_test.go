// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// catalog shows the Deployment api of production to environments of the namespace teams.
func catalog(change ...func(*configbutler.AppCatalogSpec)) *configbutler.AppCatalog {
	catalog := &configbutler.AppCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "shop"},
		Spec: configbutler.AppCatalogSpec{
			SourceNamespace: "production",
			Workloads:       []configbutler.WorkloadReference{{Kind: configbutler.WorkloadDeployment, Name: "api"}},
			Ignore:          []configbutler.IgnoreRule{{Fields: []string{"/spec/replicas"}}},
			Secrets:         configbutler.CatalogSecretsRequester,
			AccessPolicy:    &configbutler.CatalogAccessPolicy{},
		},
	}
	for _, apply := range change {
		apply(&catalog.Spec)
	}
	return catalog
}

func shared(spec *configbutler.AppCatalogSpec) { spec.Secrets = configbutler.CatalogSecretsShared }

func andBatch(spec *configbutler.AppCatalogSpec) {
	spec.Workloads = append(spec.Workloads,
		configbutler.WorkloadReference{Kind: configbutler.WorkloadCronJob, Name: "report"},
		configbutler.WorkloadReference{Kind: configbutler.WorkloadDeployment, Name: "worker"})
}

func selecting(spec *configbutler.AppCatalogSpec) { spec.WorkloadSelector = &metav1.LabelSelector{} }

var (
	// besides is what every catalog shows.
	besides = []string{"list configmaps production", "list services production", "get secrets production"}
	// ofDeployments is what a catalog shows that names Deployments.
	ofDeployments = append([]string{"list deployments.apps production"}, besides...)
	// ofEveryKind is what a catalog shows that selects workloads.
	ofEveryKind = append([]string{
		"list cronjobs.batch production", "list daemonsets.apps production", "list deployments.apps production",
		"list jobs.batch production", "list replicasets.apps production", "list statefulsets.apps production",
	}, besides...)
)

func TestWhatACatalogShowsMustBeReadable(t *testing.T) {
	type spec = *configbutler.AppCatalogSpec
	tests := []struct {
		name string
		obj  *configbutler.AppCatalog
		old  *configbutler.AppCatalog
		asks []string
	}{
		{name: "workloads by name", obj: catalog(), asks: ofDeployments},
		{name: "of two kinds", obj: catalog(andBatch), asks: append([]string{"list cronjobs.batch production"}, ofDeployments...)},
		{name: "whatever a selector matches", obj: catalog(selecting), asks: ofEveryKind},
		{name: "Secrets shared from the start", obj: catalog(shared), asks: ofDeployments},

		{
			name: "another workload", asks: append([]string{"list cronjobs.batch production"}, ofDeployments...),
			obj: catalog(andBatch), old: catalog(),
		},
		{
			name: "a workload for another", asks: append([]string{"list jobs.batch production"}, besides...),
			obj: catalog(func(s spec) { s.Workloads[0].Kind = configbutler.WorkloadJob }), old: catalog(),
		},
		{name: "a selector", obj: catalog(selecting), old: catalog(), asks: ofEveryKind},
		{name: "Secrets shared", obj: catalog(shared), old: catalog(), asks: ofDeployments},
		{
			name: "fields that were left out", asks: ofDeployments,
			obj: catalog(func(s spec) { s.Ignore = nil }), old: catalog(),
		},
		{
			name: "a patch", asks: ofDeployments,
			obj: catalog(func(s spec) { s.Patches = []configbutler.Patch{{Patch: "spec: {}"}} }), old: catalog(),
		},
		{
			name: "what was only shown", asks: ofDeployments,
			obj: catalog(), old: catalog(func(s spec) { s.PreviewOnly = true }),
		},
		{
			name: "other readers", asks: ofDeployments,
			obj: catalog(func(s spec) { s.AccessPolicy.NamespacedRules.Mode = configbutler.AccessModeAllNamespaces }), old: catalog(),
		},

		{name: "nothing", obj: catalog(), old: catalog()},
		{
			name: "when and how long",
			obj: catalog(func(s spec) {
				s.PauseUntil, s.PreviewOnly = ptr.To(metav1.Unix(1, 0)), true
				s.PinnedRevision, s.HistoryLimit = ptr.To[int64](3), ptr.To[int32](5)
			}), old: catalog(),
		},
		{name: "a pause that ends", obj: catalog(), old: catalog(func(s spec) { s.PauseUntil = ptr.To(metav1.Unix(1, 0)) })},
		{name: "workloads taken out", obj: catalog(), old: catalog(andBatch)},
		{name: "Secrets shared no longer", obj: catalog(), old: catalog(shared)},
		{name: "one taken out and one put in", asks: besidesJobs(), old: catalog(andBatch), obj: catalog(func(s spec) {
			s.Workloads = append(s.Workloads, configbutler.WorkloadReference{Kind: configbutler.WorkloadJob, Name: "migrate"})
		})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			operation, old := admission.Create, runtime.Object(nil)
			if tt.old != nil {
				operation, old = admission.Update, tt.old
			}
			asked := request(tt.obj, old, operation, "")
			caller := &rbac{allowed: tt.asks}
			if err := plugin(t, caller, cluster()).Validate(t.Context(), asked, nil); err != nil {
				t.Errorf("refused although everything that it needs is allowed: %v", err)
			}
			if diff := cmp.Diff(tt.asks, caller.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			for i, permission := range tt.asks {
				some := &rbac{allowed: slices.Delete(slices.Clone(tt.asks), i, i+1)}
				if err := plugin(t, some, cluster()).Validate(t.Context(), asked, nil); !apierrors.IsForbidden(err) {
					t.Errorf("without %q: %v, want Forbidden", permission, err)
				}
			}
		})
	}
}

func besidesJobs() []string {
	return append([]string{"list deployments.apps production", "list jobs.batch production"}, besides...)
}

// A subresource has a permission of its own, and labels and status show nothing.
func TestACatalogsMetadataNeedsNoRights(t *testing.T) {
	labelled := catalog()
	labelled.Labels = map[string]string{"a": "b"}
	labelled.Status.Revision = 7
	caller := &rbac{}
	for _, asked := range []admission.Attributes{
		request(labelled, catalog(), admission.Update, ""),
		request(catalog(andBatch), catalog(), admission.Update, "status"),
		request(&configbutler.CatalogSync{}, nil, admission.Create, "sync"),
		request(&configbutler.Rollback{}, nil, admission.Create, "rollback"),
	} {
		if err := plugin(t, caller, cluster()).Validate(t.Context(), asked, nil); err != nil {
			t.Errorf("%s of %T at %q: %v", asked.GetOperation(), asked.GetObject(), asked.GetSubresource(), err)
		}
	}
	if len(caller.asked) > 0 {
		t.Errorf("asked %q", caller.asked)
	}
}

func TestRefusalOfACatalogNamesThePermissionAndTheWayOut(t *testing.T) {
	tests := []struct {
		name    string
		obj     *configbutler.AppCatalog
		allowed []string
		want    string
	}{
		{
			"a kind that is named", catalog(), besides,
			`user "jane" cannot list deployments.apps in the namespace production, which the server would do on their behalf: ` +
				`ask for a Role in the namespace production that allows list on resource "deployments" in API group "apps", ` +
				`or leave workloads of kind Deployment out of spec.workloads`,
		},
		{
			"a kind that a selector can match", catalog(selecting), ofEveryKind[1:],
			`user "jane" cannot list cronjobs.batch in the namespace production, which the server would do on their behalf: ` +
				`ask for a Role in the namespace production that allows list on resource "cronjobs" in API group "batch", ` +
				`or name workloads of kinds that you may read in spec.workloads and leave out spec.workloadSelector`,
		},
		{
			"Secrets", catalog(shared), ofDeployments[:3],
			`user "jane" cannot get secrets in the namespace production, which the server would do on their behalf: ` +
				`ask for a Role in the namespace production that allows get on resource "secrets" in API group "", ` +
				`or leave the catalog to a user who may read the source`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := plugin(t, &rbac{allowed: tt.allowed}, cluster()).
				Validate(t.Context(), request(tt.obj, nil, admission.Create, ""), nil)
			if err == nil || !strings.HasSuffix(err.Error(), "is forbidden: "+tt.want+afterGrant) {
				t.Errorf("refusal = %v\nwant it to end in %s", err, tt.want)
			}
		})
	}
}

// TestRefusalOfACatalogIsComplete checks that the error lists all missing permissions at once.
func TestRefusalOfACatalogIsComplete(t *testing.T) {
	err := plugin(t, &rbac{}, cluster()).Validate(t.Context(), request(catalog(selecting), nil, admission.Create, ""), nil)
	if !apierrors.IsForbidden(err) || strings.Count(err.Error(), `user "jane" cannot`) != len(ofEveryKind) {
		t.Errorf("refusal = %v\nwant %d permissions in it", err, len(ofEveryKind))
	}
}
