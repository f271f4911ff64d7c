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

// maxListed is how many keys, and how many references, a record has at most.
const maxListed = 1000

// hashed is the purpose of the hashes of dependencies.
const hashed = "dependency"

// Hasher makes hashes that nobody can make who does not have its key, as keyedhash.Hasher does.
type Hasher interface {
	Sum(purpose string, parts ...[]byte) string
}

// Hash tells versions of a dependency apart, by an object of the source: it is equal when what would be copied is.
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
	return hasher.Sum(hashed, text), nil
}

// index returns what the environment's records say when the plan has been carried out.
func (d *draft) index() ([]v1alpha1.EnvironmentDependencyRecord, error) {
	if d.Action == v1alpha1.SyncActionCluster {
		return d.refreshed()
	}
	before := map[Key]v1alpha1.EnvironmentDependencyRecord{}
	for _, record := range d.Index {
		before[recordKey(&record)] = record
	}
	after := d.others(before)
	for _, ref := range d.found {
		key := keyOf(ref.Target)
		if !key.isDependency() || !d.isCopied(key) {
			continue
		}
		record, err := d.record(ref, before[key])
		if err != nil {
			return nil, err
		}
		if other, ok := after[key]; ok {
			record.ReferredBy = mergedReferrers(other.ReferredBy, record.ReferredBy)
			record.Optional = record.Optional && other.Optional
			record.ByPatches = record.ByPatches && other.ByPatches
		}
		after[key] = record
	}
	return slices.SortedFunc(maps.Values(after), compareRecords), nil
}

// isCopied says whether an object is copied, or will be when the source has it. The account that each namespace has is only if it
// has something to copy.
func (d *draft) isCopied(key Key) bool {
	return d.wanted[key] != nil || d.absent.Has(key) && key != account
}

func compareRecords(a, b v1alpha1.EnvironmentDependencyRecord) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Target.Name, b.Target.Name))
}

// others are the records of what is referred to by more than what the plan is about, by that alone.
func (d *draft) others(before map[Key]v1alpha1.EnvironmentDependencyRecord) map[Key]v1alpha1.EnvironmentDependencyRecord {
	kept := map[Key]v1alpha1.EnvironmentDependencyRecord{}
	if len(d.Only) == 0 {
		return kept
	}
	planned := sets.New[string]()
	for key := range d.wanted {
		planned.Insert(key.String())
	}
	for _, workload := range d.Only {
		planned.Insert(string(workload.Kind) + " " + workload.Name)
	}
	for key, record := range before {
		all := len(record.ReferredBy)
		record.ReferredBy = slices.DeleteFunc(slices.Clone(record.ReferredBy), func(r v1alpha1.DependencyReference) bool {
			return planned.Has(r.Kind + " " + r.Name)
		})
		if len(record.ReferredBy) > 0 {
			// Which of the references come from patches is not kept.
			record.ByPatches = record.ByPatches || len(record.ReferredBy) < all
			kept[key] = record
		}
	}
	return kept
}

// record is what is recorded of a reference.
func (d *draft) record(
	ref references.Reference, before v1alpha1.EnvironmentDependencyRecord,
) (v1alpha1.EnvironmentDependencyRecord, error) {
	record := v1alpha1.EnvironmentDependencyRecord{
		Environment: d.Environment.Name, Type: v1alpha1.DependencyType(ref.Type),
		Source:   v1alpha1.NamespacedObjectReference{Namespace: d.SourceNamespace, Name: ref.Name},
		Target:   v1alpha1.NamespacedObjectReference{Namespace: d.Environment.Spec.TargetNamespace, Name: ref.Name},
		Optional: ref.Optional(), LastDiscoveredAt: d.Now.DeepCopy(),
	}
	for _, referrer := range ref.Referrers {
		record.ReferredBy = append(record.ReferredBy, v1alpha1.DependencyReference{
			Kind: referrer.Kind, Name: referrer.Name, Field: referrer.Path.String(),
		})
	}
	record.ReferredBy = mergedReferrers(nil, record.ReferredBy)
	record.ByPatches = d.isByPatches(ref.Target, before)
	return d.described(record, before)
}

// isByPatches says whether only patches refer to a target. What was applied does not tell, and stays as it was recorded.
func (d *draft) isByPatches(target references.Target, before v1alpha1.EnvironmentDependencyRecord) bool {
	if d.isAsApplied() {
		return before.Environment == "" || before.ByPatches
	}
	return !d.required.Has(target)
}

// described adds what is known of the content. Of what the source does not have it is what was known last. Nothing newer has been
// told of than what the plan brings, unless that is withheld.
func (d *draft) described(record, before v1alpha1.EnvironmentDependencyRecord) (v1alpha1.EnvironmentDependencyRecord, error) {
	object, ok := d.source[recordKey(&record)]
	withheld := d.Withheld.Has(recordKey(&record).GroupKind)
	record.Missing, record.SeenHash = !ok, ""
	if withheld {
		record.Missing = before.Missing // Nothing is known of the source.
	}
	if d.isAsApplied() {
		return d.describedAsApplied(record, object)
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
	record.Hash, err = Hash(d.hasher, object)
	record.Keys = keysOf(object)
	return record, err
}

// keysOf are the names of what a ConfigMap or a Secret holds.
func keysOf(object *unstructured.Unstructured) []string {
	names := sets.New[string]()
	for _, field := range [...]string{"data", "binaryData"} {
		content, _, _ := unstructured.NestedMap(object.Object, field)
		names.Insert(slices.Collect(maps.Keys(content))...)
	}
	list := sets.List(names)
	return list[:min(len(list), maxListed)]
}

// recordKey is what a record is about.
func recordKey(record *v1alpha1.EnvironmentDependencyRecord) Key {
	return keyOf(references.Target{Type: references.Type(record.Type), Name: record.Source.Name})
}

func mergedReferrers(a, b []v1alpha1.DependencyReference) []v1alpha1.DependencyReference {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b v1alpha1.DependencyReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Field, b.Field))
	})
	all = slices.Compact(all)
	return all[:min(len(all), maxListed)]
}

// isIndexed says whether the index names an object.
func (d *draft) isIndexed(key Key) bool {
	return slices.ContainsFunc(d.Index, func(r v1alpha1.EnvironmentDependencyRecord) bool { return recordKey(&r) == key })
}
