// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// fakeAuthors returns the uid of an object, which is not part of its content, as the author of its state.
type fakeAuthors struct {
	submitted atomic.Int64
	// waiting is whether authors are still being determined. checks counts how often that was checked.
	waiting atomic.Bool
	checks  atomic.Int64
	// late is whether events are never delivered.
	late atomic.Bool
	// awaited is whether reports about existing states are still expected.
	awaited atomic.Bool
	// forgotten is whether the authors of existing states are no longer known.
	forgotten atomic.Bool
	// deleters has the users who deleted objects, by name and uid.
	deleters sync.Map
}

var _ Authors = &fakeAuthors{}

func (*fakeAuthors) Start(context.Context, *wait.Group)         {}
func (*fakeAuthors) Listed(schema.GroupVersionResource, string) {}
func (*fakeAuthors) Observe(attribution.Event)                  {}

func (a *fakeAuthors) Submit(ctx context.Context, event attribution.Event, deliver func(context.Context, attribution.Author)) error {
	if !a.late.Load() {
		deliver(ctx, attribution.Author{
			Signal: attribution.Audit, Actor: attribution.Actor{Username: string(event.Object.GetUID()), Groups: []string{"staff"}},
		})
	}
	a.submitted.Add(1)
	return nil
}

func (a *fakeAuthors) FindSince(event attribution.Event, _ time.Time) attribution.Author {
	name, user := event.Object.GetName(), string(event.Object.GetUID())
	if event.Operation == v1alpha1.OperationDelete {
		deleter, _ := a.deleters.Load(name + " " + user)
		user, _ = deleter.(string)
	}
	if a.forgotten.Load() || a.awaited.Load() || user == "" || user == "uid-of-"+name {
		return attribution.Author{Signal: attribution.Unknown}
	}
	return attribution.Author{Signal: attribution.Audit, Actor: attribution.Actor{Username: user}}
}

func (a *fakeAuthors) AuditWait(attribution.Event) time.Duration {
	if a.awaited.Load() {
		return time.Second
	}
	return 0
}

func (a *fakeAuthors) WaitingIn(string) bool {
	a.checks.Add(1)
	return a.waiting.Load()
}

func by(author string) func(*unstructured.Unstructured) {
	return with(author, "metadata", "uid")
}

func TestRecordsHaveAuthors(t *testing.T) {
	s := runningFixture(t)
	s.put("api", "shop/api:2", by("alice"))
	s.put("api", "shop/api:2", by("deployment-controller"), with(int64(1), "status", "readyReplicas"))
	s.put("api", "shop/api:3", by("bob"))
	s.put("worker", "shop/worker:2", by("bob"))
	s.put("untracked", "shop/untracked:2", by("carol"))
	s.waitForEvents(3)
	s.waitForRevision("shop", 2)
	want := []v1alpha1.SourceAuthor{
		{Username: "bob", Signal: v1alpha1.SignalAudit, Workloads: 2}, {Username: "alice", Signal: v1alpha1.SignalAudit, Workloads: 1},
	}
	if got := s.recordOf(2).Status.ChangedBy; !slices.Equal(got, want) {
		t.Errorf("changed by %+v, want %+v", got, want)
	}
}

// awaitingAuthor returns a fixture in which the window of a batch is over and the author of its change is not known yet.
func awaitingAuthor(t *testing.T) *fixture {
	t.Helper()
	s := runningFixture(t)
	s.authors.waiting.Store(true)
	s.put("api", "shop/api:2", by("alice"))
	s.waitForEvents(1)
	s.step(40)
	return s
}

// TestBatchesWaitForAuthors has an author who is known only after the end of the window, and one who is never known.
func TestBatchesWaitForAuthors(t *testing.T) {
	s := awaitingAuthor(t)
	s.expectRecords(firstRecord)
	s.authors.waiting.Store(false)
	s.waitForRevision("shop", 2)

	s.authors.waiting.Store(true)
	s.put("api", "shop/api:3", by("bob"))
	s.waitForEvents(2)
	s.waitForRevision("shop", 3)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[:1] })
	s.waitForRevision("shop", 4)
}

