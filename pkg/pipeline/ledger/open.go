// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Open returns the ledger that the rows with a prefix hold, as an earlier process left it.
func Open(ctx context.Context, config Config) (*Ledger, error) {
	if config.MaxBytes <= 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	l := &Ledger{
		config: config,
		wake:   make(chan struct{}, 1), unwritten: make(chan struct{}, 1), crowded: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		objects: map[objectType]map[objectName]*object{},
		queues:  map[item.Kind]*queue{},
		dirty:   map[item.Key]struct{}{},
		items:   map[item.Key][]byte{},
	}
	l.room = sync.NewCond(&l.mu)
	for _, kind := range kinds {
		l.queues[kind] = &queue{}
	}
	r := restoring{Ledger: l, namespaces: map[string]string{}, visited: map[item.Key]struct{}{}}
	if err := r.restore(ctx); err != nil {
		return nil, fmt.Errorf("read what a sink has been told: %w", err)
	}
	return l, nil
}

// restoring is a ledger whose rows are being read.
type restoring struct {
	*Ledger
	// namespaces are those of objects, each once.
	namespaces map[string]string
	// visited are the objects of the batch that have rows.
	visited map[item.Key]struct{}
	// headless says that the row of the batch cannot be read.
	headless bool
	// strays are keys of rows of which nobody can tell what object they are of.
	strays []string
	// example is why one of the rows cannot be read.
	example error
}

func (r *restoring) restore(ctx context.Context) error {
	if err := r.restoreHead(ctx); err != nil {
		return err
	}
	for stored, err := range r.config.Table.ScanEach(ctx, r.config.Prefix, "") {
		var unopened *table.UnopenedError
		if err != nil && !errors.As(err, &unopened) {
			return err
		}
		if stored.Key != r.headKey() {
			r.restoreRow(stored, err)
		}
	}
	r.restored()
	if r.unreadable > 0 {
		klog.FromContext(ctx).Error(r.example, "A sink is told again of objects whose rows cannot be read", "rows", r.unreadable,
			"first", r.config.Table.FullKey(r.config.Prefix))
	}
	return r.config.Table.Delete(ctx, r.strays...)
}

// restoreHead reads the batch.
func (r *restoring) restoreHead(ctx context.Context) error {
	value, found, err := r.config.Table.Get(ctx, r.headKey())
	var unopened *table.UnopenedError
	switch {
	case errors.As(err, &unopened):
	case err != nil || !found:
		return err
	default:
		r.frozen, r.sequence, err = decodeHead(value)
	}
	if err != nil {
		r.headless = true
		r.lament(err)
	}
	return nil
}

// lament counts a row that cannot be read.
func (r *restoring) lament(err error) {
	if r.unreadable++; r.example == nil {
		r.example = err
	}
}

// restoreRow reads the row of an object.
func (r *restoring) restoreRow(stored table.Row, err error) {
	key, misnamed := item.ParseKey(strings.TrimPrefix(stored.Key, r.config.Prefix))
	if misnamed != nil {
		r.strays = append(r.strays, stored.Key)
		r.lament(misnamed)
		return
	}
	o := r.add(r.own(key))
	var read row
	if err == nil {
		read, err = decodeRow(stored.Value)
	}
	if err != nil {
		r.lament(err)
		read = row{told: unknown}
	}
	r.tell(o, read.told, digestOf(read.Digest))
	r.sequence = max(r.sequence, read.Settled)
	r.restoreChange(o, key, read)
}

// own returns a key that does not keep the whole key of its row in memory.
func (r *restoring) own(key item.Key) item.Key {
	namespace, found := r.namespaces[key.Namespace]
	if !found {
		namespace = strings.Clone(key.Namespace)
		r.namespaces[namespace] = namespace
	}
	key.Namespace, key.Name = namespace, strings.Clone(key.Name)
	return key
}

// restoreChange takes back what is pending of an object, unless that is in the batch.
func (r *restoring) restoreChange(o *object, key item.Key, read row) {
	o.size = uint32(len(read.item))
	change := &pending{key: key, remove: read.Pending == remove, digest: digestOf(read.PendingDigest)}
	inBatch := r.frozen != nil && r.restoreEntry(o, change, read.Settled)
	if read.Pending == "" || inBatch {
		return
	}
	p := r.pend(o, key)
	p.remove, p.digest = change.remove, change.digest
	if o.frozen && !p.remove {
		r.items[key] = read.item
	}
	r.schedule(p, func(now time.Time) {
		if p.due = now; !p.remove { // What was deleted meanwhile is to be found out before.
			p.due = now.Add(r.config.Debounce())
		}
	})
}

// restoreEntry says whether the batch tells of an object what is pending in its row.
func (r *restoring) restoreEntry(o *object, change *pending, settled int64) bool {
	e := r.frozen.entries[change.key]
	if e == nil {
		return false
	}
	r.visited[change.key] = struct{}{}
	if settled == r.frozen.sequence {
		r.settled(e)
		return false
	}
	o.frozen = true
	return e.remove == change.remove && e.digest == change.digest
}

// settled notes that an entry of the batch was settled before.
func (r *restoring) settled(e *entry) {
	e.settled, e.text = true, nil
	if r.frozen.left--; r.frozen.left == 0 {
		r.headDirty = true
	}
}

// restored brings together what all rows say.
func (r *restoring) restored() {
	if r.frozen != nil {
		r.restoreWithoutRows()
	}
	if !r.headless {
		return
	}
	// Whatever was to be told may have been in the batch.
	for _, objects := range r.objects {
		for _, o := range objects {
			if o.told == nothing {
				r.tell(o, unknown, [16]byte{})
			}
		}
	}
}

// restoreWithoutRows takes back the entries of the batch whose objects have no row: a row goes when its removal was delivered.
func (r *restoring) restoreWithoutRows() {
	for key, e := range r.frozen.entries {
		if _, visited := r.visited[key]; visited {
			continue
		}
		if e.remove {
			r.settled(e)
		} else {
			r.add(key).frozen = true
		}
	}
}
