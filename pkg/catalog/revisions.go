// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// revisionsTable is the table of what catalogs offered before.
const revisionsTable = "revisions"

// revisions keep what catalogs offered with each revision that they can go back to. Of a revision there is a head, which
// says what was offered of each workload, and names manifests. A manifest is there once for all revisions that have it,
// under the first of them.
//
//	catalog/{uid}                     that there may be rows of a catalog, and what it is called
//	head/{uid}/{revision}             a head
//	manifest/{uid}/{revision}/{hash}  a manifest, as it was captured or as it was rendered
//
// A revision is there before the status of the catalog lists it, and goes after that. Whoever writes a revision uses only
// manifests of revisions that the status lists, and whoever removes revisions leaves those alone that the status does not
// know yet: so a server that has lost its Lease takes nothing away from the one that has it.
type revisions struct{ table *storetable.Table }

// head is what a catalog offered with a revision.
type head struct {
	Workloads []kept `json:"workloads"`
}

// kept is what was offered of a workload.
type kept struct {
	// Record is its CatalogWorkload, without the manifests.
	Record v1alpha1.CatalogWorkloadRecord `json:"record"`
	// Manifest and Rendered are where those are, empty where the CatalogWorkload had none.
	Manifest manifestKey `json:"manifest,omitempty"`
	Rendered manifestKey `json:"rendered,omitempty"`
}

// manifestKey is {revision}/{hash}.
type manifestKey string

func numbered(revision int64) string { return fmt.Sprintf("%016x", revision) }

func headsOf(uid types.UID) string     { return "head/" + string(uid) + "/" }
func manifestsOf(uid types.UID) string { return "manifest/" + string(uid) + "/" }
func catalogRow(uid types.UID) string  { return "catalog/" + string(uid) }

// deleteAll removes the rows below a prefix that ends with a slash, the byte before 0.
func (r *revisions) deleteAll(ctx context.Context, prefix string) error {
	return r.table.DeleteRange(ctx, prefix, prefix[:len(prefix)-1]+"0")
}

// keep writes a revision of a catalog whose status does not list it yet. It can be written again, also with other content.
// The records are the CatalogWorkloads that the entries are about.
func (r *revisions) keep(
	ctx context.Context, catalog *v1alpha1.AppCatalog, revision int64, entries []v1alpha1.CatalogEntry,
	records map[reference]*v1alpha1.CatalogWorkload,
) error {
	before, err := r.heads(ctx, catalog.UID, reachable(catalog))
	if err != nil {
		return err
	}
	// What an attempt before this one may have left.
	if err := r.deleteAll(ctx, manifestsOf(catalog.UID)+numbered(revision)+"/"); err != nil {
		return err
	}
	next := newWriting(catalog.UID, revision, before)
	for _, entry := range entries {
		next.add(entry, records[referenceTo(entry)], before[catalog.Status.Revision])
	}
	rows, err := next.finish(catalog)
	if err != nil {
		return err
	}
	if err := r.table.Put(ctx, rows...); err != nil {
		return fmt.Errorf("keep revision %d: %w", revision, err)
	}
	return nil
}

// reachable are the revisions that a catalog can go back to, and the one that it has gone back to.
func reachable(catalog *v1alpha1.AppCatalog) sets.Set[int64] {
	out := sets.New[int64]()
	for _, there := range catalog.Status.History {
		out.Insert(there.Revision)
	}
	if pinned := catalog.Spec.PinnedRevision; pinned != nil {
		out.Insert(*pinned)
	}
	return out
}

func referenceTo(entry v1alpha1.CatalogEntry) reference {
	return reference{Kind: entry.Kind, Name: entry.Name}
}

// heads returns those of some revisions, as far as they are there.
func (r *revisions) heads(ctx context.Context, uid types.UID, of sets.Set[int64]) (map[int64]head, error) {
	out := map[int64]head{}
	for revision := range of {
		key := headsOf(uid) + numbered(revision)
		value, there, err := r.table.Get(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("read revision %d: %w", revision, err)
		}
		if !there {
			continue
		}
		if found := readHead(ctx, key, value); found != nil {
			out[revision] = *found
		}
	}
	return out, nil
}

// readHead returns nil for a head that cannot be read: then its revision cannot be gone back to, and all else goes on.
func readHead(ctx context.Context, row string, value []byte) *head {
	out := &head{}
	if err := json.Unmarshal(value, out); err != nil {
		klog.FromContext(ctx).Error(err, "What a catalog offered before cannot be read", "row", row)
		return nil
	}
	return out
}

