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

// Item is what is sent of an object.
type Item struct {
	Key
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are those that do not contain a copy of the object.
	Annotations map[string]string `json:"annotations,omitempty"`
	CreatedAt   time.Time         `json:"createdAt,omitzero"`
	// UpdatedAt is the last write to the object, writes to subresources excluded. It is not part of the digest.
	UpdatedAt time.Time `json:"updatedAt,omitzero"`
	UID       types.UID `json:"uid,omitempty"`
	// Spec is a hash of the spec of a definition.
	Spec string `json:"spec,omitempty"`
}

// FromMetadata returns the item of an instance. An object without a creation time, which no API server has stored, gets the Unix epoch.
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
		UpdatedAt:   updatedAt(object, created).UTC(),
		UID:         object.GetUID(),
	}
}

// updatedAt returns the time of the last write by a field manager, subresources excluded; created, if there is none.
func updatedAt(object metav1.Object, created time.Time) time.Time {
	last := created
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// Digest returns a hash that changes when consumers must receive the item again: when labels, annotations or, for a definition, the spec
// have changed, or when the object was replaced by one with the same name.
func (i Item) Digest() [16]byte {
	// Maps are printed in key order, and quoting separates the values.
	text := fmt.Appendf(nil, "%q %q %d %q %q", i.Labels, i.Annotations, i.CreatedAt.Unix(), i.UID, i.Spec)
	sum := sha256.Sum256(text)
	return [16]byte(sum[:16])
}

// Marshal encodes the item as compact JSON.
func (i Item) Marshal() ([]byte, error) {
	text, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", i.Key, err)
	}
	return text, nil
}

// Unmarshal decodes what Marshal encoded.
func Unmarshal(text []byte) (Item, error) {
	var read Item
	if err := json.Unmarshal(text, &read); err != nil {
		return Item{}, fmt.Errorf("read an item: %w", err)
	}
	return read, nil
}
