// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

var errFails = errors.New("the disk is full")

// fixture is an outbox with what its callbacks were called with.
type fixture struct {
	testing.TB
	*outbox.Outbox
	recovered []uint64

	mu                sync.Mutex
	durable, tooLarge []uint64
	blocked           []error
}

func open(t *testing.T, kv clientv3.KV) *fixture {
	t.Helper()
	s := &fixture{TB: t}
	rows := table.New(kv, "/test").Table("outbox")
	opened, err := outbox.Open(t.Context(), rows, 0, func(row outbox.Row) { s.recovered = append(s.recovered, row.Sequence) })
	if err != nil {
		t.Fatal(err)
	}
	s.Outbox = opened
	return s
}

// run runs the outbox until it is stopped.
func (s *fixture) run() (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan struct{})
	record := func(change func()) { s.mu.Lock(); defer s.mu.Unlock(); change() }
	go func() {
		defer close(ended)
		s.Run(ctx, outbox.Events{
			Durable:  func(row outbox.Row) { record(func() { s.durable = append(s.durable, row.Sequence) }) },
			TooLarge: func(row outbox.Row) { record(func() { s.tooLarge = append(s.tooLarge, row.Sequence) }) },
			Blocked:  func(err error) { record(func() { s.blocked = append(s.blocked, err) }) },
		})
	}()
	stop = func() { cancel(); <-ended }
	s.Cleanup(stop)
	return stop
}

func (s *fixture) enqueue(content string) {
	s.Helper()
	if err := s.Enqueue(s.Context(), outbox.Change{UID: "shop", Path: "a", Content: []byte(content)}, func(uint64) {}); err != nil {
		s.Fatal(err)
	}
}

// eventually waits until a condition on the calls of callbacks holds.
func (s *fixture) eventually(what string, condition func() bool) {
	s.Helper()
	testkit.EventuallyTrue(s, what, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return condition() })
}

// wantFirst checks that sequences are the first ones, in order.
func wantFirst(t *testing.T, what string, sequences []uint64) {
	t.Helper()
	for i, sequence := range sequences {
		if sequence != uint64(i+1) {
			t.Fatalf("%s: row %d at position %d", what, sequence, i+1)
		}
	}
}

// TestDeathAtEachWrite kills the process at each transaction. Stored rows are the first ones, and include those that are durable.
func TestDeathAtEachWrite(t *testing.T) {
	const rows = 3*outbox.MaxBatch + 7
	for diesAt := 1; diesAt <= 5; diesAt++ {
		for _, lost := range []bool{false, true} {
			kv, process := bolttest.NewKV(t), &testkit.Process{}
			process.Start(diesAt, nil)
			process.LoseResponse(lost)
			s := open(t, bolttest.WithWrites(kv, func(_ context.Context, write bolttest.Write) error { return process.Write(write.Commit) }))
			for range rows {
				s.enqueue("a")
			}
			stop := s.run()
			s.eventually("the end of the process", func() bool { return len(s.durable) == rows || process.Alive() != nil })
			stop()
			next := open(t, kv)
			wantFirst(t, "durable", s.durable)
			wantFirst(t, "stored", next.recovered)
			if len(next.recovered) < len(s.durable) || diesAt == 5 && len(s.durable) < rows {
				t.Errorf("killed at %d: %d rows are stored, %d were durable", diesAt, len(next.recovered), len(s.durable))
			}
		}
	}
}

// TestRowsAreReadWhenAllBeforeAreStored fails the second transaction of a write: rows of the first may be written again.
func TestRowsAreReadWhenAllBeforeAreStored(t *testing.T) {
	writes, began, release := 0, make(chan struct{}), make(chan struct{})
	s := open(t, bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error {
		if writes++; writes == 2 {
			close(began)
			<-release
			return errFails
		}
		return write.Commit()
	}))
	for range 2 * outbox.MaxBatch {
		s.enqueue("a")
	}
	s.run()
	<-began
	if rows, err := s.Next(t.Context(), "shop", 10, 1<<20); len(rows) > 0 || err != nil {
		t.Errorf("%d rows that may be written again were returned (%v)", len(rows), err)
	}
	close(release)
	s.eventually("all rows", func() bool { return len(s.durable) == 2*outbox.MaxBatch })
	wantFirst(t, "durable", s.durable)
	if rows, err := s.Next(t.Context(), "shop", 10, 1<<20); len(rows) != 10 || err != nil {
		t.Errorf("%d rows were returned (%v)", len(rows), err)
	}
}

