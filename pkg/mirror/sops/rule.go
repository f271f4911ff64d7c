// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/annotation"
)

// maxListed is how many annotations a rule lists by their keys. SOPS compiles the rule anew for each value, so it must stay short.
const maxListed = 16

// Fields that are readable: at the root, and in the metadata. Annotations are read one by one.
var (
	readableFields   = sets.New("apiVersion", "immutable", "kind", "metadata", "type")
	readableMetadata = sets.New("annotations", "generateName", "labels", "name", "namespace")
)

// rule is what SOPS encrypts: values with one of these keys anywhere on their path. A label that has such a key is encrypted, too.
type rule []string

// ruleOf returns the rule for an object: everything but the fields that are readable, and all annotations but those that are
// harmless. Annotations are listed by their keys, so that what Kustomize adds to the others does not look as if it had to be
// decrypted. There may be many of them, and one may have the key of something that is readable, such as name: then all annotations
// are encrypted, the harmless ones included.
func ruleOf(content map[string]any) rule {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)

	readable := readableFields.Union(readableMetadata).Union(sets.KeySet(labels))
	hidden := sets.KeySet(annotations)
	maps.DeleteFunc(hidden, func(key string, _ sets.Empty) bool { return annotation.IsHarmless(key) })
	if len(hidden) > maxListed || hidden.Intersection(readable).Len() > 0 {
		hidden = sets.New("annotations")
	}
	hidden = hidden.Union(sets.KeySet(content).Difference(readableFields)).Union(sets.KeySet(metadata).Difference(readableMetadata))
	return slices.Concat(rule{"data", "stringData"}, sets.List(hidden.Delete("data", "stringData")))
}

// covers reports whether a value is encrypted.
func (r rule) covers(path []string) bool {
	return slices.ContainsFunc(path, func(key string) bool { return slices.Contains(r, key) })
}

// String returns the rule as SOPS reads it, a regular expression for keys.
func (r rule) String() string {
	quoted := make([]string, len(r))
	for i, key := range r {
		quoted[i] = regexp.QuoteMeta(key)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}
