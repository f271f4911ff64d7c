// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// store has the records that get returns.
type store map[string]*v1alpha1.SyncStatus

var errNotFound = apierrors.NewNotFound(v1alpha1.Resource("syncstatuses"), "record")

func (s store) get(name string) (*v1alpha1.SyncStatus, error) {
	if record, ok := s[name]; ok {
		return record, nil
	}
	return nil, errNotFound
}

func (s store) put(name string, spec v1alpha1.SyncStatusSpec) {
	record := &v1alpha1.SyncStatus{Spec: spec}
	record.Name = name
	s[name] = record
}

func TestNames(t *testing.T) {
	shape := regexp.MustCompile(`^shop-[bcdfghjklmnpqrstvwxz2456789]{5}$`)
	names := syncstatus.Names(spec(catalog))
	seen := map[string]bool{}
	for _, name := range names {
		if !shape.MatchString(name) || seen[name] {
			t.Errorf("an invalid or duplicate name: %v", names)
		}
		seen[name] = true
	}
	if diff := cmp.Diff(names, syncstatus.Names(spec(catalog))); diff != "" {
		t.Errorf("the names differ in the second call:\n%s", diff)
	}
	long := spec(catalog)
	long.Subject.Name = strings.Repeat("a", 63)
	if problems := utilvalidation.IsDNS1123Subdomain(syncstatus.Names(long)[0]); len(problems) > 0 {
		t.Errorf("the record of the longest subject has an invalid name: %v", problems)
	}
}

// TestNamesDependOnEverything checks that each part of the spec changes the name.
func TestNamesDependOnEverything(t *testing.T) {
	base := spec(environment)
	tests := map[string]func(*v1alpha1.SyncStatusSpec){
		"type":  func(s *v1alpha1.SyncStatusSpec) { s.Type = dependency },
		"kind":  func(s *v1alpha1.SyncStatusSpec) { s.Subject.Kind = v1alpha1.SubjectAppCatalog },
		"uid":   func(s *v1alpha1.SyncStatusSpec) { s.Subject.UID = "1235" },
		"batch": func(s *v1alpha1.SyncStatusSpec) { s.Batch = "b2" },
		"the boundary between parts": func(s *v1alpha1.SyncStatusSpec) {
			s.Subject.UID, s.Batch = base.Subject.UID+types.UID(base.Batch[:1]), base.Batch[1:]
		},
	}
	for name, change := range tests {
		other := base
		change(&other)
		if syncstatus.Names(base)[0] == syncstatus.Names(other)[0] {
			t.Errorf("another %s has the same name", name)
		}
	}
}

func TestFind(t *testing.T) {
	names := syncstatus.Names(spec(catalog))
	other := spec(catalog)
	other.Batch = "b2"
	tests := []struct {
		name      string
		there     store
		wantFound bool
		wantName  string
	}{
		{"no record exists", store{}, false, names[0]},
		{"the record exists", func() store { s := store{}; s.put(names[0], spec(catalog)); return s }(), true, names[0]},
		{"another batch has the name", func() store { s := store{}; s.put(names[0], other); return s }(), false, names[1]},
		{"the record had to take the third name, and the first is free again", func() store {
			s := store{}
			s.put(names[1], other)
			s.put(names[2], spec(catalog))
			return s
		}(), true, names[2]},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found, name, err := syncstatus.Find(spec(catalog), test.there.get)
			if err != nil {
				t.Fatal(err)
			}
			if (found != nil) != test.wantFound || name != test.wantName {
				t.Errorf("want %s, found %v; got %s, found %v", test.wantName, test.wantFound, name, found)
			}
		})
	}
}

func TestFindFails(t *testing.T) {
	full := store{}
	for i, name := range syncstatus.Names(spec(catalog)) {
		other := spec(catalog)
		other.Batch = fmt.Sprint("other", i)
		full.put(name, other)
	}
	if _, _, err := syncstatus.Find(spec(catalog), full.get); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("want an error that all names are taken, got %v", err)
	}
	down := errors.New("the store is down")
	_, _, err := syncstatus.Find(spec(catalog), func(string) (*v1alpha1.SyncStatus, error) { return nil, down })
	if !errors.Is(err, down) {
		t.Errorf("want %v, got %v", down, err)
	}
}

// TestManyBatches has a record every half minute for three days. Each batch must get a different name, although some first choices are
// taken.
func TestManyBatches(t *testing.T) {
	taken := store{}
	one := spec(catalog)
	second := 0
	for i := range 10000 {
		one.Batch = fmt.Sprint(i)
		_, name, err := syncstatus.Find(one, taken.get)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := taken[name]; ok {
			t.Fatalf("%s has two batches", name)
		}
		if name != syncstatus.Names(one)[0] {
			second++
		}
		taken.put(name, one)
	}
	if second == 0 {
		t.Error("no first choice was taken, so the test checks nothing")
	}
}

func TestLabels(t *testing.T) {
	for of, want := range map[v1alpha1.SyncType]map[string]string{
		catalog:     {"configbutler.ai/catalog": "shop", "configbutler.ai/sync-type": "Catalog"},
		environment: {"configbutler.ai/environment": "shop", "configbutler.ai/sync-type": "Environment"},
		dependency:  {"configbutler.ai/environment": "shop", "configbutler.ai/sync-type": "Dependency"},
	} {
		record, err := create(of, stepTo(syncstatus.InitialStates(of)[0], "jane", began))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, record.Labels); diff != "" {
			t.Errorf("wrong labels (-want +got):\n%s", diff)
		}
		if record.Name != syncstatus.Names(spec(of))[0] || record.Namespace != "teams" {
			t.Errorf("wrong name: %s/%s", record.Namespace, record.Name)
		}
	}
}

func TestEditBatch(t *testing.T) {
	if syncstatus.EditBatch(3) == syncstatus.EditBatch(13) || !syncstatus.IsEdit(syncstatus.EditBatch(3)) || syncstatus.IsEdit("b1") {
		t.Errorf("the batch %s", syncstatus.EditBatch(3))
	}
}
