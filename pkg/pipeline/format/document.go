// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// changes is the payload for consumers without a format of their own. Deletes must be applied first.
type changes struct {
	Upserts []any `json:"upserts"`
	Deletes []any `json:"deletes"`
}

// identity identifies an instance. The namespace of a cluster-scoped one is empty.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

type instance struct {
	identity
	UID         types.UID         `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
}

// definition identifies a CustomResourceDefinition and the kind that it defines.
type definition struct {
	Name  string `json:"name"`
	Group string `json:"group"`
	Kind  string `json:"kind"`
}

// changesOf returns the payload of a batch: the identities of definitions, or the metadata of instances.
func changesOf(batch item.Batch) changes {
	all := changes{Upserts: make([]any, 0, len(batch.Upserts)), Deletes: make([]any, 0, len(batch.Deletes))}
	for _, upsert := range batch.Upserts {
		if batch.Kind == item.CustomResourceDefinition {
			all.Upserts = append(all.Upserts, identityOf(upsert.Key))
			continue
		}
		all.Upserts = append(all.Upserts, instance{
			identity: identity{upsert.APIVersion, upsert.ObjectKind, upsert.Namespace, upsert.Name}, UID: upsert.UID,
			Labels: notNil(upsert.Labels), Annotations: notNil(upsert.Annotations),
			CreatedAt: upsert.CreatedAt.UTC(), UpdatedAt: upsert.UpdatedAt.UTC(),
		})
	}
	for _, key := range batch.Deletes {
		all.Deletes = append(all.Deletes, identityOf(key))
	}
	return all
}

// identityOf returns the definition or the identity of an instance.
func identityOf(key item.Key) any {
	if key.Kind == item.CustomResourceDefinition {
		return definition{Name: key.Name, Group: key.Group(), Kind: key.ObjectKind}
	}
	return identity{key.APIVersion, key.ObjectKind, key.Namespace, key.Name}
}

// Document encodes a batch as one JSON document, for consumers that read it from a file.
func Document(batch item.Batch, source Source) ([]byte, error) {
	text, err := json.Marshal(struct {
		Pipeline string    `json:"pipeline"`
		Sink     string    `json:"sink"`
		ID       string    `json:"id"`
		Sequence int64     `json:"sequence"`
		Kind     item.Kind `json:"kind"`
		changes
	}{source.Pipeline, source.Sink, batch.ID, batch.Sequence, batch.Kind, changesOf(batch)})
	if err != nil {
		return nil, fmt.Errorf("write the document of batch %s: %w", batch.ID, err)
	}
	return text, nil
}
