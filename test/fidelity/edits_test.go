// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// fieldPath is where a value is in an object: names of fields and indices of lists. The index -1 is that of a new item.
type fieldPath []any

// String returns the path in the notation of the API server's errors, such as spec.ports[0].name.
func (p fieldPath) String() string {
	var out strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&out, "[%d]", step)
		case string:
			if out.Len() > 0 {
				out.WriteString(".")
			}
			out.WriteString(step)
		}
	}
	return out.String()
}

func (p fieldPath) with(step any) fieldPath { return append(slices.Clone(p), step) }

// get returns the value at a path, nil if there is none.
func (p fieldPath) get(node any) any {
	for _, step := range p {
		switch step := step.(type) {
		case string:
			fields, _ := node.(map[string]any)
			node = fields[step]
		case int:
			items, _ := node.([]any)
			if step < 0 || step >= len(items) {
				return nil
			}
			node = items[step]
		}
	}
	return node
}

// set returns the node with a value at a path, or without it if value is absent. The node is changed in place where possible.
func (p fieldPath) set(node, value any) any {
	if len(p) == 0 {
		return value
	}
	switch step := p[0].(type) {
	case string:
		fields, ok := node.(map[string]any)
		if !ok {
			fields = map[string]any{}
		}
		if fields[step] = p[1:].set(fields[step], value); fields[step] == absent {
			delete(fields, step)
		}
		return fields
	case int:
		items, _ := node.([]any)
		if step < 0 {
			return append(items, p[1:].set(nil, value))
		}
		if items[step] = p[1:].set(items[step], value); items[step] == absent {
			return slices.Delete(items, step, step+1)
		}
		return items
	}
	return node
}

// absent removes the value at a path.
var absent any = new(int)

// edit changes or adds one value. The first variant that the API server accepts is taken.
type edit struct {
	path     fieldPath
	variants []any
}

// edits returns the edits of all fields of an object as it is in its file, and additions to its maps and lists.
func edits(o *mirroredObject) (out []edit) {
	walk(nil, o.content, func(at fieldPath, value any) {
		switch value := value.(type) {
		case map[string]any:
			// What of these is a text, a number or base64 is not known.
			out = append(out, edit{at.with("added"), []any{"added", "1", "YWRkZWQ="}})
		case []any:
			out = append(out, edit{at.with(-1), additions(value)})
		default:
			out = append(out, edit{at, variants(value)})
		}
	})
	for _, field := range []string{"labels", "annotations"} { // Not every object has these.
		out = append(out, edit{fieldPath{"metadata", field, "added"}, []any{"added"}})
	}
	return slices.DeleteFunc(out, func(e edit) bool { return len(e.variants) == 0 || isIdentity(e.path) || isFixed(o, e.path) })
}

// isIdentity reports whether an object would be another one, or none, with another value at a path.
func isIdentity(at fieldPath) bool {
	return slices.Contains([]string{"", "apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace"}, at.String())
}

// definitionPart matches the fields of CustomResourceDefinitions that the API server does not change, and those that make objects of the type
// invalid, unserved or incomplete: they would not be what they were even if nothing had changed them.
var definitionPart = regexp.MustCompile(`^spec(\.group|\.scope|\.names|\.names\.(plural|kind|singular|listKind)|\.conversion(\.strategy)?|` +
	`\.versions(\[-?\d+\](\.name|\.storage|\.served|\.schema|\.selectableFields.*|\.deprecated|\.additionalPrinterColumns\[\d+\]\.(type|name|jsonPath))?)?)?$`)

// isFixed reports whether a field is not changed. In a schema only texts for readers and upper limits are changed.
func isFixed(o *mirroredObject, at fieldPath) bool {
	switch {
	case o.resource.Resource == "namespaces": // The rules select the namespace by this label.
		return slices.Contains([]string{"metadata.labels", "metadata.labels.mirrored"}, at.String())
	case o.resource.Resource == "statefulsets" && at.String() == "spec.replicas":
		return true // Their controller creates PersistentVolumeClaims for replicas, at times after they were restored.
	case !isDefinition(o):
		return false
	case slices.Contains([]string{"metadata.annotations", "metadata.annotations.api-approved.kubernetes.io"}, at.String()):
		return true
	}
	if slices.ContainsFunc(at, func(step any) bool { return step == "openAPIV3Schema" }) {
		last, parent := at[len(at)-1], at[len(at)-2]
		return parent == "properties" || last != "description" && last != "maximum"
	}
	return definitionPart.MatchString(at.String())
}

// walk visits the nodes of an object, inner ones before those around them.
func walk(at fieldPath, node any, visit func(fieldPath, any)) {
	switch inner := node.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(inner)) {
			walk(at.with(name), inner[name], visit)
		}
	case []any:
		for i, item := range inner {
			walk(at.with(i), item, visit)
		}
	}
	visit(at, node)
}

// additions returns items that can be added to a list.
func additions(items []any) (out []any) {
	if len(items) == 0 {
		return []any{"added", map[string]any{"name": "added"}}
	}
	last := items[len(items)-1]
	fields, ok := last.(map[string]any)
	if !ok {
		return variants(last)
	}
	all := runtime.DeepCopyJSONValue(last)
	walk(nil, last, func(at fieldPath, node any) {
		if other := variants(node); len(other) > 0 && len(at) > 0 {
			all = at.set(all, other[0])
		}
	})
	named := runtime.DeepCopyJSON(fields)
	if name, ok := fields["name"].(string); ok {
		named["name"] = name + "-added"
	}
	return []any{named, all}
}

var number = regexp.MustCompile(`\d{1,9}(\D*)$`)

func isLeaf(value any) bool { return len(variants(value)) > 0 }

// variants returns other values for a leaf, none if it is a map, a list or null.
func variants(leaf any) []any {
	switch leaf := leaf.(type) {
	case bool:
		return []any{!leaf}
	case int64:
		return []any{leaf + 1, leaf - 1}
	case float64:
		return []any{leaf + 0.5, leaf * 2, leaf / 2}
	case string:
		return texts(leaf)
	}
	return nil
}

// texts returns other texts: with the last number increased, with more letters, and as base64.
func texts(text string) (out []any) {
	if at := number.FindStringIndex(text); at != nil {
		digits := strings.TrimRight(text[at[0]:], number.FindStringSubmatch(text)[1])
		if value, err := strconv.Atoi(digits); err == nil {
			out = append(out, text[:at[0]]+fmt.Sprintf("%0*d", len(digits), value+1)+text[at[0]+len(digits):])
		}
	}
	out = append(out, text+"-changed", text+"changed", "changed"+text)
	if _, err := base64.StdEncoding.DecodeString(text); err == nil {
		out = append(out, base64.StdEncoding.EncodeToString([]byte("changed")), base64.StdEncoding.EncodeToString([]byte(`{"auths":{}}`)))
	}
	return append(out, "")
}
