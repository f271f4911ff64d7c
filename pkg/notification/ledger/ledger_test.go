// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLedger checks that what is written is read again, that what was sent and has ended is deleted, and that sinks do not mix.
func TestLedger(t *testing.T) {
	ctx := context.Background()
	rows := table.New(bolttest.NewKV(t), "/test").Table(ledger.TableName)
	open := func(uid types.UID) (*ledger.Ledger, *ledger.Contents) {
		t.Helper()
		l, contents, err := ledger.Open(ctx, rows, uid)
		if err != nil {
			t.Fatal(err)
		}
		return l, contents
	}
	write := func(l *ledger.Ledger, w *ledger.Writes) {
		t.Helper()
		if err := l.Write(ctx, w); err != nil {
			t.Fatal(err)
		}
	}
	l, empty := open("a")
	if len(empty.Found) > 0 || empty.Sending != nil || !empty.Pending.IsEmpty() {
		t.Errorf("a new sink has %+v", empty)
	}
	pending := ledger.Digest{}
	pending.Add(change("c"), noon)
	state := ledger.State{Sequence: 7, Cursor: "12"}
	sending := &ledger.Sending{ID: "m", Time: noon, Digest: pending}
	found := []ledger.Found{{Key: "x/y z", Object: "o", Lasting: true, Event: v1alpha1.NotifyFailed}, {Key: "once", Object: "o"}}
	threads := []ledger.Thread{{Key: "t", Reference: "1", Used: noon}, {Key: "old", Reference: "0"}}
	write(l, &ledger.Writes{State: &state, Pending: &pending, Sending: sending, Found: found, Threads: threads})
	other, _ := open("ab")
	write(other, &ledger.Writes{State: &ledger.State{Sequence: 1}})

	want := &ledger.Contents{
		State: state, Pending: pending, Sending: sending,
		Found:   map[string]*ledger.Found{"x/y z": &found[0], "once": &found[1]},
		Threads: map[string]*ledger.Thread{"t": &threads[0], "old": &threads[1]},
	}
	if _, got := open("a"); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	write(l, &ledger.Writes{Sent: true, Ended: []string{"once"}, Expired: []string{"old"}})
	want.Sending = nil
	delete(want.Found, "once")
	delete(want.Threads, "old")
	if _, got := open("a"); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	if err := ledger.Sweep(ctx, rows, func(uid types.UID) bool { return uid == "ab" }); err != nil {
		t.Fatal(err)
	}
	var left []string
	for key, err := range rows.Keys(ctx, "") {
		left = append(left, fmt.Sprint(key, err))
	}
	if !cmp.Equal(left, []string{"ab/state<nil>"}) {
		t.Errorf("left: %q", left)
	}
}
