// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/registry"
)

// recorder stores the recorded facts.
type recorder struct {
	mu    sync.Mutex
	facts []attribution.Fact
}

var _ registry.Recorder = &recorder{}

func (r *recorder) Enqueue(facts ...attribution.Fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts = append(r.facts, facts...)
}

// take returns the facts since the last call.
func (r *recorder) take() []attribution.Fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.facts
	r.facts = nil
	return taken
}

// recorded is storage whose facts are looked at.
type recorded struct {
	*testing.T
	storage  *registry.Storage
	recorder *recorder
}

func newRecorded(t *testing.T, change ...func(*registry.Config)) *recorded {
	t.Helper()
	r := &recorder{}
	change = append(change, func(c *registry.Config) { c.Recorder = r })
	return &recorded{T: t, storage: newStorage(t, change...), recorder: r}
}

// begun is when the requests of these tests arrive.
var begun = noon.Add(-time.Second)

// as is a request of a user, as the handlers of the API server prepare it.
func (r *recorded) as(name, verb, subresource string) context.Context {
	ctx := genericapirequest.WithUser(in(r.T), &user.DefaultInfo{
		Name: name, Groups: []string{"developers", user.AllAuthenticated},
		Extra: map[string][]string{"example.com/email": {name + "@example.com"}, "name": {"Dr. " + name}},
	})
	ctx = genericapirequest.WithReceivedTimestamp(ctx, begun)
	return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true, Verb: verb, Resource: "gitdestinations", Subresource: subresource, Namespace: namespace,
	})
}

