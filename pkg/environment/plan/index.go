// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// maxListed limits the keys and the references of a record.
const maxListed = 1000

// hashPurpose is the Hasher's purpose for hashes of dependencies.
const hashPurpose = "dependency"

// Hasher computes hashes that cannot be computed without its key, as hmac.Hasher does.
type Hasher interface {
	Sum(purpose string, parts ...[]byte) string
}

// Hash returns a hash of the content of a source's object. Two versions have the same hash if their copies would be equal.
func Hash(hasher Hasher, object *unstructured.Unstructured) (string, error) {
	content, err := manifest.Canonical(object)
	if err != nil {
		return "", fmt.Errorf("hash %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	text, err := json.Marshal(content.Object)
	if err != nil {
		// The error may quote a value, which may be secret.
		return "", fmt.Errorf("hash %s %q: it is not of the shape of its type", object.GetKind(), object.GetName())
	}
	return hasher.Sum(hashPurpose, text), nil
}

// indexBuilder computes the records of the environment's index.
type indexBuilder struct {
	in     *Input
	copies *copier
	hasher Hasher
	// source holds Input.Source by key.
	source    map[Key]*unstructured.Unstructured
	selection *selection
	consent   *consent
}

// build returns the environment's index after the plan has been applied.
func (b *indexBuilder) build() ([]v1alpha1.EnvironmentDependencyRecord, error) {
	if b.in.Action == v1alpha1.SyncActionCluster {
		return b.refreshedRecords()
	}
	before := map[Key]v1alpha1.EnvironmentDependencyRecord{}
	for _, record := range b.in.Index {
		before[recordKey(&record)] = record
	}
	after := b.otherRecords(before)
	for _, ref := range b.selection.refs {
		key := keyOf(ref.Target)
		if !key.isDependency() || !b.selection.isCopied(key) {
			continue
		}
		record, err := b.newRecord(ref, before[key])
		if err != nil {
			return nil, err
		}
		if other, ok := after[key]; ok {
			record.ReferredBy = mergeReferrers(other.ReferredBy, record.ReferredBy)
			record.Optional = record.Optional && other.Optional
			record.ByPatches = record.ByPatches && other.ByPatches
		}
		after[key] = record
	}
	return slices.SortedFunc(maps.Values(after), compareRecords), nil
}

func compareRecords(a, b v1alpha1.EnvironmentDependencyRecord) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Target.Name, b.Target.Name))
}

// otherRecords returns the records that have referrers outside of the sync, with these referrers only.
func (b *indexBuilder) otherRecords(before map[Key]v1alpha1.EnvironmentDependencyRecord) map[Key]v1alpha1.EnvironmentDependencyRecord {
	kept := map[Key]v1alpha1.EnvironmentDependencyRecord{}
	if len(b.in.Only) == 0 {
		return kept
	}
	planned := sets.New[string]()
	for key := range b.selection.desired {
		planned.Insert(key.String())
	}
	for _, workload := range b.in.Only {
		planned.Insert(string(workload.Kind) + " " + workload.Name)
	}
	for key, record := range before {
		all := len(record.ReferredBy)
		record.ReferredBy = slices.DeleteFunc(slices.Clone(record.ReferredBy), func(r v1alpha1.DependencyReference) bool {
			return planned.Has(r.Kind + " " + r.Name)
		})
		if len(record.ReferredBy) > 0 {
			// The record does not say which of its references come from patches.
			record.ByPatches = record.ByPatches || len(record.ReferredBy) < all
			kept[key] = record
		}
	}
	return kept
}

// newRecord returns the record of a reference.
func (b *indexBuilder) newRecord(
	ref references.Reference, before v1alpha1.EnvironmentDependencyRecord,
) (v1alpha1.EnvironmentDependencyRecord, error) {
	record := v1alpha1.EnvironmentDependencyRecord{
		Environment: b.in.Environment.Name, Type: v1alpha1.DependencyType(ref.Type),
		Source:   v1alpha1.NamespacedObjectReference{Namespace: b.in.SourceNamespace, Name: ref.Name},
		Target:   v1alpha1.NamespacedObjectReference{Namespace: b.in.Environment.Spec.TargetNamespace, Name: ref.Name},
		Optional: ref.Optional(), LastDiscoveredAt: b.in.Now.DeepCopy(),
	}
	for _, referrer := range ref.Referrers {
		record.ReferredBy = append(record.ReferredBy, v1alpha1.DependencyReference{
			Kind: referrer.Kind, Name: referrer.Name, Field: referrer.Path.String(),
		})
	}
	record.ReferredBy = mergeReferrers(nil, record.ReferredBy)
	record.ByPatches = b.isOnlyFromPatches(ref.Target, before)
	return b.describe(record, before)
}

// isOnlyFromPatches reports whether only patches reference a target. A snapshot does not show that, so the recorded value
// stays.
func (b *indexBuilder) isOnlyFromPatches(target references.Target, before v1alpha1.EnvironmentDependencyRecord) bool {
	if b.in.hasSnapshot() {
		return before.Environment == "" || before.ByPatches
	}
	return !b.selection.unpatchedRefs.Has(target)
}

// describe adds the content's hash and keys to a record. If the source's object is missing or denied, they stay as
// recorded. SeenHash is cleared because the plan brings the newest version, except for denied objects, of which nothing newer
// is copied.
func (b *indexBuilder) describe(record, before v1alpha1.EnvironmentDependencyRecord) (v1alpha1.EnvironmentDependencyRecord, error) {
	key := recordKey(&record)
	object, ok := b.source[key]
	withheld := b.in.Denied.Has(key.GroupKind) || b.consent.excludes(key)
	record.Missing, record.SeenHash = !ok, ""
	if withheld {
		record.Missing = before.Missing // The state of the source is unknown.
	}
	if b.in.hasSnapshot() {
		return b.describeFromSnapshot(record, object)
	}
	if withheld {
		record.Hash, record.SeenHash, record.Keys = before.Hash, before.SeenHash, before.Keys
		return record, nil
	}
	if !ok {
		record.Hash, record.Keys = before.Hash, before.Keys
		return record, nil
	}
	var err error
	record.Hash, err = Hash(b.hasher, object)
	record.Keys = dataKeys(object)
	return record, err
}

// dataKeys returns the sorted keys of a ConfigMap or a Secret.
func dataKeys(object *unstructured.Unstructured) []string {
	names := sets.New[string]()
	for _, field := range [...]string{"data", "binaryData"} {
		content, _, _ := unstructured.NestedMap(object.Object, field)
		names.Insert(slices.Collect(maps.Keys(content))...)
	}
	list := sets.List(names)
	return list[:min(len(list), maxListed)]
}

func mergeReferrers(a, b []v1alpha1.DependencyReference) []v1alpha1.DependencyReference {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b v1alpha1.DependencyReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Field, b.Field))
	})
	all = slices.Compact(all)
	return all[:min(len(all), maxListed)]
}
