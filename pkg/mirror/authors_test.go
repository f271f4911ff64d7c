// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

// reports are Facts that the test provides.
type reports struct {
	followed chan struct{}
	handle   func([]attribution.Fact, bool)
}

var _ attribution.Facts = &reports{}

func newReports() *reports { return &reports{followed: make(chan struct{})} }

func (r *reports) Follow(ctx context.Context, handle func([]attribution.Fact, bool)) {
	handle(nil, true)
	r.handle = handle
	close(r.followed)
	<-ctx.Done()
}

func (r *reports) Forget(...types.UID) {}

func (r *reports) Lags(context.Context, string) (attribution.Lags, error) {
	return attribution.Lags{}, nil
}

func (r *reports) StoreLags(context.Context, string, attribution.Lags) error { return nil }

// publish delivers facts and returns once they are known.
func (r *reports) publish(facts ...attribution.Fact) {
	<-r.followed
	r.handle(facts, false)
}

func contentHash(content []byte) string { return fmt.Sprintf("%x", content) }

// put creates an object as the user with the object's name, and delivers facts with the given signals.
func (s *fixture) put(r *reports, name string, signals ...attribution.Signal) {
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
			r.publish(fact)
		case attribution.Admission:
			fact.Content = contentHash(next.files[object].content)
			r.publish(fact)
		case attribution.ManagedFields:
			managers = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Time: new(metav1.Now())}}
		}
	}
	s.cluster.put(object, "1", func(object *unstructured.Unstructured) {
		object.SetUID(types.UID(name))
		object.SetManagedFields(managers)
	})
}

func TestChangesAreCountedByAttribution(t *testing.T) {
	r := newReports()
	s := newFixture(t, func(s *fixture) { s.facts, s.hash = r, contentHash })
	s.idle()
	s.put(r, "ann", attribution.Audit)
	s.put(r, "bob", attribution.Audit, attribution.Admission)
	s.put(r, "cid", attribution.Admission)
	s.put(r, "tool", attribution.ManagedFields)
	s.put(r, "nobody")
	s.mirrored()
	want := v1alpha1.AttributionCounts{Audit: 2, Admission: 1, ManagedFields: 1, Unknown: 1}
	testkit.Eventually(t, "the counts", func() error {
		if got := s.record("main").Attribution; got != want {
			return fmt.Errorf("counters grew by %+v, want %+v", got, want)
		}
		return nil
	})
}

