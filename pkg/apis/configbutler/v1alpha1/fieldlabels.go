// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// EnvironmentStateField is the field of Environments that field selectors support besides metadata.name and
// metadata.namespace.
const EnvironmentStateField = "status.state"

// The fields of Changes that field selectors support besides metadata.name and metadata.namespace.
const (
	// ChangeObjectKindField is spec.object.kind.
	ChangeObjectKindField = "object.kind"
	// ChangeObjectResourceField is spec.object.resource.
	ChangeObjectResourceField = "object.resource"
	// ChangeObjectNameField is spec.object.name.
	ChangeObjectNameField = "object.name"
	// ChangeAuthorField is spec.author.username.
	ChangeAuthorField = "author"
	// ChangeOperationField is spec.operation.
	ChangeOperationField = "operation"
	// ChangeCommitField is the hash of a commit in spec.commits. Lists also accept its first digits.
	ChangeCommitField = "commit"
	// ChangeBypassField is spec.bypass: true or false.
	ChangeBypassField = "bypass"
)

// ChangeFields returns the fields of Changes that field selectors support besides metadata.name and metadata.namespace.
func ChangeFields() []string {
	return []string{
		ChangeObjectKindField, ChangeObjectResourceField, ChangeObjectNameField, ChangeAuthorField, ChangeOperationField, ChangeCommitField,
		ChangeBypassField,
	}
}

// convertFieldLabels returns a function that accepts the fields of a kind that field selectors support. They have the same names in the
// internal version.
func convertFieldLabels(supported ...string) func(label, value string) (string, string, error) {
	return func(label, value string) (string, string, error) {
		if slices.Contains(supported, label) {
			return label, value, nil
		}
		label, value, err := runtime.DefaultMetaV1FieldSelectorConversion(label, value)
		if err != nil {
			return "", "", fmt.Errorf("%w, or %s", err, strings.Join(supported, ", "))
		}
		return label, value, nil
	}
}
