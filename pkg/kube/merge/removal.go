// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// RemovalPatch returns the JSON patch that removes the fields in Remove from the live object. It is to be sent before
// Apply, and is nil if there is nothing to remove. Servers reject it if the object has changed meanwhile.
func (r Result) RemovalPatch(live *unstructured.Unstructured) ([]byte, error) {
	if len(r.Remove) == 0 {
		return nil, nil
	}
	operations := []operation{{Op: "test", Path: "/metadata/resourceVersion", Value: live.GetResourceVersion()}}
	rest := live.DeepCopy()
	for _, field := range r.Remove {
		path, ok := indexed(rest.Object, field.Path)
		if !ok {
			return nil, fmt.Errorf("remove %s of %s %q: it is not there", field.Path, live.GetKind(), live.GetName())
		}
		operations = append(operations, operation{Op: "remove", Path: path.String()})
		rest.Object, _ = without(rest.Object, path).(map[string]any)
	}
	return json.Marshal(operations)
}

// indexed replaces the keys of list items in a path by their indexes, so that it is a JSON pointer.
func indexed(node any, path fieldpath.Path) (fieldpath.Path, bool) {
	out := make(fieldpath.Path, 0, len(path))
	for _, step := range path {
		found, ok := fieldpath.Path{step}.Lookup(node)
		if !ok {
			return nil, false
		}
		if items, isList := node.([]any); isList {
			step = fieldpath.Step{Field: strconv.Itoa(step.Find(items))}
		}
		out, node = append(out, step), found
	}
	return out, true
}

// without removes from a value, in place, what an indexed path leads to, and returns the value.
func without(node any, path fieldpath.Path) any {
	name := path[0].Field
	switch node := node.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(node, name)
		} else {
			node[name] = without(node[name], path[1:])
		}
	case []any:
		i := path[0].Find(node)
		if len(path) == 1 {
			return slices.Delete(node, i, i+1)
		}
		node[i] = without(node[i], path[1:])
	}
	return node
}