// TestComparisonsNameWhomTheAuditKnows checks that a comparison attributes changes during a downtime to the authors in audit events.
func TestComparisonsNameWhomTheAuditKnows(t *testing.T) {
	for granularity, want := range map[v1alpha1.Granularity]string{
		v1alpha1.GranularityPerAuthor: "Slipstream [SEED] 2 objects: 1 created, 1 updated\nann [SEED] 2 objects: 1 created, " +
			"1 deleted\nbob [SEED] CREATE v1/configmaps shop/new-bob",
		v1alpha1.GranularityPerChange: "Slipstream [SEED] 2 objects: 1 created, 1 updated\nann [SEED] 2 objects: 1 created, " +
			"1 deleted\nbob [SEED] CREATE v1/configmaps shop/new-bob",
		v1alpha1.GranularityBatch: "Slipstream [SEED] 5 objects: 3 created, 1 updated, 1 deleted",
	} {
		t.Run(string(granularity), func(t *testing.T) {
			r := newReports()
			s := newFixture(t, func(s *fixture) {
				s.facts, s.hash = r, contentHash
				s.in.destinations[0].Spec.Granularity = granularity
			})
			s.cluster.put(configMap("gone"), "1")
			s.cluster.put(configMap("changed"), "1")
			s.mirrored()
			s.idle()
			s.stop()
			before := s.mustRun("rev-parse", "main")
			r.followed = make(chan struct{})
			audited := func(operation v1alpha1.Operation, user, name string, begun time.Time) attribution.Fact {
				return attribution.Fact{
					ID: name, Signal: attribution.Audit, Operation: operation, Resource: "configmaps", Namespace: "shop", Name: name, UID: types.UID(name),
					After: s.cluster.get(configMap(name)).GetResourceVersion(), Begun: begun,
					Ended: time.Now(), Actor: attribution.Actor{Username: user},
				}
			}
			facts := []attribution.Fact{audited(v1alpha1.OperationDelete, "ann", "gone", time.Now())}
			s.cluster.remove(configMap("gone"))
			s.cluster.put(configMap("changed"), "2")
			for name, user := range map[string]string{"new-ann": "ann", "new-bob": "bob", "new": ""} {
				begun := time.Now()
				s.cluster.put(configMap(name), "1", func(object *unstructured.Unstructured) {
					object.SetUID(types.UID(name))
					written := metav1.Now()
					object.SetManagedFields([]metav1.ManagedFieldsEntry{
						{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, Time: &written},
					})
				})
				if user != "" {
					facts = append(facts, audited(v1alpha1.OperationCreate, user, name, begun))
				}
			}
			s.cluster.beforeList(func() { r.publish(facts...) })
			s.start()
			s.mirrored()
			s.idle()
			if got := s.mustRun("log", "--reverse", "--format=%an %s", before+"..main"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestRecordIsContinued checks that a new process continues the record of the previous one.
func TestRecordIsContinued(t *testing.T) {
	r := newReports()
	s := newFixture(t, func(s *fixture) { s.facts, s.hash = r, contentHash })
	s.idle()
	s.put(r, "ann", attribution.Audit)
	s.cluster.put(configMap("bob"), "1")
	s.mirrored()
	s.idle()
	before := s.record("main")
	s.stop()
	r.followed = make(chan struct{})
	s.earlier = map[types.UID]v1alpha1.GitDestinationRecord{s.in.destinations[0].UID: before}
	s.start()
	s.idle()
	after := s.record("main")
	if after.LastCommit == nil || *after.LastCommit != *before.LastCommit || !after.LastPushTime.Equal(before.LastPushTime) ||
		after.Attribution != before.Attribution {
		t.Errorf("record = %+v, of the previous process\n%+v", after, before)
	}
	s.cluster.put(configMap("cid"), "1")
	testkit.Eventually(t, "the next counts", func() error {
		if got := s.record("main"); got.Attribution.Unknown != 2 || got.Attribution.Audit != 1 || got.LastCommit.SHA == before.LastCommit.SHA {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
}

func TestAuthorsReported(t *testing.T) {
	now := time.Now()
	const limit = 2 * time.Second
	audit := func(lag, wanted time.Duration) attribution.SourceState {
		state := attribution.SourceState{Signal: attribution.Audit, LastFact: now.Add(-time.Hour), Lag: lag}
		if wanted > 0 {
			state.WantedSince = now.Add(-wanted)
		}
		return state
	}
	never := func(signal attribution.Signal, wanted time.Duration) attribution.SourceState {
		return attribution.SourceState{Signal: signal, Lag: -1, WantedSince: now.Add(-wanted)}
	}
	asked := attribution.SourceState{Signal: attribution.Admission, LastFact: now, Lag: -1}
	for name, test := range map[string]struct {
		audit, admission attribution.SourceState
		expected         bool
		want             string
	}{
		"nothing set up":               {never(attribution.Audit, time.Hour), never(attribution.Admission, time.Hour), false, "none"},
		"admission only":               {never(attribution.Audit, time.Hour), asked, false, "True Reported"},
		"no facts yet":                 {never(attribution.Audit, time.Minute), never(attribution.Admission, time.Minute), true, "as before"},
		"in time":                      {audit(time.Second, 0), never(attribution.Admission, time.Hour), true, "True Reported"},
		"one change not reported yet":  {audit(time.Second, time.Minute), asked, true, "True Reported"},
		"stopped":                      {audit(time.Second, auditSilence), asked, true, "False AuditSilent"},
		"never came":                   {never(attribution.Audit, auditSilence), asked, true, "False AuditSilent"},
		"quiet, with nothing to say":   {audit(time.Second, 0), asked, true, "True Reported"},
		"gathered for half a minute":   {audit(30*time.Second, 0), asked, true, "False AuditLate"},
		"late where it is no business": {audit(30*time.Second, time.Hour), asked, false, "True Reported"},
	} {
		t.Run(name, func(t *testing.T) {
			list := []metav1.Condition{{Type: v1alpha1.ConditionAuthorsReported, Status: "as", Reason: "before"}}
			set := conditions.For(&list, 1, now)
			setAuthors(set, reportsOf([]attribution.SourceState{test.audit, test.admission}, test.expected, limit, now))
			set.Prune(optionalConditions...)
			got := "none"
			if len(list) > 0 {
				got = string(list[0].Status) + " " + list[0].Reason
			}
			if got != test.want {
				t.Errorf("condition = %s, want %s", got, test.want)
			}
		})
	}
}

// TestEditsOfDestinationsAreNotAttributed checks that changes of files that follow from an edit of the destination are not attributed to
// the last author of the objects.
func TestEditsOfDestinationsAreNotAttributed(t *testing.T) {
	r := newReports()
	rule := v1alpha1.IgnoreRule{Target: v1alpha1.IgnoreTarget{Kind: "configmap"}, Fields: []string{"/data"}}
	s := newFixture(t, func(s *fixture) { s.facts, s.hash = r, contentHash })
	s.idle()
	s.put(r, "ann", attribution.Audit, attribution.ManagedFields)
	s.mirrored()
	s.idle()
	before := s.mustRun("rev-parse", "main")
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Ignore = []v1alpha1.IgnoreRule{rule} })
	testkit.Eventually(t, "a commit", func() error {
		if s.mustRun("rev-parse", "main") == before {
			return errors.New("no comparison yet")
		}
		return nil
	})
	s.idle()
	if got, want := s.mustRun("log", "--format=%an %s", before+"..main"), "Slipstream [SEED] UPDATE v1/configmaps shop/ann"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFactsAboutServedKindsAreKept checks that facts about the server's own kinds are kept before a rule selects them: a rule may be
// created together with the objects that it selects.
func TestFactsAboutServedKindsAreKept(t *testing.T) {
	a := newAuthors(Config{})
	a.follow(map[schema.GroupVersionResource][]*destination{configMaps: nil})
	for resource, want := range map[schema.GroupResource]bool{
		configMaps.GroupResource():                          true,
		namespacesResource:                                  true,
		{Resource: "secrets"}:                               false,
		v1alpha1.Resource("gitdestinations"):                true,
		{Group: "example.com", Resource: "gitdestinations"}: false,
	} {
		if got := a.follows(attribution.Object{GroupResource: resource, Name: "main"}); got != want {
			t.Errorf("%s: fact is kept: %t, want %t", resource, got, want)
		}
	}
}

// TestComparisonKeepsTheAuthorOfAWaitingChange checks that a comparison attributes a file to the author of a pending change only if it has
// the content of that change, and the change is not later than what was listed.
func TestComparisonKeepsTheAuthorOfAWaitingChange(t *testing.T) {
	ann := attribution.Author{Actor: attribution.Actor{Username: "ann"}, Signal: attribution.Audit}
	unknown := attribution.Author{Signal: attribution.Unknown}
	d := &destination{queue: outbox.NewQueue()}
	c := &comparison{
		member:   member{destination: d},
		comparer: &comparer{author: func(attribution.Event) attribution.Author { return unknown }},
	}
	const written, removed = "core/v1/configmaps/shop/a.yaml", "core/v1/configmaps/shop/removed.yaml"
	content := gitrepo.BlobHash([]byte("a: 1\n"))
	d.queue.Enqueued(written, outbox.Pending{Sequence: 1, Hash: content, ResourceVersion: "100", Author: ann})
	d.queue.Enqueued(removed, outbox.Pending{Sequence: 2, ResourceVersion: "100", Author: ann})
	for name, tt := range map[string]struct {
		path            string
		hash            gitrepo.Hash
		resourceVersion string
		want            attribution.Author
	}{
		"the same":            {written, content, "100", ann},
		"listed later":        {written, content, "101", ann},
		"written later":       {written, content, "99", unknown},
		"not comparable":      {written, content, "", unknown},
		"other content":       {written, gitrepo.BlobHash([]byte("a: 2\n")), "100", unknown},
		"another file":        {"core/v1/configmaps/shop/b.yaml", content, "100", unknown},
		"removed":             {removed, gitrepo.Hash{}, "101", ann},
		"removed later again": {removed, gitrepo.Hash{}, "99", unknown},
	} {
		got := c.author(rendered{path: tt.path, hash: tt.hash}, tt.resourceVersion, attribution.Event{})
		if got.Username != tt.want.Username || got.Signal != tt.want.Signal {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestComparisonKeepsTheAuthorOfAWaitingDeletion checks that a comparison which removes the file of a deleted object attributes that to the
// author of the pending deletion.
func TestComparisonKeepsTheAuthorOfAWaitingDeletion(t *testing.T) {
	r := newReports()
	s := newFixture(t, func(s *fixture) { s.facts, s.hash = r, contentHash })
	s.put(r, "gone")
	s.mirrored()
	s.idle()
	deleted := make(chan struct{})
	s.cluster.beforeList(func() {
		r.publish(attribution.Fact{
			ID: "deletion", Signal: attribution.Audit, Operation: v1alpha1.OperationDelete, Resource: "configmaps", Namespace: "shop",
			Name: "gone", UID: "gone", Begun: time.Now(), Ended: time.Now(), Actor: attribution.Actor{Username: "ann"},
		})
		s.cluster.remove(configMap("gone"))
		s.waitPending("main", 1)
		close(deleted)
	})
	s.compareAgain()
	<-deleted
	s.mirrored()
	s.idle()
	if got, want := s.mustRun("log", "-1", "--format=%an %s", "main"), "ann [SEED] DELETE v1/configmaps shop/gone"; got != want {
		t.Errorf("last commit: got %s, want %s", got, want)
	}
}
