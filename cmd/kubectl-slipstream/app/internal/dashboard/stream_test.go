// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStream shows what is listed, what changes, and that a list is refused.
func TestStream(t *testing.T) {
	c := newCluster(t)
	c.tables["environments"] = tableOf([2]string{"alice", "Synced"}, [2]string{"bob", "<none>"})
	c.refused = []string{"syncpipelines"}
	p := login(t, c)
	<-watchOf(t, c, "environments")
	s := p.stream(t, "/api/stream", "{}")
	if m := s.next(t); m == nil || m.Type != "hello" || m.User != "jane" || m.Namespace != "" || m.AllowChanges {
		t.Errorf("the first message is %+v", m)
	}
	table := s.until(t, "table", "environments")
	if diff := cmp.Diff([]string{"Name", "State"}, table.Columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if len(table.Rows) != 2 || table.Rows[1].Cells[1] != "" {
		t.Fatalf("rows are %+v", table.Rows)
	}
	alice := table.Rows[0]
	if alice.Namespace != "teams" || alice.Name != "alice" || alice.Version != "7" || alice.At != "2026-05-04T12:00:00Z" || alice.Labels["team"] != "a" {
		t.Errorf("a row is %+v", alice)
	}
	if m := s.until(t, "refused", "syncpipelines"); !strings.HasPrefix(m.Error, "You (jane) lack the permission to list syncpipelines") {
		t.Errorf("the refusal is %q", m.Error)
	}
	c.send(t, "environments", "MODIFIED", tableOf([2]string{"alice", "2 workloads changed"}))
	if m := s.until(t, "rows", "environments"); len(m.Rows) != 1 || m.Rows[0].Cells[1] != "2 workloads changed" || len(m.Deleted) != 0 {
		t.Errorf("a change is %+v", m)
	}
	c.send(t, "environments", "DELETED", tableOf([2]string{"alice", "2 workloads changed"}))
	if m := s.until(t, "rows", "environments"); len(m.Rows) != 0 || !cmp.Equal(m.Deleted, [][2]string{{"teams", "alice"}}) {
		t.Errorf("a deletion is %+v", m)
	}
	if table := p.stream(t, "/api/stream", "{}").until(t, "table", "environments"); len(table.Rows) != 1 || table.Rows[0].Name != "bob" {
		t.Errorf("another tab shows %+v", table.Rows)
	}
}

// watchOf returns a channel that is closed once a path is watched.
func watchOf(t *testing.T, c *cluster, path string) <-chan struct{} {
	t.Helper()
	found := make(chan struct{})
	go func() {
		defer close(found)
		for {
			select {
			case watched := <-c.watched:
				if watched == path {
					return
				}
			case <-t.Context().Done():
				return
			}
		}
	}()
	return found
}

// TestLostWatch says that rows may be old while the cluster does not respond, and shows what has changed in the meantime.
func TestLostWatch(t *testing.T) {
	c := newCluster(t)
	c.tables["environments"] = tableOf([2]string{"alice", "Synced"})
	p := login(t, c)
	<-watchOf(t, c, "environments")
	s := p.stream(t, "/api/stream", "{}")
	s.until(t, "table", "environments")
	c.stop("environments")
	if m := s.until(t, "lost", "environments"); m.Error == "" || strings.Contains(m.Error, strings.TrimPrefix(c.URL, "http://")) {
		t.Errorf("the loss is %q", m.Error)
	}
	another := p.stream(t, "/api/stream", "{}")
	if table := another.until(t, "table", "environments"); len(table.Rows) != 1 {
		t.Errorf("another tab shows %+v while the cluster does not respond", table.Rows)
	}
	another.until(t, "lost", "environments")
	c.start()
	s.until(t, "found", "environments")
	<-watchOf(t, c, "environments")
	c.send(t, "environments", "ADDED", tableOf([2]string{"bob", "Synced"}))
	if m := s.until(t, "rows", "environments"); len(m.Rows) != 1 || m.Rows[0].Name != "bob" {
		t.Errorf("a change is %+v", m)
	}
}

// TestNamespace shows all namespaces, one that is given, or that of the context if no others can be listed.
func TestNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		args            []string
		refused         []string
		namespace, note string
	}{
		"all":          {},
		"all as asked": {args: []string{"-A", "-n", "teams"}},
		"one":          {args: []string{"-n", "teams"}, namespace: "teams"},
		"only one": {
			refused: []string{"environments"}, namespace: "default",
			note: "You may not list environments in all namespaces, so this page shows only the namespace default. Start it with -n NAMESPACE for another one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.refused = test.refused
			c.tables["namespaces/"+test.namespace+"/environments"] = tableOf([2]string{"alice", "Synced"})
			s := login(t, c, test.args...).stream(t, "/api/stream", "{}")
			if m := s.next(t); m == nil || m.Namespace != test.namespace || m.Note != test.note {
				t.Errorf("the first message is %+v", m)
			}
			want := 0
			if test.namespace != "" {
				want = 1
			}
			if table := s.until(t, "table", "environments"); len(table.Rows) != want {
				t.Errorf("rows are %+v", table.Rows)
			}
		})
	}
}

// TestStreams limits the number of tabs. The end of one lets another one in.
func TestStreams(t *testing.T) {
	p := login(t, newCluster(t))
	var tabs []*stream
	for range 16 {
		tabs = append(tabs, p.stream(t, "/api/stream", "{}"))
	}
	if status, body := p.call(t, "/api/stream", "{}"); status != http.StatusTooManyRequests {
		t.Fatalf("status %d: %s", status, body)
	}
	tabs[0].cancel()
	for t.Context().Err() == nil {
		response, err := p.client.Do(p.request(t.Context(), t, "/api/stream", "{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
	}
}

// TestAllow has all tabs say whether changes are allowed.
func TestAllow(t *testing.T) {
	p := login(t, newCluster(t), "--allow-changes")
	s := p.stream(t, "/api/stream", "{}")
	if m := s.next(t); m == nil || !m.AllowChanges {
		t.Errorf("the first message is %+v", m)
	}
	for range 6 { // Only the switch changes something then.
		for m := s.next(t); m != nil && m.Type != "table"; m = s.next(t) {
		}
	}
	for _, allow := range []bool{false, true} {
		p.read(t, "/api/allow", map[string]bool{"allow": allow}, &struct{}{})
		if m := s.until(t, "allow", ""); m.AllowChanges != allow {
			t.Errorf("allowed: %v, want %v", m.AllowChanges, allow)
		}
	}
}
