// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revisions stores what each catalog offered with each revision of its history.
//
// A revision has a head row, which lists the workloads offered and refers to their manifests. A manifest is stored once,
// under the first revision that has it:
//
//	catalog/{uid}                     the name of a catalog that may have rows
//	head/{uid}/{revision}             a head
//	manifest/{uid}/{revision}/{hash}  a manifest, captured or rendered
//
// # Order of writes
//
// A revision is written before the status of its catalog lists it, and deleted after the status has dropped it. A write
// refers only to manifests of revisions that the status lists, and Prune keeps revisions that are newer than the status.
// So a server that has lost its Lease never deletes what the new leader refers to.
package revisions

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// TableName is the name of the table of the work store that revisions are stored in.
const TableName = "revisions"

// Store reads and writes revisions. Concurrent calls for one catalog are not allowed, except of Offered and Taken.
type Store struct{ table *table.Table }

// New returns the revisions of a work store.
func New(store *table.Store) *Store { return &Store{store.Table(TableName)} }

// head lists what a catalog offered with a revision.
type head struct {
	Workloads []offer `json:"workloads"`
	// Taken is the latest earlier revision that was taken from the source as a whole, if this one is a rollback, or follows one that has not
	// ended; 0 otherwise.
	Taken int64 `json:"taken,omitempty"`
}

// offer is one workload as it was offered.
type offer struct {
	// Record is the CatalogWorkload without its manifests.
	Record v1alpha1.CatalogWorkloadRecord `json:"record"`
	// Manifest and Rendered refer to the manifests; empty where the CatalogWorkload had none.
	Manifest manifestKey `json:"manifest,omitempty"`
	Rendered manifestKey `json:"rendered,omitempty"`
}

// manifestKey is {revision}/{hash}.
type manifestKey string

// hash returns the part of the key after the revision.
func (k manifestKey) hash() string { return string(k[len(number(0))+1:]) }

// number formats a revision so that keys sort by it.
func number(revision int64) string { return fmt.Sprintf("%016x", revision) }

func headPrefix(uid types.UID) string     { return "head/" + string(uid) + "/" }
func manifestPrefix(uid types.UID) string { return "manifest/" + string(uid) + "/" }
func catalogKey(uid types.UID) string     { return "catalog/" + string(uid) }

// reachable returns the revisions that a catalog can roll back to, and the one it is pinned to.
func reachable(catalog *v1alpha1.AppCatalog) sets.Set[int64] {
	out := sets.New[int64]()
	for _, entry := range catalog.Status.History {
		out.Insert(entry.Revision)
	}
	if pinned := catalog.Spec.PinnedRevision; pinned != nil {
		out.Insert(*pinned)
	}
	return out
}

// heads returns the stored heads of the given revisions.
func (s *Store) heads(ctx context.Context, uid types.UID, revisions sets.Set[int64]) (map[int64]head, error) {
	out := map[int64]head{}
	for revision := range revisions {
		key := headPrefix(uid) + number(revision)
		value, exists, err := s.table.Get(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("read revision %d: %w", revision, err)
		}
		if !exists {
			continue
		}
		if found := decodeHead(ctx, key, value); found != nil {
			out[revision] = *found
		}
	}
	return out, nil
}

// decodeHead returns nil for a head that cannot be decoded. A rollback to its revision is then not possible; everything
// else is unaffected.
func decodeHead(ctx context.Context, key string, value []byte) *head {
	out := &head{}
	if err := json.Unmarshal(value, out); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to decode a catalog revision", "row", key)
		return nil
	}
	return out
}

// manifests returns the keys of all manifests that a head refers to; nil refers to none.
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

// Prune deletes the revisions that a catalog can no longer roll back to. While it offers a rollback, the revision that was last taken from
// the source stays.
func (s *Store) Prune(ctx context.Context, catalog *v1alpha1.AppCatalog) error {
	wanted, prefix := reachable(catalog), headPrefix(catalog.UID)
	current, err := s.heads(ctx, catalog.UID, sets.New(catalog.Status.Revision))
	if err != nil {
		return err
	}
	wanted.Insert(current[catalog.Status.Revision].Taken)
	used, unused := sets.New[manifestKey](), sets.New[manifestKey]()
	var heads []string
	for row, err := range s.table.Scan(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list revisions: %w", err)
		}
		revision, err := strconv.ParseInt(row.Key[len(prefix):], 16, 64)
		found := decodeHead(ctx, row.Key, row.Value)
		if err == nil && found != nil && (wanted.Has(revision) || revision > catalog.Status.Revision) {
			used = used.Union(found.manifests())
			continue
		}
		heads, unused = append(heads, row.Key), unused.Union(found.manifests())
	}
	var keys []string
	for key := range unused.Difference(used) {
		keys = append(keys, manifestPrefix(catalog.UID)+string(key))
	}
	// Heads last: without its head, a manifest would never be found again.
	if err := s.table.Delete(ctx, append(keys, heads...)...); err != nil {
		return fmt.Errorf("delete old revisions: %w", err)
	}
	return nil
}

// Delete deletes all revisions of a catalog.
func (s *Store) Delete(ctx context.Context, uid types.UID) error {
	for _, prefix := range []string{manifestPrefix(uid), headPrefix(uid)} {
		if err := s.deleteAll(ctx, prefix); err != nil {
			return fmt.Errorf("delete the revisions of a catalog: %w", err)
		}
	}
	if err := s.table.Delete(ctx, catalogKey(uid)); err != nil {
		return fmt.Errorf("delete the revisions of a catalog: %w", err)
	}
	return nil
}

// deleteAll deletes the rows below a prefix that ends with a slash, the byte before 0.
func (s *Store) deleteAll(ctx context.Context, prefix string) error {
	return s.table.DeleteRange(ctx, prefix, prefix[:len(prefix)-1]+"0")
}

// Catalogs returns the names of the catalogs that may have rows, by UID.
func (s *Store) Catalogs(ctx context.Context) (map[types.UID]types.NamespacedName, error) {
	out := map[types.UID]types.NamespacedName{}
	prefix := catalogKey("")
	for row, err := range s.table.Scan(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list catalogs with revisions: %w", err)
		}
		namespace, name, _ := strings.Cut(string(row.Value), "/")
		out[types.UID(row.Key[len(prefix):])] = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return out, nil
}
