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

// dotAIToolPath is the path of the tool that scans and deletes the capabilities of definitions.
const dotAIToolPath = "/api/v1/tools/manageOrgData"

// dotAI is the API of dot-ai.
type dotAI struct{}

var _ Format = dotAI{}

// dotAIIdentity identifies an instance.
type dotAIIdentity struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
}

// dotAIInstance is an instance in a sync call.
type dotAIInstance struct {
	dotAIIdentity
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
}

// dotAISync is the payload for instances. IsResync is never set: it would delete everything that is not in the same call, including what
// other pipelines have sent, and ignore Deletes.
type dotAISync struct {
	Upserts  []dotAIInstance `json:"upserts"`
	Deletes  []dotAIIdentity `json:"deletes"`
	IsResync bool            `json:"isResync"`
}

// dotAITool is the payload for definitions: a scan of several, or the deletion of one.
type dotAITool struct {
	DataType     string `json:"dataType"`
	Operation    string `json:"operation"`
	ResourceList string `json:"resourceList,omitempty"`
	ID           string `json:"id,omitempty"`
	Collection   string `json:"collection,omitempty"`
}

func (f dotAI) Calls(batch item.Batch, source Source) ([]Call, error) {
	switch {
	case len(batch.Upserts)+len(batch.Deletes) == 0:
		return nil, nil
	case batch.Kind == item.CustomResourceDefinition:
		return f.capabilities(batch, source.Collection)
	}
	return one(f.sync(batch))
}

// sync returns the call for instances.
func (dotAI) sync(batch item.Batch) (Call, error) {
	payload := dotAISync{
		Upserts: make([]dotAIInstance, 0, len(batch.Upserts)),
		Deletes: make([]dotAIIdentity, 0, len(batch.Deletes)),
	}
	for _, upsert := range batch.Upserts {
		payload.Upserts = append(payload.Upserts, dotAIInstance{
			dotAIIdentity: identify(upsert.Key),
			Labels:        notNil(upsert.Labels), Annotations: notNil(upsert.Annotations),
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

// capabilities returns the calls for definitions: one for each deleted one, then scans of the others.
func (f dotAI) capabilities(batch item.Batch, collection string) ([]Call, error) {
	definitions := byName(batch, capabilityName)
	firstUpsert := slices.IndexFunc(definitions, func(definition namedDefinition) bool { return !definition.deleted })
	if firstUpsert < 0 {
		firstUpsert = len(definitions)
	}
	var calls []Call
	for _, deleted := range definitions[:firstUpsert] {
		call, err := newCall(dotAIToolPath, dotAITool{
			DataType: "capabilities", Operation: "delete", ID: capabilityID(deleted.name), Collection: collection,
		}, deleted.keys)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	for chunk := range slices.Chunk(definitions[firstUpsert:], maxNames) {
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

// capabilityName returns dot-ai's name for the capability of a definition.
func capabilityName(key item.Key) string { return key.ObjectKind + "." + key.Group() }

// capabilityID returns dot-ai's ID of a capability: a hash of the name, formatted like a UUID.
func capabilityID(name string) string {
	sum := sha256.Sum256([]byte("capability-" + name))
	text := hex.EncodeToString(sum[:16])
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}
