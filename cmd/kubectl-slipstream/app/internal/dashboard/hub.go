// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// rowKey identifies an object of a resource.
type rowKey struct{ namespace, name string }

func keyOf(r *cli.Row) rowKey { return rowKey{r.Namespace, r.Name} }

// table is what the server has listed of a resource.
type table struct {
	// listed is set once there was a list.
	listed  bool
	columns cli.Columns
	rows    map[rowKey]*cli.Row
	// most is the number of rows that are kept, the newest ones. 0 is no limit.
	most int
	// refused and lost say why the rows are absent, or may be old. They are empty otherwise.
	refused, lost string
}

// hub has the rows of all resources, and the streams that show them. Each stream has the keys of the rows that it has not sent yet rather
// than a queue of changes, so that one that is slow needs memory only for the number of objects, and delays no other.
type hub struct {
	mu      sync.Mutex
	tables  map[string]*table
	streams map[*subscription]struct{}
}

// newHub returns a hub for resources. limits are the numbers of rows that are kept of some.
func newHub(resources []string, limits map[string]int) *hub {
	h := &hub{tables: map[string]*table{}, streams: map[*subscription]struct{}{}}
	for _, resource := range resources {
		h.tables[resource] = &table{rows: map[rowKey]*cli.Row{}, most: limits[resource]}
	}
	return h
}

// subscription is what a stream has to send.
type subscription struct {
	// changed has an item if there is something to send.
	changed chan struct{}
	pending map[string]*pending
}

// pending is what a stream has to send of a resource.
type pending struct {
	// whole is set if all rows are to be sent, and otherwise keys are those of the rows.
	whole bool
	keys  map[rowKey]struct{}
	// lost is the state that was sent last.
	lost string
}

// subscribe returns a subscription that begins with all rows, unless there are a number of subscriptions already.
func (h *hub) subscribe(most int) *subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= most {
		return nil
	}
	s := &subscription{changed: make(chan struct{}, 1), pending: map[string]*pending{}}
	for resource, t := range h.tables {
		s.pending[resource] = &pending{whole: t.listed || t.refused != "", keys: map[rowKey]struct{}{}}
	}
	h.streams[s] = struct{}{}
	s.notify()
	return s
}

func (h *hub) unsubscribe(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

// notify has the stream look for what to send.
func (s *subscription) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// notifyAll has all streams look for what to send.
func (h *hub) notifyAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		s.notify()
	}
}

// update changes a table, and has all streams send it: all rows, or those of the keys that change returns.
func (h *hub) update(resource string, change func(*table) (whole bool, keys []rowKey)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	whole, keys := change(h.tables[resource])
	for s := range h.streams {
		p := s.pending[resource]
		if whole {
			p.whole, p.keys = true, map[rowKey]struct{}{}
		}
		for _, key := range keys {
			if !p.whole {
				p.keys[key] = struct{}{}
			}
		}
		s.notify()
	}
}

// list replaces all rows of a resource.
func (h *hub) list(resource string, columns cli.Columns, rows []*cli.Row) {
	h.update(resource, func(t *table) (bool, []rowKey) {
		t.listed, t.columns, t.refused, t.lost = true, columns, "", ""
		t.rows = make(map[rowKey]*cli.Row, len(rows))
		for _, r := range rows {
			t.rows[keyOf(r)] = r
		}
		t.trim()
		return true, nil
	})
}

// apply applies changes of a watch.
func (h *hub) apply(u cli.TableUpdate) {
	if u.All {
		h.list(u.Resource, u.Columns, u.Rows)
		return
	}
	h.update(u.Resource, func(t *table) (bool, []rowKey) {
		columnsChanged := u.Columns != nil && !slices.Equal(u.Columns, t.columns)
		if columnsChanged {
			t.columns = u.Columns
		}
		var keys []rowKey
		for _, r := range u.Rows {
			keys = append(keys, keyOf(r))
			if u.Deleted {
				delete(t.rows, keyOf(r))
			} else {
				t.rows[keyOf(r)] = r
			}
		}
		return columnsChanged, append(keys, t.trim()...)
	})
}

// refuse removes the rows of a resource that the user may not list.
func (h *hub) refuse(resource, why string) {
	h.update(resource, func(t *table) (bool, []rowKey) {
		isNew := t.refused != why || t.lost != ""
		t.listed, t.refused, t.lost, t.rows = false, why, "", map[rowKey]*cli.Row{}
		return isNew, nil
	})
}

// lose keeps the rows of a resource, which may be old now. list ends that.
func (h *hub) lose(resource, why string) {
	h.update(resource, func(t *table) (bool, []rowKey) {
		t.lost = why
		return false, nil
	})
}