func TestFullIntakeBlocks(t *testing.T) {
	var mu sync.Mutex
	failure := errFails
	s := open(t, bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error {
		mu.Lock()
		defer mu.Unlock()
		if failure != nil {
			return failure
		}
		return write.Commit()
	}))
	s.run()
	for range outbox.IntakeLength {
		if s.Full() {
			t.Fatal("the intake is full too early")
		}
		s.enqueue("a")
	}
	s.eventually("the failure", func() bool { return len(s.blocked) > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Enqueue(ctx, outbox.Change{UID: "shop"}, func(uint64) {})
	if !errors.Is(err, context.Canceled) || !s.Full() {
		t.Errorf("Enqueue returned %v, full: %v", err, s.Full())
	}
	mu.Lock()
	failure = nil
	mu.Unlock()
	s.enqueue("a")
	s.eventually("all rows", func() bool { return len(s.durable) == outbox.IntakeLength+1 && slices.Contains(s.blocked, nil) })
	wantFirst(t, "durable", s.durable[:outbox.IntakeLength])
	if err := s.blocked[0]; !errors.Is(err, errFails) || !strings.HasPrefix(err.Error(), "changes cannot be kept until they are pushed: ") {
		t.Errorf("blocked with %v", err)
	}
}

func TestRowThatIsTooLarge(t *testing.T) {
	s := open(t, bolttest.NewKV(t))
	s.enqueue("a")
	s.enqueue(strings.Repeat("a", 4<<20))
	s.enqueue("a")
	s.run()
	s.eventually("all rows", func() bool { return len(s.durable)+len(s.tooLarge) == 3 })
	if !slices.Equal(s.durable, []uint64{1, 3}) || !slices.Equal(s.tooLarge, []uint64{2}) {
		t.Errorf("durable %v, too large %v", s.durable, s.tooLarge)
	}
	if rows, err := s.Next(t.Context(), "shop", 10, 1<<20); len(rows) != 2 || err != nil {
		t.Errorf("%d rows were returned (%v)", len(rows), err)
	}
}

// TestNothingIsWrittenAfterTheContextEnded ends the context of Run during a write: another replica may be the leader then.
func TestNothingIsWrittenAfterTheContextEnded(t *testing.T) {
	var mu sync.Mutex
	writes, began := 0, make(chan struct{}, 10)
	s := open(t, bolttest.WithWrites(bolttest.NewKV(t), func(ctx context.Context, _ bolttest.Write) error {
		mu.Lock()
		writes++
		mu.Unlock()
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}))
	stop := s.run()
	s.enqueue("a")
	<-began
	s.enqueue("a")
	stop()
	s.enqueue("a")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.Run(ended, outbox.Events{})
	if writes != 1 || len(s.durable) > 0 || len(s.blocked) > 0 {
		t.Errorf("%d writes, rows %v are durable, blocked with %v", writes, s.durable, s.blocked)
	}
}

// TestStoredRow checks what a row keeps in the store: all but when this process saw the change.
func TestStoredRow(t *testing.T) {
	saved := outbox.Row{Sequence: 7, Change: outbox.Change{
		UID: "shop", Path: "a.yaml", Content: []byte("a: 1\nb: 2\n"), Operation: v1alpha1.OperationUpdate,
		Object: outbox.Object{Version: "v1", Resource: "configmaps", Name: "a"}, Seen: testkit.Noon, Time: testkit.Noon,
		ResourceVersion: "42", Encryption: "age", Author: attribution.Author{
			Actor: attribution.Actor{
				Username: "jane", Name: "Jane", Email: "jane@example.com", Groups: []string{"dev"}, ImpersonatedBy: "joe",
			},
			Signal: attribution.Audit, Manager: "kubectl", NamespaceDeletedBy: "ann",
		},
		Trace: outbox.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Since: testkit.Noon},
		Marks: outbox.Marks{
			Reason: "rollback", Manager: "kubectl-edit", Values: map[string]string{"/data/a": "0123"},
			ManagedBy: &v1alpha1.ChangeManager{Tool: v1alpha1.ManagedByFlux, Kind: "Kustomization", Namespace: "flux-system", Name: "shop"},
		},
	}}
	read, err := outbox.DecodeRow(outbox.EncodeRow(saved))
	if err != nil {
		t.Fatal(err)
	}
	want := saved
	want.Change.Seen = time.Time{}
	if diff := cmp.Diff(want, read); diff != "" {
		t.Error(diff)
	}
}

// TestFormatOfRows decodes the format of stored rows, which the server must be able to read in later versions.
func TestFormatOfRows(t *testing.T) {
	const stored = `{"destination":{"Namespace":"shop","Name":"main"},"path":"core/v1/configmaps/shop/a.yaml","operation":"UPDATE",` +
		`"object":{"version":"v1","resource":"configmaps","namespace":"shop","name":"a"},"resourceVersion":"42","encryption":"age",` +
		`"time":"2026-11-01T10:00:00Z"`
	jane := attribution.Author{Signal: attribution.Audit, Actor: attribution.Actor{
		Username: "jane", Name: "Jane", Email: "jane@example.com", Groups: []string{"dev"}, ImpersonatedBy: "joe",
	}}
	for author, want := range map[string]attribution.Author{
		"": {},
		`,"author":{"username":"jane","name":"Jane","email":"jane@example.com","groups":["dev"],"signal":"audit","impersonatedBy":"joe"}`: jane,
	} {
		read, err := outbox.DecodeRow(table.Row{Key: "uid/0000000000000007", Value: []byte(stored + author + "}\ndata: {}\n")})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(outbox.Row{Sequence: 7, Change: outbox.Change{
			Destination: types.NamespacedName{Namespace: "shop", Name: "main"}, UID: "uid", Path: "core/v1/configmaps/shop/a.yaml",
			Content: []byte("data: {}\n"), Operation: v1alpha1.OperationUpdate, ResourceVersion: "42", Encryption: "age",
			Object: outbox.Object{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: "a"},
			Time:   time.Date(2026, time.November, 1, 10, 0, 0, 0, time.UTC), Author: want,
		}}, read); diff != "" {
			t.Error(diff)
		}
	}
}
