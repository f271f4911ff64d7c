// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Content is what a catalog offers with a revision.
type Content struct {
	Entries []v1alpha1.CatalogEntry
	// Records are the CatalogWorkloads of the entries.
	Records map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkload
	// IsRollback is set if the content is that of an earlier revision, and was not taken from the source now. After a rollback, some of the
	// content is, until a revision has EndsRollback.
	IsRollback, EndsRollback bool
}

// Write stores a revision of a catalog whose status does not list it yet. Calling it again overwrites the revision.
func (s *Store) Write(ctx context.Context, catalog *v1alpha1.AppCatalog, revision int64, content Content) error {
	stored, err := s.heads(ctx, catalog.UID, reachable(catalog))
	if err != nil {
		return err
	}
	// An earlier attempt may have left manifests.
	if err := s.deleteAll(ctx, manifestPrefix(catalog.UID)+number(revision)+"/"); err != nil {
		return err
	}
	next := newWriter(catalog.UID, revision, stored)
	previous := stored[catalog.Status.Revision]
	if content.IsRollback || previous.Taken != 0 && !content.EndsRollback {
		next.head.Taken = cmp.Or(previous.Taken, catalog.Status.Revision)
	}
	for _, entry := range content.Entries {
		next.add(entry, content.Records[v1alpha1.WorkloadReference{Kind: entry.Kind, Name: entry.Name}], previous)
	}
	rows, err := next.finish(catalog)
	if err != nil {
		return err
	}
	if err := s.table.Put(ctx, rows...); err != nil {
		return fmt.Errorf("store revision %d: %w", revision, err)
	}
	return nil
}

// EndRollback stores that the content of a revision, which was a rollback, was taken from the source since.
func (s *Store) EndRollback(ctx context.Context, catalog types.UID, revision int64) error {
	stored, err := s.heads(ctx, catalog, sets.New(revision))
	ended, exists := stored[revision]
	if err != nil || !exists || ended.Taken == 0 {
		return err
	}
	ended.Taken = 0
	value, err := json.Marshal(ended)
	if err != nil {
		return fmt.Errorf("encode revision %d: %w", revision, err)
	}
	if err := s.table.Put(ctx, table.Row{Key: headPrefix(catalog) + number(revision), Value: value}); err != nil {
		return fmt.Errorf("store revision %d: %w", revision, err)
	}
	return nil
}

// writer collects the rows of one revision.
type writer struct {
	uid       types.UID
	revision  int64
	head      head
	manifests []table.Row
	// stored has the key of each manifest that is stored or collected, by hash.
	stored map[string]manifestKey
	// first is true if the catalog has no revision yet.
	first bool
}

func newWriter(uid types.UID, revision int64, stored map[int64]head) *writer {
	out := &writer{uid: uid, revision: revision, stored: map[string]manifestKey{}, first: len(stored) == 0}
	for _, h := range stored {
		for key := range h.manifests() {
			out.stored[key.hash()] = key
		}
	}
	return out
}

// add adds a workload: as its CatalogWorkload has it, or as the previous revision had it if the CatalogWorkload was deleted.
func (w *writer) add(entry v1alpha1.CatalogEntry, record *v1alpha1.CatalogWorkload, previous head) {
	if record == nil || record.Status.Hash != entry.Hash {
		at := slices.IndexFunc(previous.Workloads, func(o offer) bool {
			return o.Record.Kind == entry.Kind && o.Record.Name == entry.Name && o.Record.Hash == entry.Hash
		})
		if at >= 0 {
			w.head.Workloads = append(w.head.Workloads, previous.Workloads[at])
			return
		}
		record = &v1alpha1.CatalogWorkload{Status: v1alpha1.CatalogWorkloadRecord{Kind: entry.Kind, Name: entry.Name, Hash: entry.Hash}}
	}
	next := offer{Record: record.Status, Manifest: w.addManifest(record.Status.Manifest), Rendered: w.addManifest(record.Status.Rendered)}
	next.Record.Missing, next.Record.Revision = entry.Missing, entry.Revision
	next.Record.Manifest, next.Record.Rendered = nil, nil
	w.head.Workloads = append(w.head.Workloads, next)
}

// addManifest returns the key of a manifest, and adds its row if it is not stored yet.
func (w *writer) addManifest(raw *runtime.RawExtension) manifestKey {
	if raw == nil {
		return ""
	}
	sum := sha256.Sum256(raw.Raw)
	hash := hex.EncodeToString(sum[:])
	if key, ok := w.stored[hash]; ok {
		return key
	}
	key := manifestKey(number(w.revision) + "/" + hash)
	w.stored[hash] = key
	w.manifests = append(w.manifests, table.Row{Key: manifestPrefix(w.uid) + string(key), Value: raw.Raw})
	return key
}

// finish returns the rows in the order in which they must be written: manifests before the head that refers to them.
func (w *writer) finish(catalog *v1alpha1.AppCatalog) ([]table.Row, error) {
	value, err := json.Marshal(w.head)
	if err != nil {
		return nil, fmt.Errorf("encode revision %d: %w", w.revision, err)
	}
	var rows []table.Row
	if w.first {
		rows = append(rows, table.Row{Key: catalogKey(w.uid), Value: []byte(catalog.Namespace + "/" + catalog.Name)})
	}
	rows = append(rows, w.manifests...)
	return append(rows, table.Row{Key: headPrefix(w.uid) + number(w.revision), Value: value}), nil
}