// trim removes the oldest rows beyond the limit, and returns their keys.
func (t *table) trim() (removed []rowKey) {
	if t.most == 0 || len(t.rows) <= t.most {
		return nil
	}
	for _, r := range slices.SortedFunc(maps.Values(t.rows), newestFirst)[t.most:] {
		removed = append(removed, keyOf(r))
		delete(t.rows, keyOf(r))
	}
	return removed
}

// newestFirst orders rows by time, and those of one time by their names, which sort by time for Changes.
func newestFirst(a, b *cli.Row) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}

// take returns the messages that a stream has to send, and forgets them. The rows are only read, so they can be encoded without the lock.
func (h *hub) take(s *subscription) (messages []any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(h.tables)) {
		t, p := h.tables[resource], s.pending[resource]
		switch {
		case p.whole && t.refused != "":
			messages = append(messages, refusedMessage{"refused", resource, t.refused})
		case p.whole:
			messages = append(messages, t.message(resource))
		case len(p.keys) > 0:
			messages = append(messages, t.changes(resource, p.keys))
		}
		if p.lost != t.lost && t.refused == "" {
			messages = append(messages, stateMessage(resource, t.lost))
		}
		p.whole, p.keys, p.lost = false, map[rowKey]struct{}{}, t.lost
	}
	return messages
}

// message returns the message with all rows.
func (t *table) message(resource string) tableMessage {
	m := tableMessage{Type: "table", Resource: resource, Columns: t.columns, Rows: make([]row, 0, len(t.rows))}
	for _, r := range slices.SortedFunc(maps.Values(t.rows), byName) {
		m.Rows = append(m.Rows, rowOf(r))
	}
	return m
}

// byName orders rows by namespace and name.
func byName(a, b *cli.Row) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// changes returns the message with some rows. Those that do not exist are deleted.
func (t *table) changes(resource string, keys map[rowKey]struct{}) rowsMessage {
	m := rowsMessage{Type: "rows", Resource: resource, Rows: []row{}, Deleted: [][2]string{}}
	for key := range keys {
		if r := t.rows[key]; r != nil {
			m.Rows = append(m.Rows, rowOf(r))
		} else {
			m.Deleted = append(m.Deleted, [2]string{key.namespace, key.name})
		}
	}
	return m
}

// The messages of a stream.
type (
	hello struct {
		Type         string `json:"type"`
		User         string `json:"user"`
		Context      string `json:"context"`
		Namespace    string `json:"namespace"`
		Note         string `json:"note,omitempty"`
		AllowChanges bool   `json:"allowChanges"`
		Version      string `json:"version"`
		// Hosted is set if a proxy authenticates the user.
		Hosted bool `json:"hosted,omitempty"`
		// LogoutURL is where the browser goes after a user has logged out, empty if it stays.
		LogoutURL string `json:"logoutURL,omitempty"`
		// Flags are those of the connection, which commands on the page need.
		Flags string `json:"flags,omitempty"`
	}
	tableMessage struct {
		Type     string   `json:"type"`
		Resource string   `json:"resource"`
		Columns  []string `json:"columns"`
		Rows     []row    `json:"rows"`
	}
	rowsMessage struct {
		Type     string      `json:"type"`
		Resource string      `json:"resource"`
		Rows     []row       `json:"rows"`
		Deleted  [][2]string `json:"deleted"`
	}
	refusedMessage struct {
		Type     string `json:"type"`
		Resource string `json:"resource"`
		Error    string `json:"error"`
	}
	lostMessage struct {
		Type     string `json:"type"`
		Resource string `json:"resource"`
		Error    string `json:"error,omitempty"`
	}
	allowMessage struct {
		Type         string `json:"type"`
		AllowChanges bool   `json:"allowChanges"`
	}
	pingMessage struct {
		Type string `json:"type"`
	}
	// againMessage asks the page to open the stream again, so that the user is checked again.
	againMessage struct {
		Type string `json:"type"`
	}
)

// stateMessage says that the watch of a resource is broken, or works again.
func stateMessage(resource, lost string) lostMessage {
	if lost == "" {
		return lostMessage{Type: "found", Resource: resource}
	}
	return lostMessage{"lost", resource, lost}
}

// row is an object as the page shows it.
type row struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Cells     []string          `json:"cells"`
	Version   string            `json:"version"`
	At        string            `json:"at"`
}

func rowOf(r *cli.Row) row {
	labels := r.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return row{r.Namespace, r.Name, labels, r.Cells, r.Version, r.Created.UTC().Format(time.RFC3339)}
}
