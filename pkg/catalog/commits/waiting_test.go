// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commits_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/commits"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// fixture has a table that outlives processes, and the clock.
type fixture struct {
	testing.TB
	table *storetable.Table
	clock *testkit.Clock
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t, storetable.New(bolttest.NewKV(t), "/test").Table(commits.TableName), testkit.NewClock(t)}
}

func span(name, after, to string) commits.Span {
	return commits.Span{After: after, To: to, Object: history.Object{
		GroupResource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Namespace: "production", Name: name,
	}}
}

// expect stores the spans of a record whose change was detected now.
func (s *fixture) expect(namespace, name string, spans ...commits.Span) []commits.Span {
	s.Helper()
	record := &v1alpha1.SyncStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: name},
		Spec:       v1alpha1.SyncStatusSpec{Batch: "batch of " + name}, Status: v1alpha1.SyncRecord{DetectedAt: metav1.NewTime(s.clock.Now())},
	}
	out, err := commits.NewWaiting(s.table, s.clock).Expect(s.Context(), namespace, record, spans)
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// waits checks the waiting records of a namespace.
func (s *fixture) waits(namespace string, want ...string) {
	s.Helper()
	var got []string
	for entry, err := range commits.NewWaiting(s.table, s.clock).In(s.Context(), namespace) {
		if err != nil {
			s.Fatal(err)
		}
		if entry.Name.Namespace != "teams" || entry.Batch != "batch of "+entry.Name.Name {
			s.Errorf("waiting record = %+v", entry)
		}
		got = append(got, fmt.Sprint(entry.Name.Name, " ", len(entry.Spans)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("waiting records differ:\n%s", diff)
	}
}

func TestRecordsWait(t *testing.T) {
	s := newFixture(t)
	s.expect("production", "b", span("api", "1", "2"))
	s.clock.Step(time.Second)
	s.expect("production", "a", span("api", "2", "3"), span("web", "2", "3"))
	s.expect("production", "c")
	s.expect("produce", "d", span("api", "1", "2"))
	s.waits("production", "b 1", "a 2")
	s.waits("prod")
}

// TestSpansKeepTheirBeginning stores the spans of a record again, as after a crash.
func TestSpansKeepTheirBeginning(t *testing.T) {
	s := newFixture(t)
	s.expect("production", "a", span("api", "1", "2"), span("web", "1", "2"))
	got := s.expect("production", "a", span("api", "2", "4"), span("db", "3", "4"))
	if diff := cmp.Diff([]commits.Span{span("api", "1", "4"), span("web", "1", "2"), span("db", "3", "4")}, got); diff != "" {
		t.Error(diff)
	}
	if got := s.expect("production", "a"); len(got) != 3 {
		t.Errorf("span after a restart = %+v", got)
	}
	s.waits("production", "a 3")
}

func TestWaitingRecordsExpire(t *testing.T) {
	s := newFixture(t)
	s.expect("production", "old", span("api", "1", "2"))
	s.clock.Step(commits.MaxAge + time.Second)
	s.waits("production")
	s.expect("production", "young", span("api", "1", "2"))
	s.waits("production", "young 1")
	if n, err := s.table.Count(t.Context(), ""); err != nil || n != 1 {
		t.Errorf("%d rows, error %v", n, err)
	}
}

func TestTheNewestRecordsWait(t *testing.T) {
	s := newFixture(t)
	for i := range commits.MaxWaiting + 2 {
		s.clock.Step(time.Second)
		s.expect("production", fmt.Sprint(i), span("api", "1", "2"))
	}
	n, first := 0, ""
	for entry, err := range commits.NewWaiting(s.table, s.clock).In(t.Context(), "production") {
		if err != nil {
			t.Fatal(err)
		}
		if n++; first == "" {
			first = entry.Name.Name
		}
	}
	if n != commits.MaxWaiting || first != "2" {
		t.Errorf("%d records wait, the first is %s", n, first)
	}
}

func TestInvalidRowsAreIgnored(t *testing.T) {
	s := newFixture(t)
	for _, key := range []string{"production/x", "production/zz/teams/x", "production/0000000000000001/teams/x"} {
		if err := s.table.Put(t.Context(), storetable.Row{Key: key, Value: []byte("?")}); err != nil {
			t.Fatal(err)
		}
	}
	s.waits("production")
	s.expect("production", "a", span("api", "1", "2"))
	s.waits("production", "a 1")
}