// TestWaitingForAuthorsIsIdle checks that a namespace is not reconciled again at once while a due batch waits for its authors.
func TestWaitingForAuthorsIsIdle(t *testing.T) {
	s := awaitingAuthor(t)
	before := s.authors.checks.Load()
	s.clock.Advance(100, 0)
	if checks := s.authors.checks.Load() - before; checks > 5 {
		t.Errorf("authors were checked %d times while the clock stood still", checks)
	}
	s.expectRecords(firstRecord)
}

// heldAuthors delivers authors when it is asked to.
type heldAuthors struct {
	fakeAuthors
	held []func()
}

func (a *heldAuthors) Submit(ctx context.Context, event attribution.Event, deliver func(context.Context, attribution.Author)) error {
	a.held = append(a.held, func() { _ = a.fakeAuthors.Submit(ctx, event, deliver) }) // It returns no errors.
	return nil
}

func (a *heldAuthors) deliver() {
	for _, deliver := range a.held {
		deliver()
	}
	a.held = nil
}

// TestAuthorsOfWhatIsRecorded has an event of a status that arrives before a new catalog has read the workload, and whose author is known
// only after that. The workload is as it was recorded, so that author is not one of the change that follows.
func TestAuthorsOfWhatIsRecorded(t *testing.T) {
	s, authors := newFixture(t), &heldAuthors{}
	intake, err := pending.Open(t.Context(), s.store().Table(pending.TableName), pending.Config{Clock: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	r := &reconciler{filter: newEventFilter(), intake: intake, authors: authors}
	catalog := appCatalog("shop", "api")
	if err := r.filter.set(catalog); err != nil {
		t.Fatal(err)
	}
	event := func(operation watch.Operation, image string, author string) {
		object := deployment("api", image)
		by(author)(object)
		s.resourceVersion++
		object.SetResourceVersion(strconv.Itoa(s.resourceVersion))
		(*watchHandler)(r).Changed(t.Context(), watch.Watch{Resource: deployments, Namespace: "production"},
			watch.Change{Operation: operation, Object: object})
	}
	// expect closes the batch and checks the authors of its change.
	expect := func(what string, users ...string) {
		t.Helper()
		authors.deliver()
		batch, _, err := intake.Close(t.Context(), "production")
		if err != nil || len(batch.Changes) != 1 || batch.Changes[0].Events != len(users) {
			t.Fatalf("%s: the batch is %+v, error %v", what, batch, err)
		}
		var got []string
		for _, author := range pending.ChangedBy(batch.Changes, []v1alpha1.ResourceSummary{{Type: "Deployment", Name: "api"}}) {
			got = append(got, author.Username)
		}
		if !slices.Equal(got, users) {
			t.Errorf("%s: changed by %q, want %q", what, got, users)
		}
		if err := intake.Done(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	event(watch.Update, "shop/api:1", "creator")
	rules, err := capture.NewRules(&catalog.Spec)
	if err != nil {
		t.Fatal(err)
	}
	content, err := capture.Capture(deployment("api", "shop/api:1"), rules.Ignored)
	if err != nil {
		t.Fatal(err)
	}
	r.filter.observed(catalog, map[reference]string{workload("api"): content.Hash})
	authors.deliver()
	event(watch.Update, "shop/api:2", "ann")
	expect("changed", "ann")
	event(watch.Update, "shop/api:1", "bob")
	expect("changed to what was recorded first", "bob")
	r.filter.observed(catalog, map[reference]string{workload("api"): content.Hash})
	event(watch.Delete, "shop/api:1", "carol")
	expect("deleted", "carol")
	event(watch.Create, "shop/api:1", "dave")
	expect("created again as it was", "dave")
}

// recordOf returns the record of a revision.
func (s *fixture) recordOf(revision int64) *v1alpha1.SyncStatus {
	s.Helper()
	all := s.syncStatuses()
	at := slices.IndexFunc(all, func(record *v1alpha1.SyncStatus) bool { return record.Status.Revision == revision })
	if at < 0 {
		s.Fatalf("no record of revision %d: %q", revision, s.recordLines())
	}
	return all[at]
}
