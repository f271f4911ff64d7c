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

// maxListed bounds how many annotations a rule lists by key. SOPS compiles the rule for each value, so it must stay short.
const maxListed = 16

// Fields that stay readable, at the root and in the metadata. Annotations are decided one by one.
var (
	readableFields   = sets.New("apiVersion", "immutable", "kind", "metadata", "type")
	readableMetadata = sets.New("annotations", "generateName", "labels", "name", "namespace")
)

// rule lists the keys that are encrypted: SOPS encrypts values with one of them anywhere on their path, labels included.
type rule []string

// ruleOf returns the rule for an object: all fields but the readable ones, and all annotations but the harmless ones.
// Annotations are listed by key, so that SOPS does not try to decrypt those that Kustomize adds. If there are too many, or
// one has the key of a readable field, such as name, all annotations are encrypted.
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

// String returns the rule as SOPS reads it, a regular expression that matches keys.
func (r rule) String() string {
	quoted := make([]string, len(r))
	for i, key := range r {
		quoted[i] = regexp.QuoteMeta(key)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}

// parseRule is the reverse of String. It accepts nothing that String does not write, so that the expression need not be evaluated.
func parseRule(expression string) (rule, error) {
	if len(expression) > longestRule {
		return nil, errMalformed
	}
	keys := strings.TrimSuffix(strings.TrimPrefix(expression, "^("), ")$")
	parsed := rule{""}
	for i := 0; i < len(keys); i++ {
		last := len(parsed) - 1
		switch {
		case keys[i] == '|':
			parsed = append(parsed, "")
			continue
		case keys[i] == '\\' && i+1 < len(keys):
			i++
		}
		parsed[last] += keys[i : i+1]
	}
	if parsed.String() != expression {
		return nil, errMalformed
	}
	return parsed, nil
}
