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

// ErrOtherKeys is returned if an existing configuration lacks keys.
var ErrOtherKeys = errors.New("it has other keys")

// Copy stores a configuration at the location of a server to which all data encrypted with it is migrated. An existing
// configuration is kept if it decrypts all of that, and is never overwritten otherwise.
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

// Opens reports whether a configuration certainly decrypts everything that is encrypted with another: if they are equal,
// or if both have the form that a server generates and the keys of the other are included.
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

// own reports whether a configuration has only the providers that a server generates.
func (c *configuration) own() bool {
	if len(c.Resources) != 1 || !slices.Equal(c.Resources[0].Resources, []string{allResources}) {
		return false
	}
	providers := c.Resources[0].Providers
	return len(providers) == 1 || len(providers) == 2 && providers[1].Identity != nil
}
