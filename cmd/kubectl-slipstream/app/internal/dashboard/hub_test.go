// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"testing"
	"time"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// rowAt returns the row of an object that was created at a second.
func rowAt(name string, second int64, cells ...string) *cli.Row {
	return &cli.Row{Namespace: "teams", Name: name, Created: time.Unix(second, 0), Cells: cells}
}

// TestSlowStream checks that a stream that sends nothing for long keeps one key for each object, and sends its latest state then.
func TestSlowStream(t *testing.T) {
	h := newHub([]string{"environments"}, nil)
	h.list("environments", cli.Columns{"Name"}, []*cli.Row{rowAt("alice", 1), rowAt("bob", 1)})
	slow := h.subscribe(1)
	if h.subscribe(1) != nil {
		t.Error("there are more streams than allowed")
	}
	if messages := h.take(slow); len(messages) != 1 || len(messages[0].(tableMessage).Rows) != 2 {
		t.Fatalf("the first messages are %+v", messages)
	}
	for i := range 10_000 {
		h.apply(cli.TableUpdate{Resource: "environments", Rows: []*cli.Row{rowAt("alice", 1, fmt.Sprint(i))}})
	}
	h.apply(cli.TableUpdate{Resource: "environments", Rows: []*cli.Row{rowAt("bob", 1)}, Deleted: true})
	if keys := slow.pending["environments"].keys; len(keys) != 2 || len(slow.changed) != 1 {
		t.Errorf("%d keys wait", len(keys))
	}
	messages := h.take(slow)
	if len(messages) != 1 {
		t.Fatalf("the messages are %+v", messages)
	}
	m := messages[0].(rowsMessage)
	if len(m.Rows) != 1 || m.Rows[0].Cells[0] != "9999" || len(m.Deleted) != 1 || m.Deleted[0] != [2]string{"teams", "bob"} {
		t.Errorf("the message is %+v", m)
	}
	if messages := h.take(slow); len(messages) != 0 {
		t.Errorf("sent again: %+v", messages)
	}
	h.unsubscribe(slow)
	if h.subscribe(1) == nil {
		t.Error("the end of a stream lets no other one in")
	}
}

// TestNewestRows checks that only the newest rows are kept, and that streams remove the others.
func TestNewestRows(t *testing.T) {
	h := newHub([]string{"changes"}, map[string]int{"changes": 2})
	h.list("changes", cli.Columns{"Name"}, []*cli.Row{rowAt("c", 1), rowAt("a", 3), rowAt("b", 2)})
	s := h.subscribe(1)
	if m := h.take(s)[0].(tableMessage); len(m.Rows) != 2 || m.Rows[0].Name != "a" || m.Rows[1].Name != "b" {
		t.Errorf("the list is %+v", m.Rows)
	}
	h.apply(cli.TableUpdate{Resource: "changes", Rows: []*cli.Row{rowAt("d", 4)}})
	m := h.take(s)[0].(rowsMessage)
	if len(m.Rows) != 1 || m.Rows[0].Name != "d" || len(m.Deleted) != 1 || m.Deleted[0][1] != "b" {
		t.Errorf("a new row has the message %+v", m)
	}
}

// TestStates sends each state once: refused, lost and found.
func TestStates(t *testing.T) {
	h := newHub([]string{"changes"}, nil)
	s := h.subscribe(1)
	for step, test := range []struct {
		change func()
		want   []any
	}{
		{func() { h.lose("changes", "down") }, []any{lostMessage{"lost", "changes", "down"}}},
		{func() { h.lose("changes", "down") }, nil},
		{func() { h.refuse("changes", "no") }, []any{refusedMessage{"refused", "changes", "no"}}},
		{func() { h.refuse("changes", "no") }, nil},
		{func() { h.lose("changes", "down") }, nil},
		{func() { h.refuse("changes", "no") }, []any{refusedMessage{"refused", "changes", "no"}}},
	} {
		test.change()
		if got := h.take(s); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("step %d: %v, want %v", step, got, test.want)
		}
	}
	h.list("changes", cli.Columns{"Name", "Who"}, nil)
	if m, ok := h.take(s)[0].(tableMessage); !ok || m.Rows == nil || len(m.Columns) != 2 {
		t.Errorf("a list after a refusal: %+v", m)
	}
	h.apply(cli.TableUpdate{Resource: "changes", Columns: cli.Columns{"Name"}, Rows: []*cli.Row{rowAt("a", 1)}})
	if m, ok := h.take(s)[0].(tableMessage); !ok || len(m.Rows) != 1 || len(m.Columns) != 1 {
		t.Errorf("a server with other columns: %+v", m)
	}
}
