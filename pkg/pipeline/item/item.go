// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/kube/annotation"
)

// Item is what is told of an object.
type Item struct {
	Key
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are those that do not repeat what the object holds.
	Annotations map[string]string `json:"annotations,omitempty"`
	CreatedAt   time.Time         `json:"createdAt,omitzero"`
	// UpdatedAt is when somebody last wrote the object, its subresources aside. It makes no change by itself.
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
	UID       types.UID `json:"uid,omitempty"`
	// Spec stands for the spec of a definition: a hash of it.
	Spec string `json:"spec,omitempty"`
}

// FromMetadata is what is told of an instance. One that has no creation time, because no API server has stored it, is told of as created at
// the beginning of 1970.
func FromMetadata(kind schema.GroupVersionKind, object metav1.Object) Item {
	created := object.GetCreationTimestamp().Time
	if created.IsZero() {
		created = time.Unix(0, 0)
	}
	return Item{
		Key: Key{
			Kind: Instance, APIVersion: kind.GroupVersion().String(), ObjectKind: kind.Kind,
			Namespace: object.GetNamespace(), Name: object.GetName(),
		},
		Labels:      maps.Clone(object.GetLabels()),
		Annotations: annotation.Readable(kind.GroupKind(), object.GetAnnotations()),
		CreatedAt:   created.UTC(),
		UpdatedAt:   lastWritten(object, created).UTC(),
		UID:         object.GetUID(),
	}
}

// lastWritten is when a field manager last wrote the object itself; created, when none is known to have.
func lastWritten(object metav1.Object, created time.Time) time.Time {
	last := created
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// Digest is another one when something has changed of which consumers are told: labels, the annotations that are left, or that it is
// another object with the same name; of a definition, its spec.
func (i Item) Digest() [16]byte {
	// Maps are printed in the order of their keys, and what is quoted runs into nothing else.
	text := fmt.Appendf(nil, "%q %q %d %q %q", i.Labels, i.Annotations, i.CreatedAt.Unix(), i.UID, i.Spec)
	sum := sha256.Sum256(text)
	return [16]byte(sum[:16])
}

// Marshal writes the item as compact JSON.
func (i Item) Marshal() ([]byte, error) {
	text, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", i.Key, err)
	}
	return text, nil
}

// Unmarshal reads what Marshal wrote.
func Unmarshal(text []byte) (Item, error) {
	var read Item
	if err := json.Unmarshal(text, &read); err != nil {
		return Item{}, fmt.Errorf("read an item: %w", err)
	}
	return read, nil
}
