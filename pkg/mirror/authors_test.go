// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

// reports are Facts that the test tells.
type reports struct {
	followed chan struct{}
	told     func([]attribution.Fact, bool)
}

var _ Facts = &reports{}

func newReports() *reports { return &reports{followed: make(chan struct{})} }

func (r *reports) Follow(ctx context.Context, told func([]attribution.Fact, bool)) {
	told(nil, true)
	r.told = told
	close(r.followed)
	<-ctx.Done()
}

func (r *reports) Forget(...types.UID) {}

// tell returns when the facts are known.
func (r *reports) tell(facts ...attribution.Fact) {
	<-r.followed
	r.told(facts, false)
}

func contentHash(content []byte) string { return fmt.Sprintf("%x", content) }

// put lets a user create an object, of which the signals tell. The user's name is that of the object.
func (s *stage) put(r *reports, name string, signals ...attribution.Signal) {
	s.t.Helper()
	object := configMap(name)
	next := newCluster()
	next.put(object, "1")
	fact := attribution.Fact{
		Operation: v1alpha1.OperationCreate, Resource: object.Resource, Namespace: object.Namespace, Name: name, UID: types.UID(name),
		Begun: time.Now(), Actor: attribution.Actor{Username: name},
	}
	var managers []metav1.ManagedFieldsEntry
	for _, signal := range signals {
		fact.Signal, fact.ID = signal, name+string(signal)
		switch signal {
		case attribution.Audit:
			s.cluster.mu.Lock()
			fact.After = strconv.Itoa(s.cluster.version + 1)
			s.cluster.mu.Unlock()
			fact.Ended = time.Now()
			r.tell(fact)
		case attribution.Admission:
			fact.Content = contentHash(next.files[object].content)
			r.tell(fact)
		case attribution.ManagedFields:
			managers = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate}}
		}
	}
	s.cluster.put(object, "1", func(object *unstructured.Unstructured) {
		object.SetUID(types.UID(name))
		object.SetManagedFields(managers)
	})
}

func TestChangesAreCountedByWhatToldTheirAuthor(t *testing.T) {
	r := newReports()
	s := newStage(t, func(s *stage) { s.facts, s.hash = r, contentHash })
	s.idle()
	s.put(r, "ann", attribution.Audit)
	s.put(r, "bob", attribution.Audit, attribution.Admission)
	s.put(r, "cid", attribution.Admission)
	s.put(r, "tool", attribution.ManagedFields)
	s.put(r, "nobody")
	s.mirrored()
	want := v1alpha1.AttributionCounts{Audit: 2, Admission: 1, ManagedFields: 1, Unknown: 1}
	eventually(t, "the counts", func() error {
		if got := s.record("main").Attribution; got != want {
			return fmt.Errorf("%+v instead of %+v", got, want)
		}
		return nil
	})
}
