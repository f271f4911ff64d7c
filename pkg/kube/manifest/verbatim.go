// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Verbatim writes an object like RenderEncrypted, but with all its fields: it gives back a file that an earlier version rendered, which
// left out less.
func Verbatim(obj *unstructured.Unstructured, encrypter Encrypter) ([]byte, error) {
	if err := checkTyped(obj); err != nil {
		return nil, err
	}
	content, err := renderEncrypted(obj.Object, encrypter)
	if err != nil {
		return nil, fmt.Errorf("writing %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return content, nil
}
