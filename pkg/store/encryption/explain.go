// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/storage/value"
	"sigs.k8s.io/yaml"
)

// encryptedForm matches the prefix of upstream's transformers: provider, version, and key or plugin.
var encryptedForm = regexp.MustCompile("^k8s:enc:([a-z]+):v[0-9]+:([^:]{1,253}):")

// damagedForm matches [encryptedForm] if its first 8 bytes, k8s:enc:, are damaged.
var damagedForm = regexp.MustCompile("^(?s:.{8})(?:aesgcm|aescbc|secretbox|kms):v[0-9]+:[^:]{1,253}:")

// errDamagedForm is returned for an encrypted value whose provider cannot be determined.
var errDamagedForm = errors.New("it is encrypted, and its first bytes are damaged (see docs/operations.md)")

// checkForm returns an error for an encrypted value that the provider identity would return as plain because one of its
// first bytes is damaged.
func checkForm(stored []byte) error {
	if EncryptedBy(stored) == "" && damagedForm.Match(stored) {
		return errDamagedForm
	}
	return nil
}

// EncryptedBy returns the key with which a stored value is encrypted, such as secretbox "1-5f2c8a01", or an empty string
// if it is plain.
func EncryptedBy(stored []byte) string {
	parts := encryptedForm.FindSubmatch(stored)
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("%s %q", parts[1], parts[2])
}

// Keys returns the keys and KMS plugins of the active configuration, for any resource, in the form of [EncryptedBy].
func (e *Encrypter) Keys() (names []string, err error) {
	var c apiserverv1.EncryptionConfiguration
	if err := yaml.Unmarshal(*e.content.Load(), &c); err != nil {
		return nil, fmt.Errorf("reading the keys of %s: %w", e.config.Origin, err)
	}
	for _, resource := range c.Resources {
		for _, provider := range resource.Providers {
			names = append(names, keysOf(provider)...)
		}
	}
	return names, nil
}

func keysOf(provider apiserverv1.ProviderConfiguration) (names []string) {
	add := func(kind string, keys []apiserverv1.Key) {
		for _, key := range keys {
			names = append(names, fmt.Sprintf("%s %q", kind, key.Name))
		}
	}
	switch {
	case provider.AESGCM != nil:
		add("aesgcm", provider.AESGCM.Keys)
	case provider.AESCBC != nil:
		add("aescbc", provider.AESCBC.Keys)
	case provider.Secretbox != nil:
		add("secretbox", provider.Secretbox.Keys)
	case provider.KMS != nil:
		add("kms", []apiserverv1.Key{{Name: provider.KMS.Name}})
	}
	return names
}

// encryptedByPlugin reports whether a stored value is encrypted by a KMS plugin.
func encryptedByPlugin(stored []byte) bool { return strings.HasPrefix(EncryptedBy(stored), "kms ") }

// explaining is a transformer whose errors name the missing key, which those of upstream's transformers do not.
type explaining struct {
	value.Transformer
}

func (e explaining) TransformFromStorage(ctx context.Context, stored []byte, of value.Context) ([]byte, bool, error) {
	if err := checkForm(stored); err != nil {
		return nil, false, err
	}
	plain, stale, err := e.Transformer.TransformFromStorage(ctx, stored, of)
	if err != nil {
		return nil, false, explain(stored, err)
	}
	return plain, stale, nil
}

// explain adds to an error what to do about a value that cannot be decrypted.
func explain(stored []byte, err error) error {
	by := EncryptedBy(stored)
	switch {
	case by != "":
		return fmt.Errorf("it is encrypted with %s: either the encryption configuration lacks that key, or the value is damaged "+
			"(see docs/operations.md): %w", by, err)
	case errors.Is(err, errDamagedForm):
		return err
	case bytes.HasPrefix(stored, []byte("k8s:enc:")):
		return fmt.Errorf("%w: %w", errDamagedForm, err)
	}
	return fmt.Errorf("it is not encrypted, which requires the provider identity in the encryption configuration: %w", err)
}
