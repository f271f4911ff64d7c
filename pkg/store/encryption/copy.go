// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
)

// ErrOtherKeys says that a configuration is in the way which lacks keys.
var ErrOtherKeys = errors.New("it has other keys")

// Copy puts a configuration where that of a server is kept to which everything moves
// that is encrypted under it. What is there already stays if it opens all of that, and is
// never overwritten if it does not.
func Copy(ctx context.Context, content []byte, to Home) error {
	err := to.Change(ctx, func(present []byte) ([]byte, error) {
		switch {
		case present == nil:
			return content, nil
		case Opens(present, content):
			return present, nil
		}
		return nil, ErrOtherKeys
	})
	if err != nil {
		return fmt.Errorf("copying the encryption configuration to %s: %w", to, err)
	}
	return nil
}

// Opens tells whether a configuration opens everything that is encrypted under another. It
// is sure of that if they are the same, or if both are as a server makes them.
func Opens(content, other []byte) bool {
	if bytes.Equal(content, other) {
		return true
	}
	has, err := parseConfiguration(content)
	needs, otherErr := parseConfiguration(other)
	if err != nil || otherErr != nil || !needs.own() {
		return false
	}
	return !slices.ContainsFunc(needs.keys(), func(key apiserverv1.Key) bool { return !slices.Contains(has.keys(), key) })
}

// own tells whether a configuration has no providers but those that a server makes.
func (c *configuration) own() bool {
	if len(c.Resources) != 1 || !slices.Equal(c.Resources[0].Resources, []string{allResources}) {
		return false
	}
	providers := c.Resources[0].Providers
	return len(providers) == 1 || len(providers) == 2 && providers[1].Identity != nil
}
