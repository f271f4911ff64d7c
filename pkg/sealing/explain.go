// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apiserver/pkg/storage/value"
)

// sealedForm is what upstream's transformers write before what they seal: provider, version, and key or plugin.
var sealedForm = regexp.MustCompile("^k8s:enc:([a-z]+):v[0-9]+:([^:]{1,253}):")

// SealedBy says under which key a stored value is sealed, such as secretbox "1-5f2c8a01", or nothing if it is plain.
func SealedBy(stored []byte) string {
	parts := sealedForm.FindSubmatch(stored)
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("%s %q", parts[1], parts[2])
}

// sealedByPlugin tells whether a stored value is sealed by a KMS plugin.
func sealedByPlugin(stored []byte) bool { return strings.HasPrefix(SealedBy(stored), "kms ") }

// explaining names the key that is missing, which upstream's transformers do not.
type explaining struct {
	value.Transformer
}

func (e explaining) TransformFromStorage(ctx context.Context, stored []byte, of value.Context) ([]byte, bool, error) {
	plain, stale, err := e.Transformer.TransformFromStorage(ctx, stored, of)
	if err != nil {
		return nil, false, explain(stored, err)
	}
	return plain, stale, nil
}

// explain says what to do about a value that cannot be opened.
func explain(stored []byte, err error) error {
	by := SealedBy(stored)
	if by == "" {
		return fmt.Errorf("it is plain, which takes the provider identity in the encryption configuration: %w", err)
	}
	return fmt.Errorf("it is sealed by %s, which the encryption configuration must have to open it "+
		"(operations.md says what to do if that is gone): %w", by, err)
}
