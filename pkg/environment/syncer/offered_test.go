// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"cmp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

var theWeb = v1alpha1.WorkloadReference{Kind: v1alpha1.WorkloadDeployment, Name: "web"}

// of returns the Deployment web with an image.
func of(t *testing.T, image string) *unstructured.Unstructured {
	t.Helper()
	o := environmenttest.Object(t, strings.ReplaceAll(webWithAccount, "web:1", image))
	o.SetNamespace(environmenttest.Production)
	return o
}

// offers has the catalog offer an image, and returns the CatalogWorkload.
func (s *readerFixture) offers(revision int64, image string) *v1alpha1.CatalogWorkload {
	s.T.Helper()
	s.catalog.Status.Revision = revision
	return environmenttest.Offer(s.T, s.catalog, of(s.T, image))
}

// remember stores a revision.
func (s *readerFixture) remember(revision int64, record *v1alpha1.CatalogWorkload) {
	s.revisions.offered[revision] = map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord{theWeb: &record.Status}
}

func TestOffered(t *testing.T) {
	const record = "shop.deployment.web"
	for name, tt := range map[string]struct {
		do func(s *readerFixture)
		// revision is the requested revision.
		revision int64
		want     string
	}{
		"as it is": {do: func(*readerFixture) {}, want: "1: web:1"},
		"records that are ahead": {do: func(s *readerFixture) {
			offered := s.offers(1, "web:1")
			s.remember(1, offered)
			fakeapi.Delete[*v1alpha1.CatalogWorkload](s.api, environmenttest.Teams, record)
			ahead := s.offers(2, "web:2")
			s.api.Put(ahead)
			s.catalog.Status.Revision = 1
			s.catalog.Status.Workloads[0].Hash = offered.Status.Hash
		}, want: "1: web:1"},
		"a deleted record": {do: func(s *readerFixture) {
			s.remember(1, s.offers(1, "web:1"))
			fakeapi.Delete[*v1alpha1.CatalogWorkload](s.api, environmenttest.Teams, record)
		}, want: "1: web:1"},
		"a deleted record that is not stored": {
			do: func(s *readerFixture) {
				fakeapi.Delete[*v1alpha1.CatalogWorkload](s.api, environmenttest.Teams, record)
			}, want: "what was offered is not kept: revision 1 of AppCatalog teams/shop",
		},
		"an earlier revision": {do: func(s *readerFixture) {
			s.remember(7, s.offers(7, "web:7"))
			s.catalog.Status.Revision = 9
		}, revision: 7, want: "7: web:7"},
		"a revision that is not kept": {
			do: func(*readerFixture) {}, revision: 7, want: "what was offered is not kept: revision 7 of AppCatalog teams/shop",
		},
		"patches of the catalog": {do: func(s *readerFixture) {
			offered := s.offers(1, "web:1")
			offered.Status.Rendered = &runtime.RawExtension{Raw: s.offers(1, "web:patched").Status.Manifest.Raw}
			offered.Status.Hash = s.catalog.Status.Workloads[0].Hash
			fakeapi.Delete[*v1alpha1.CatalogWorkload](s.api, environmenttest.Teams, record)
			s.api.Put(offered)
		}, want: "1: web:patched"},
		"too large for a record": {do: func(s *readerFixture) { s.tooLarge(record) }, want: "1: web:1"},
		"too large, and another in the source": {
			do:   func(s *readerFixture) { s.tooLarge(record); s.Put(of(s.T, "web:2")) },
			want: "read Deployment web of AppCatalog teams/shop: it is too large to be kept, and in production it is another by now",
		},
		"too large, and deleted": {
			do:   func(s *readerFixture) { s.tooLarge(record); s.Drop("deployments", environmenttest.Production, "web") },
			want: "read Deployment web of AppCatalog teams/shop: it is too large to be kept, and production does not have it any more",
		},
		"never seen": {do: func(s *readerFixture) {
			fakeapi.Delete[*v1alpha1.CatalogWorkload](s.api, environmenttest.Teams, record)
			s.catalog.Status.Workloads = []v1alpha1.CatalogEntry{{Kind: theWeb.Kind, Name: theWeb.Name, Missing: true}}
		}, want: "1:"},
		"of an earlier catalog": {
			do:   func(s *readerFixture) { s.catalog.UID = "another" },
			want: "what was offered is not kept: revision 1 of AppCatalog teams/shop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newReaderFixture(t, environmenttest.Object(t, webWithAccount))
			tt.do(s)
			request := s.request()
			request.Revision = tt.revision
			input, err := s.read(request)
			if err != nil {
				if !strings.HasSuffix(err.Error(), tt.want) {
					t.Error(err)
				}
				return
			}
			if got := images(input.Revision, input.Workloads); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// tooLarge removes the manifest from the record, as for one that is too large.
func (s *readerFixture) tooLarge(record string) {
	s.T.Helper()
	offered := s.offers(1, "web:1")
	offered.Status.Manifest = nil
	fakeapi.Delete[*v1alpha1.CatalogWorkload](s.api, environmenttest.Teams, record)
	s.api.Put(offered)
}

// images returns the revision and the images of workloads.
func images(revision int64, workloads []*unstructured.Unstructured) string {
	text := strconv.FormatInt(revision, 10) + ":"
	for _, workload := range workloads {
		containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
		text += " " + containers[0].(map[string]any)["image"].(string)
	}
	return text
}

func TestBefore(t *testing.T) {
	branch := func(e *v1alpha1.Environment) {
		e.Spec.Type, e.Spec.BranchWorkloads = v1alpha1.EnvironmentBranch, []v1alpha1.WorkloadReference{theWeb}
		e.Spec.Patches = []v1alpha1.Patch{
			{Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: v1alpha1.PatchMerge, Patch: "{spec: {paused: true}}"},
		}
		e.Status.AppliedRevision = 1
	}
	for name, tt := range map[string]struct {
		do   func(e *v1alpha1.Environment)
		want string
	}{
		"a Branch with patches":        {do: func(*v1alpha1.Environment) {}, want: "1: web:1"},
		"one without":                  {do: func(e *v1alpha1.Environment) { e.Spec.Patches = nil }},
		"one with another workload":    {do: func(e *v1alpha1.Environment) { e.Spec.BranchWorkloads[0].Name = "api" }},
		"one that has the newest":      {do: func(e *v1alpha1.Environment) { e.Status.AppliedRevision = 2 }},
		"one that has nothing yet":     {do: func(e *v1alpha1.Environment) { e.Status.AppliedRevision = 0 }},
		"one with an unknown revision": {do: func(e *v1alpha1.Environment) { e.Status.AppliedRevision = 7 }},
		"an environment of all of it":  {do: func(e *v1alpha1.Environment) { e.Spec.Type = v1alpha1.EnvironmentShared }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newReaderFixture(t, of(t, "web:1"))
			s.remember(1, s.offers(1, "web:1"))
			s.remember(2, s.offers(2, "web:2"))
			branch(s.environment)
			tt.do(s.environment)
			if got := images(1, s.input(s.request()).Previous); got != cmp.Or(tt.want, "1:") {
				t.Errorf("previous image = %s, want %s", got, cmp.Or(tt.want, "nothing"))
			}
		})
	}
}
