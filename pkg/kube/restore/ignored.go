// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// WithIgnored returns a content with the ignored fields of the live object: they are not mirrored, so that the content says nothing
// about them. A field whose list item or parent the content does not have is left out. Without a live object or a content, the
// content is returned as it is.
func WithIgnored(rules ignore.Rules, live, content *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil || content == nil {
		return content, nil
	}
	rest, removed := rules.Split(live)
	if rest == live {
		return content, nil
	}
	rest, err := manifest.Canonical(rest)
	if err != nil {
		return nil, err
	}
	now, err := manifest.Canonical(live)
	if err != nil {
		return nil, err
	}
	out := withoutKeyed(rules, content)
	for _, field := range slices.Backward(removed) {
		if _, isContent := field.Path.Lookup(now.Object); isContent && !lacksParent(out, rest, field.Path) {
			set(out.Object, field.Path, runtime.DeepCopyJSONValue(field.Value), live.Object)
		}
	}
	return manifest.Canonical(out)
}

// withoutKeyed returns a copy of a content without its ignored fields. It can have some that were mirrored before they were ignored.
// A list item that is ignored by its index is left out of a mirrored list already, and another one has its index now.
func withoutKeyed(rules ignore.Rules, content *unstructured.Unstructured) *unstructured.Unstructured {
	rest, removed := rules.Split(content.DeepCopy())
	for _, field := range slices.Backward(removed) {
		if last := len(field.Path) - 1; field.Path[last].IsField() {
			parent, _ := field.Path[:last].Lookup(rest.Object)
			if _, isList := parent.([]any); isList {
				set(rest.Object, field.Path, field.Value, content.Object)
			}
		}
	}
	return rest
}

// lacksParent reports whether something on the path exists without the ignored fields, and does not exist in content.
func lacksParent(content, rest *unstructured.Unstructured, path fieldpath.Path) bool {
	for end := 1; end < len(path); end++ {
		_, inRest := path[:end].Lookup(rest.Object)
		if _, inContent := path[:end].Lookup(content.Object); inRest && !inContent {
			return true
		}
	}
	return false
}
