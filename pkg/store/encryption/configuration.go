// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"
)

const (
	// allResources are the resources of a generated configuration: every kind, including future ones, and [WorkResource].
	// The alternative, a list of the kinds with secret content, would have to be reviewed with each new field.
	allResources = "*." + group
	// keySize is the key size of secretbox, in bytes.
	keySize = 32
	// nameSize is the number of random bytes in a key's name. They distinguish keys of different stores.
	nameSize = 4
)

// heading is the first comment of a generated configuration.
const heading = `# The keys with which slipstream encrypts all stored data. The data cannot be read without this file:
# keep a copy, apart from the backups of the stores. To change keys, run "slipstream store rotate-key".
`

// configuration is an EncryptionConfiguration whose first provider is secretbox. Its keys are named NUMBER-RANDOM, and
// the highest number is the newest.
type configuration struct {
	apiserverv1.EncryptionConfiguration
}

// newConfiguration returns a configuration with one new key. It also reads values that are not encrypted, so that
// existing stores keep working; upstream considers such a value stale, and the leader encrypts it.
func newConfiguration() *configuration {
	return &configuration{apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{allResources},
			Providers: []apiserverv1.ProviderConfiguration{
				{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{newKey(1)}}},
				{Identity: &apiserverv1.IdentityConfiguration{}},
			},
		}},
	}}
}

// newKey generates a key.
func newKey(number int) apiserverv1.Key {
	var random [nameSize + keySize]byte
	_, _ = rand.Read(random[:]) // Never fails; the process ends if there is no randomness.
	return apiserverv1.Key{
		Name:   fmt.Sprintf("%d-%s", number, hex.EncodeToString(random[:nameSize])),
		Secret: base64.StdEncoding.EncodeToString(random[nameSize:]),
	}
}

// errNotOurs is returned for a configuration to which the server cannot add keys, because a user has edited it.
var errNotOurs = errors.New("keys cannot be changed: resources[0].providers[0] must be secretbox with at least one key")

// parseConfiguration parses a configuration. Upstream validates it completely when it is loaded.
func parseConfiguration(content []byte) (*configuration, error) {
	c := &configuration{}
	if err := yaml.UnmarshalStrict(content, &c.EncryptionConfiguration); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if c.keys() == nil {
		return nil, errNotOurs
	}
	return c, nil
}

// encode returns the encoding that parseConfiguration parses.
func (c *configuration) encode() ([]byte, error) {
	content, err := yaml.Marshal(c.EncryptionConfiguration)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return append([]byte(heading), content...), nil
}

// keys returns the keys of the first provider, or nil if there are none.
func (c *configuration) keys() []apiserverv1.Key {
	if len(c.Resources) == 0 || len(c.Resources[0].Providers) == 0 || c.Resources[0].Providers[0].Secretbox == nil {
		return nil
	}
	return c.Resources[0].Providers[0].Secretbox.Keys
}

func (c *configuration) setKeys(keys []apiserverv1.Key) {
	c.Resources[0].Providers[0].Secretbox.Keys = keys
}

// add generates a key and inserts it at a position. The key at the first position encrypts.
func (c *configuration) add(place int) string {
	key := newKey(keyNumber(c.newest()) + 1)
	c.setKeys(slices.Insert(c.keys(), place, key))
	return key.Name
}

// newest returns the most recently generated key.
func (c *configuration) newest() apiserverv1.Key {
	return slices.MaxFunc(c.keys(), func(a, b apiserverv1.Key) int { return keyNumber(a) - keyNumber(b) })
}

// pending returns the name of a key that has been generated and does not encrypt yet, or an empty string.
func (c *configuration) pending() string {
	if newest := c.newest(); keyNumber(newest) > keyNumber(c.keys()[0]) {
		return newest.Name
	}
	return ""
}

// promote makes the newest key the one that encrypts.
func (c *configuration) promote() {
	newest := c.newest()
	others := slices.DeleteFunc(slices.Clone(c.keys()), func(key apiserverv1.Key) bool { return key.Name == newest.Name })
	c.setKeys(slices.Insert(others, 0, newest))
}

// old returns the names of the keys that only decrypt.
func (c *configuration) old() []string {
	if c.pending() != "" {
		return nil
	}
	var names []string
	for _, key := range c.keys()[1:] {
		names = append(names, key.Name)
	}
	return names
}

// retire removes the old keys.
func (c *configuration) retire() { c.setKeys(c.keys()[:1]) }

// keyNumber returns the number in a key's name; a name of another form counts as the oldest.
func keyNumber(key apiserverv1.Key) int {
	digits, _, _ := strings.Cut(key.Name, "-")
	number, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return number
}
