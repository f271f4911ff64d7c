// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// noNamespace is the namespace that consumers use for cluster-scoped objects.
const noNamespace = "_cluster"

// clusterWhisperer is the API of cluster-whisperer.
type clusterWhisperer struct{}

var _ Format = clusterWhisperer{}

// whispererInstance is an instance in a sync call of cluster-whisperer.
type whispererInstance struct {
	ID          string            `json:"id"`
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	Kind        string            `json:"kind"`
	APIVersion  string            `json:"apiVersion"`
	APIGroup    string            `json:"apiGroup"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	CreatedAt   time.Time         `json:"createdAt"`
}

func (f clusterWhisperer) Calls(batch item.Batch, _ Source) ([]Call, error) {
	switch {
	case len(batch.Upserts)+len(batch.Deletes) == 0:
		return nil, nil
	case batch.Kind == item.CustomResourceDefinition:
		return f.scans(batch)
	}
	return one(f.sync(batch))
}

// sync returns the call for instances.
func (clusterWhisperer) sync(batch item.Batch) (Call, error) {
	payload := struct {
		Upserts []whispererInstance `json:"upserts"`
		Deletes []string            `json:"deletes"`
	}{make([]whispererInstance, 0, len(batch.Upserts)), make([]string, 0, len(batch.Deletes))}
	for _, upsert := range batch.Upserts {
		payload.Upserts = append(payload.Upserts, whispererInstance{
			ID: whispererID(upsert.Key), Namespace: orCluster(upsert.Namespace), Name: upsert.Name,
			Kind: upsert.ObjectKind, APIVersion: upsert.APIVersion, APIGroup: upsert.Group(),
			Labels: notNil(upsert.Labels), Annotations: notNil(upsert.Annotations), CreatedAt: upsert.CreatedAt.UTC(),
		})
	}
	for _, key := range batch.Deletes {
		payload.Deletes = append(payload.Deletes, whispererID(key))
	}
	return newCall("/api/v1/instances/sync", payload, batch.Keys())
}

// scans returns the calls for definitions.
func (clusterWhisperer) scans(batch item.Batch) ([]Call, error) {
	var calls []Call
	definitions := byName(batch, func(key item.Key) string { return key.Name })
	for chunk := range slices.Chunk(definitions, maxNames) {
		upserts, deletes, keys := split(chunk)
		payload := struct {
			Upserts []string `json:"upserts"`
			Deletes []string `json:"deletes"`
		}{upserts, deletes}
		call, err := newCall("/api/v1/capabilities/scan", payload, keys)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

func (clusterWhisperer) Interpret(_ Call, status int, header http.Header, body []byte) Result {
	return resultOf(status, header, body)
}

// whispererID returns the ID of an instance.
func whispererID(key item.Key) string {
	return strings.Join([]string{orCluster(key.Namespace), key.APIVersion, key.ObjectKind, key.Name}, "/")
}

// orCluster returns the namespace, or noNamespace if it is empty.
func orCluster(namespace string) string {
	if namespace == "" {
		return noNamespace
	}
	return namespace
}
