// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// dotAIToolPath is that of the tool that learns and forgets what definitions offer.
const dotAIToolPath = "/api/v1/tools/manageOrgData"

// dotAI is the API of dot-ai.
type dotAI struct{}

var _ Format = dotAI{}

// dotAIIdentity is by what dot-ai knows an instance.
type dotAIIdentity struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
}

// dotAIInstance is an instance as dot-ai takes it.
type dotAIInstance struct {
	dotAIIdentity
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
}

// dotAISync is what is told of instances. IsResync is never set: it has everything deleted that is not in the same call, what other
// pipelines have told included, and takes no notice of Deletes.
type dotAISync struct {
	Upserts  []dotAIInstance `json:"upserts"`
	Deletes  []dotAIIdentity `json:"deletes"`
	IsResync bool            `json:"isResync"`
}

// dotAITool is what is told of definitions: several to be scanned, or one to be deleted.
type dotAITool struct {
	DataType     string `json:"dataType"`
	Operation    string `json:"operation"`
	ResourceList string `json:"resourceList,omitempty"`
	ID           string `json:"id,omitempty"`
	Collection   string `json:"collection,omitempty"`
}

func (f dotAI) Calls(batch Batch, source Source) ([]Call, error) {
	switch {
	case len(batch.Upserts)+len(batch.Deletes) == 0:
		return nil, nil
	case batch.Kind == item.CustomResourceDefinition:
		return f.capabilities(batch, source.Collection)
	}
	return one(f.sync(batch))
}

func (dotAI) sync(batch Batch) (Call, error) {
	payload := dotAISync{
		Upserts: make([]dotAIInstance, 0, len(batch.Upserts)),
		Deletes: make([]dotAIIdentity, 0, len(batch.Deletes)),
	}
	for _, upsert := range batch.Upserts {
		payload.Upserts = append(payload.Upserts, dotAIInstance{
			dotAIIdentity: identify(upsert.Key),
			Labels:        given(upsert.Labels), Annotations: given(upsert.Annotations),
			CreatedAt: upsert.CreatedAt.UTC(), UpdatedAt: upsert.UpdatedAt.UTC(),
		})
	}
	for _, key := range batch.Deletes {
		payload.Deletes = append(payload.Deletes, identify(key))
	}
	return newCall("/api/v1/resources/sync", payload, batch.Keys())
}

func identify(key item.Key) dotAIIdentity {
	return dotAIIdentity{Namespace: orCluster(key.Namespace), Name: key.Name, Kind: key.ObjectKind, APIVersion: key.APIVersion}
}

// capabilities has each definition that is gone deleted by a call of its own, and the others scanned.
func (f dotAI) capabilities(batch Batch, collection string) ([]Call, error) {
	definitions := byName(batch, capabilityName)
	there := slices.IndexFunc(definitions, func(definition named) bool { return !definition.gone })
	if there < 0 {
		there = len(definitions)
	}
	var calls []Call
	for _, gone := range definitions[:there] {
		call, err := newCall(dotAIToolPath, dotAITool{
			DataType: "capabilities", Operation: "delete", ID: capabilityID(gone.name), Collection: collection,
		}, gone.keys)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	for chunk := range slices.Chunk(definitions[there:], maxNames) {
		names, _, keys := split(chunk)
		call, err := newCall(dotAIToolPath, dotAITool{
			DataType: "capabilities", Operation: "scan", ResourceList: strings.Join(names, ","), Collection: collection,
		}, keys)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// capabilityName is what dot-ai calls what a definition offers.
func capabilityName(key item.Key) string { return key.ObjectKind + "." + key.Group() }

// capabilityID is under what dot-ai keeps it: a hash of the name that looks like a UUID.
func capabilityID(name string) string {
	sum := sha256.Sum256([]byte("capability-" + name))
	text := hex.EncodeToString(sum[:16])
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}