func (r *recorded) create(ctx context.Context, obj *configbutler.GitDestination, dryRun ...string) (*configbutler.GitDestination, error) {
	created, err := r.storage.Endpoints["gitdestinations"].(creator).Create(ctx, obj, rest.ValidateAllObjectFunc,
		&metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return created.(*configbutler.GitDestination), nil
}

func (r *recorded) mustCreate(name string, finalizers ...string) *configbutler.GitDestination {
	r.Helper()
	obj := destination()
	obj.Name, obj.Finalizers = name, finalizers
	created, err := r.create(r.as("jane", "create", ""), obj)
	if err != nil {
		r.Fatal(err)
	}
	return created
}

// change sends an object through the verb update or patch; those that apply create what is missing.
func (r *recorded) change(
	ctx context.Context, endpoint string, obj *configbutler.GitDestination, apply bool, dryRun ...string,
) (*configbutler.GitDestination, error) {
	updated, _, err := r.storage.Endpoints[endpoint].(rest.Updater).Update(ctx, obj.Name, rest.DefaultUpdatedObjectInfo(obj),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, apply, &metav1.UpdateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return updated.(*configbutler.GitDestination), nil
}

func (r *recorded) remove(ctx context.Context, name string, dryRun ...string) error {
	_, _, err := r.storage.Endpoints["gitdestinations"].(rest.GracefulDeleter).Delete(ctx, name, rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{DryRun: dryRun})
	return err
}

func (r *recorded) removeAll(ctx context.Context) error {
	_, err := r.storage.Endpoints["gitdestinations"].(rest.CollectionDeleter).DeleteCollection(ctx, rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{}, &metainternalversion.ListOptions{})
	return err
}

func moved(obj *configbutler.GitDestination) *configbutler.GitDestination {
	changed := obj.DeepCopy()
	changed.Spec.BaseFolder += "/more"
	return changed
}

func TestFactOfAChange(t *testing.T) {
	r := newRecorded(t)
	created := r.mustCreate("dest")
	got := r.recorder.take()
	want := []attribution.Fact{{
		ID: got[0].ID, Signal: attribution.Audit, Operation: v1alpha1.OperationCreate,
		Group: "configbutler.ai", Resource: "gitdestinations", Namespace: namespace, Name: "dest",
		UID: created.UID, After: created.ResourceVersion, Begun: begun, Ended: noon,
		Actor: attribution.Actor{
			Username: "jane", Name: "Dr. jane", Email: "jane@example.com", Groups: []string{"developers", user.AllAuthenticated},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts of a creation (-want +got):\n%s", diff)
	}
	updated, err := r.change(r.as("joe", "update", ""), "gitdestinations", moved(created), false)
	if err != nil {
		t.Fatal(err)
	}
	again := r.recorder.take()
	if len(again) != 1 || again[0].After != updated.ResourceVersion || again[0].Actor.Username != "joe" || again[0].ID == got[0].ID {
		t.Errorf("facts of an update: %+v", again)
	}
}

// TestFactsAreThoseOfTheEvents makes changes, and compares their facts with the events of a watch.
func TestFactsAreThoseOfTheEvents(t *testing.T) {
	r := newRecorded(t)
	endpoint := r.storage.Endpoints["gitdestinations"]
	list, err := endpoint.(rest.Lister).List(in(t), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Without a resourceVersion, a watch begins with what exists when it is opened, which may be later.
	from := list.(*configbutler.GitDestinationList).ResourceVersion
	events, err := endpoint.(rest.Watcher).Watch(in(t), &metainternalversion.ListOptions{ResourceVersion: from})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	must := func(_ *configbutler.GitDestination, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	applied := destination()
	applied.Name = "applied"
	must(r.change(r.as("ann", "patch", ""), "gitdestinations", applied, true))
	plain := r.mustCreate("plain")
	r.mustCreate("held", "example.com/hold")
	must(r.change(r.as("joe", "update", ""), "gitdestinations", moved(plain), false))
	must(nil, r.remove(r.as("eve", "delete", ""), "plain"))
	must(nil, r.remove(r.as("eve", "delete", ""), "held"))
	must(nil, r.remove(r.as("later", "delete", ""), "held"))
	pending, err := r.storage.Endpoints["gitdestinations"].(rest.Getter).Get(in(t), "held", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	freed := pending.(*configbutler.GitDestination).DeepCopy()
	freed.Finalizers = nil
	must(r.change(r.as("controller", "update", ""), "gitdestinations", freed, false))
	r.mustCreate("last", "example.com/hold")
	must(nil, r.removeAll(r.as("bob", "deletecollection", "")))

	want := []string{
		"ADDED applied: CREATE ann", "ADDED plain: CREATE jane", "ADDED held: CREATE jane", "MODIFIED plain: UPDATE joe",
		"DELETED plain: DELETE eve", "MODIFIED held: DELETE eve, lasting", "DELETED held: UPDATE controller", "ADDED last: CREATE jane",
		"DELETED applied: DELETE bob", "MODIFIED last: DELETE bob, lasting",
	}
	got := explained(t, events, r.recorder.take())
	slices.Sort(got[len(got)-2:]) // those of the collection, which are deleted side by side
	slices.Sort(want[len(want)-2:])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events and their facts (-want +got):\n%s", diff)
	}
}

// explained finds the event of each fact, by the uid and the resourceVersion, and describes both.
func explained(t *testing.T, events watch.Interface, facts []attribution.Fact) (lines []string) {
	t.Helper()
	byVersion := map[string]attribution.Fact{}
	for _, fact := range facts {
		byVersion[string(fact.UID)+"@"+fact.After] = fact
	}
	for range facts {
		var event watch.Event
		select {
		case event = <-events.ResultChan():
		case <-time.After(2 * time.Minute):
			t.Fatalf("there are facts without events after %v", lines)
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			t.Fatal(err)
		}
		fact := byVersion[string(object.GetUID())+"@"+object.GetResourceVersion()]
		line := fmt.Sprintf("%s %s: %s %s", event.Type, object.GetName(), fact.Operation, fact.Actor.Username)
		if fact.Lasting {
			line += ", lasting"
		}
		lines = append(lines, line)
	}
	return lines
}

// TestNoFact makes requests that must not record a fact.
func TestNoFact(t *testing.T) {
	everywhere := metav1.DryRunAll
	tests := map[string]func(r *recorded, stored *configbutler.GitDestination) error{
		"update without a change": func(r *recorded, stored *configbutler.GitDestination) error {
			_, err := r.change(r.as("joe", "update", ""), "gitdestinations", stored.DeepCopy(), false)
			return err
		},
		"status": func(r *recorded, stored *configbutler.GitDestination) error {
			changed := stored.DeepCopy()
			changed.Status.ObservedGeneration = 7
			updated, err := r.change(asServer(r.as("joe", "update", "status")), "gitdestinations/status", changed, false)
			if err == nil && updated.ResourceVersion == stored.ResourceVersion {
				r.Error("the status was not changed")
			}
			return err
		},
		"dry run of a create": func(r *recorded, _ *configbutler.GitDestination) error {
			other := destination()
			other.Name = "other"
			_, err := r.create(r.as("joe", "create", ""), other, everywhere)
			return err
		},
		"dry run of an update": func(r *recorded, stored *configbutler.GitDestination) error {
			_, err := r.change(r.as("joe", "update", ""), "gitdestinations", moved(stored), false, everywhere)
			return err
		},
		"dry run of a delete": func(r *recorded, stored *configbutler.GitDestination) error {
			return r.remove(r.as("joe", "delete", ""), stored.Name, everywhere)
		},
		"no user": func(r *recorded, stored *configbutler.GitDestination) error {
			_, err := r.change(in(r.T), "gitdestinations", moved(stored), false)
			return err
		},
		"anonymous": func(r *recorded, stored *configbutler.GitDestination) error {
			_, err := r.change(r.as(user.Anonymous, "update", ""), "gitdestinations", moved(stored), false)
			return err
		},
		"record of a controller": func(r *recorded, _ *configbutler.GitDestination) error {
			_, err := r.storage.Records.Write(r.Context(), &v1alpha1.GitDestinationStatus{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dest"},
			})
			return err
		},
	}
	for name, request := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRecorded(t)
			stored := r.mustCreate("dest")
			r.recorder.take()
			if err := request(r, stored); err != nil {
				t.Fatal(err)
			}
			if facts := r.recorder.take(); len(facts) != 0 {
				t.Errorf("facts %+v", facts)
			}
		})
	}
}

func TestNoFactOfWhatWasRefused(t *testing.T) {
	r := newRecorded(t)
	stored := r.mustCreate("dest")
	r.recorder.take()
	stale := moved(stored)
	stale.ResourceVersion = "1"
	if _, err := r.change(r.as("joe", "update", ""), "gitdestinations", stale, false); err == nil {
		t.Error("a stale update was stored")
	}
	if _, err := r.create(r.as("joe", "create", ""), destination()); err == nil {
		t.Error("an object was created twice")
	}
	if err := r.remove(r.as("joe", "delete", ""), "missing"); err == nil {
		t.Error("what is missing was deleted")
	}
	if facts := r.recorder.take(); len(facts) != 0 {
		t.Errorf("facts %+v", facts)
	}
}
