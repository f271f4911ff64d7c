// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// EnvironmentStateField is the field of Environments that field selectors support besides metadata.name and
// metadata.namespace.
const EnvironmentStateField = "status.state"

// convertEnvironmentFieldLabel accepts the fields of Environments that field selectors support. They have the same names
// in the internal version.
func convertEnvironmentFieldLabel(label, value string) (string, string, error) {
	if label == EnvironmentStateField {
		return label, value, nil
	}
	label, value, err := runtime.DefaultMetaV1FieldSelectorConversion(label, value)
	if err != nil {
		return "", "", fmt.Errorf("%w, or %s", err, EnvironmentStateField)
	}
	return label, value, nil
}