// manifests are the keys of all manifests that a head names; nil names none.
func (h *head) manifests() sets.Set[manifestKey] {
	out := sets.New[manifestKey]()
	if h == nil {
		return out
	}
	for _, workload := range h.Workloads {
		out.Insert(workload.Manifest, workload.Rendered)
	}
	return out.Delete("")
}

// writing is a revision that is being written.
type writing struct {
	uid      types.UID
	revision int64
	head     head
	rows     []storetable.Row
	// there is where a manifest of a hash is.
	there map[string]manifestKey
	first bool
}

func newWriting(uid types.UID, revision int64, before map[int64]head) *writing {
	out := &writing{uid: uid, revision: revision, there: map[string]manifestKey{}, first: len(before) == 0}
	for _, h := range before {
		for key := range h.manifests() {
			out.there[string(key[len(numbered(0))+1:])] = key
		}
	}
	return out
}

// add takes up what is offered of a workload: what its CatalogWorkload holds, or where somebody has deleted that, what
// it held in the revision before.
func (w *writing) add(entry v1alpha1.CatalogEntry, record *v1alpha1.CatalogWorkload, before head) {
	if record == nil || record.Status.Hash != entry.Hash {
		at := slices.IndexFunc(before.Workloads, func(k kept) bool {
			return k.Record.Kind == entry.Kind && k.Record.Name == entry.Name && k.Record.Hash == entry.Hash
		})
		if at >= 0 {
			w.head.Workloads = append(w.head.Workloads, before.Workloads[at])
			return
		}
		record = &v1alpha1.CatalogWorkload{Status: v1alpha1.CatalogWorkloadRecord{Kind: entry.Kind, Name: entry.Name, Hash: entry.Hash}}
	}
	next := kept{Record: record.Status, Manifest: w.manifest(record.Status.Manifest), Rendered: w.manifest(record.Status.Rendered)}
	next.Record.Missing, next.Record.Revision = entry.Missing, entry.Revision
	next.Record.Manifest, next.Record.Rendered = nil, nil
	w.head.Workloads = append(w.head.Workloads, next)
}

// manifest says where a manifest is, and has it written if it is nowhere yet.
func (w *writing) manifest(raw *runtime.RawExtension) manifestKey {
	if raw == nil {
		return ""
	}
	sum := sha256.Sum256(raw.Raw)
	hash := hex.EncodeToString(sum[:])
	if key, there := w.there[hash]; there {
		return key
	}
	key := manifestKey(numbered(w.revision) + "/" + hash)
	w.there[hash] = key
	w.rows = append(w.rows, storetable.Row{Key: manifestsOf(w.uid) + string(key), Value: raw.Raw})
	return key
}

// finish returns the rows in the order in which they are to be written: a head names manifests that are there.
func (w *writing) finish(catalog *v1alpha1.AppCatalog) ([]storetable.Row, error) {
	value, err := json.Marshal(w.head)
	if err != nil {
		return nil, fmt.Errorf("encode revision %d: %w", w.revision, err)
	}
	var rows []storetable.Row
	if w.first {
		rows = append(rows, storetable.Row{Key: catalogRow(w.uid), Value: []byte(catalog.Namespace + "/" + catalog.Name)})
	}
	rows = append(rows, w.rows...)
	return append(rows, storetable.Row{Key: headsOf(w.uid) + numbered(w.revision), Value: value}), nil
}

// prune removes the revisions that a catalog cannot go back to any more.
func (r *revisions) prune(ctx context.Context, catalog *v1alpha1.AppCatalog) error {
	wanted, prefix := reachable(catalog), headsOf(catalog.UID)
	used, unused := sets.New[manifestKey](), sets.New[manifestKey]()
	var heads []string
	for row, err := range r.table.Scan(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("look for revisions that are too old: %w", err)
		}
		revision, err := strconv.ParseInt(row.Key[len(prefix):], 16, 64)
		found := readHead(ctx, row.Key, row.Value)
		if err == nil && found != nil && (wanted.Has(revision) || revision > catalog.Status.Revision) {
			used = used.Union(found.manifests())
			continue
		}
		heads, unused = append(heads, row.Key), unused.Union(found.manifests())
	}
	var keys []string
	for key := range unused.Difference(used) {
		keys = append(keys, manifestsOf(catalog.UID)+string(key))
	}
	// The heads last: what they name would not be found any more.
	if err := r.table.Delete(ctx, append(keys, heads...)...); err != nil {
		return fmt.Errorf("remove revisions that are too old: %w", err)
	}
	return nil
}
