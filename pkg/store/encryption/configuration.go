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
	// allResources are the resources of a configuration that is made: every kind, those to come, and [WorkResource].
	// Which kinds hold secret material is a question that would have to be answered again with each field.
	allResources = "*." + group
	// keySize is that of secretbox.
	keySize = 32
	// nameSize is the number of random bytes in a key's name. They tell keys of different stores apart.
	nameSize = 4
)

// heading begins a configuration that is made.
const heading = `# The keys under which slipstream seals what it stores. Without this file nothing of that can be read:
# keep a copy, apart from the backups of the stores. To change keys, run "slipstream store rotate-key".
`

// configuration is an EncryptionConfiguration whose first provider is secretbox. Its keys are named NUMBER-RANDOM, and
// the highest number is the newest.
type configuration struct {
	apiserverv1.EncryptionConfiguration
}

// newConfiguration has one fresh key. It opens what is not encrypted at all, so that stores from before keep working;
// to upstream such a value is stale, and the leader encrypts it.
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

// newKey makes a key.
func newKey(number int) apiserverv1.Key {
	var random [nameSize + keySize]byte
	_, _ = rand.Read(random[:]) // Never fails; the process ends if there is no randomness.
	return apiserverv1.Key{
		Name:   fmt.Sprintf("%d-%s", number, hex.EncodeToString(random[:nameSize])),
		Secret: base64.StdEncoding.EncodeToString(random[nameSize:]),
	}
}

// errNotOurs is about a configuration that was edited in a way that leaves no place for new keys.
var errNotOurs = errors.New("resources[0].providers[0] is not secretbox with at least one key, so that keys cannot be changed here")

// parseConfiguration reads a configuration. Upstream judges it as a whole when it is loaded.
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

// encode is what parseConfiguration reads.
func (c *configuration) encode() ([]byte, error) {
	content, err := yaml.Marshal(c.EncryptionConfiguration)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return append([]byte(heading), content...), nil
}

// keys are those of the first provider, or nil if there are none.
func (c *configuration) keys() []apiserverv1.Key {
	if len(c.Resources) == 0 || len(c.Resources[0].Providers) == 0 || c.Resources[0].Providers[0].Secretbox == nil {
		return nil
	}
	return c.Resources[0].Providers[0].Secretbox.Keys
}

func (c *configuration) setKeys(keys []apiserverv1.Key) {
	c.Resources[0].Providers[0].Secretbox.Keys = keys
}

// add makes a key and puts it at a place among the others: at the first one it encrypts from now on.
func (c *configuration) add(place int) string {
	key := newKey(keyNumber(c.newest()) + 1)
	c.setKeys(slices.Insert(c.keys(), place, key))
	return key.Name
}

// newest is the key that was made last.
func (c *configuration) newest() apiserverv1.Key {
	return slices.MaxFunc(c.keys(), func(a, b apiserverv1.Key) int { return keyNumber(a) - keyNumber(b) })
}

// pending is the name of a key that is made and does not encrypt yet, or empty.
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

// old are the names of the keys that only open what is encrypted already.
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

// retire takes the old keys out.
func (c *configuration) retire() { c.setKeys(c.keys()[:1]) }

// keyNumber is the number in a key's name; a name of another form counts as older than all.
func keyNumber(key apiserverv1.Key) int {
	digits, _, _ := strings.Cut(key.Name, "-")
	number, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return number
}
