// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"
	"strconv"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// metadataField is the field of a file with the metadata of SOPS.
const metadataField = "sops"

const (
	// longestRule bounds the regular expression of a file that is evaluated, in bytes.
	longestRule = 16 << 10
	// longestWrapped bounds the encrypted data key of a recipient, in bytes, and mostRecipients their number.
	longestWrapped = 8 << 10
	mostRecipients = 200
)

// ErrNoKey is returned by Decrypt if none of the identities can decrypt the file.
var ErrNoKey = errors.New("the file is encrypted for other keys")

// errMalformed is wrapped by errors about a file that has not the form in which this package writes it.
var errMalformed = errors.New("the encrypted file has not the form of SOPS")

// IsEncrypted reports whether the content of a file is encrypted by SOPS.
func IsEncrypted(content map[string]any) bool {
	_, found := content[metadataField]
	return found
}

// Decrypt returns the file of an encrypted object as manifest.Render renders the object. It verifies the message authentication code,
// for values in the order in which this package writes them. It returns ErrNoKey if no identity fits; its other errors quote nothing
// of the content.
func Decrypt(file *unstructured.Unstructured, identities []age.Identity) ([]byte, error) {
	metadata, ok := file.Object[metadataField].(map[string]any)
	if !ok {
		return nil, errMalformed
	}
	object := file.DeepCopy()
	delete(object.Object, metadataField)
	opened, err := openFile(metadata, identities)
	if err != nil {
		return nil, err
	}
	return manifest.RenderEncrypted(object, opened)
}

// openedFile decrypts the values of a file.
type openedFile struct {
	cipher cipher.AEAD
	rule   *regexp.Regexp
	// digest is over all values.
	digest hash.Hash
	// code is the encrypted message authentication code, modified its additional data.
	code, modified string
}

// RenderEncrypted replaces the values of a file in their order, which is what decrypting needs, too.
var _ manifest.Encrypter = &openedFile{}

func openFile(metadata map[string]any, identities []age.Identity) (*openedFile, error) {
	f := &openedFile{digest: sha512.New()}
	expression, _ := metadata["encrypted_regex"].(string)
	f.code, _ = metadata["mac"].(string)
	f.modified, _ = metadata["lastmodified"].(string)
	if expression == "" || len(expression) > longestRule {
		return nil, errMalformed
	}
	var err error
	if f.rule, err = regexp.Compile(expression); err != nil {
		return nil, errMalformed
	}
	key, err := dataKey(metadata, identities)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errMalformed
	}
	if f.cipher, err = cipher.NewGCMWithNonceSize(block, nonceSize); err != nil {
		return nil, fmt.Errorf("prepare the cipher: %w", err)
	}
	return f, nil
}

// dataKey returns the key of a file, decrypted with one of the identities.
func dataKey(metadata map[string]any, identities []age.Identity) ([]byte, error) {
	recipients, _ := metadata["age"].([]any)
	if len(recipients) > mostRecipients {
		return nil, errMalformed
	}
	if len(identities) == 0 {
		return nil, ErrNoKey
	}
	for _, recipient := range recipients {
		fields, _ := recipient.(map[string]any)
		wrapped, _ := fields["enc"].(string)
		if len(wrapped) > longestWrapped {
			return nil, errMalformed
		}
		if key, err := unwrap(wrapped, identities); err == nil {
			return key, nil
		}
	}
	return nil, ErrNoKey
}

// unwrap decrypts an armored age file with a data key.
func unwrap(wrapped string, identities []age.Identity) ([]byte, error) {
	opened, err := age.Decrypt(armor.NewReader(strings.NewReader(wrapped)), identities...)
	if err != nil {
		return nil, err
	}
	key, err := io.ReadAll(io.LimitReader(opened, dataKeySize+1))
	if err == nil && len(key) != dataKeySize {
		err = errMalformed
	}
	return key, err
}

// Value returns the value, decrypted if the rule covers it.
func (f *openedFile) Value(path []string, value any) (any, error) {
	text, covered := value.(string)
	if covered = covered && text != "" && f.covers(path); covered {
		var err error
		if value, err = f.decrypt(text, strings.Join(path, ":")+":"); err != nil {
			return nil, err
		}
	}
	plain, _, err := textOf(value)
	if err != nil {
		return nil, err
	}
	f.digest.Write([]byte(plain))
	return value, nil
}

func (f *openedFile) covers(path []string) bool {
	for _, key := range path {
		if f.rule.MatchString(key) {
			return true
		}
	}
	return false
}

// notation is the form of an encrypted value.
var notation = regexp.MustCompile(`^ENC\[AES256_GCM,data:([^,]+),iv:([^,]+),tag:([^,]+),type:([a-z]+)\]$`)

// decrypt returns the value of an encrypted text.
func (f *openedFile) decrypt(text, additionalData string) (any, error) {
	parts := notation.FindStringSubmatch(text)
	if parts == nil {
		return nil, errMalformed
	}
	var decoded [3][]byte
	for i := range decoded {
		var err error
		if decoded[i], err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil {
			return nil, errMalformed
		}
	}
	data, nonce, tag := decoded[0], decoded[1], decoded[2]
	if len(nonce) != nonceSize || len(tag) != f.cipher.Overhead() {
		return nil, errMalformed
	}
	plain, err := f.cipher.Open(nil, nonce, bytes.Join([][]byte{data, tag}, nil), []byte(additionalData))
	if err != nil {
		return nil, errMalformed
	}
	return valueOf(string(plain), parts[4])
}

// valueOf is the reverse of textOf.
func valueOf(text, kind string) (any, error) {
	var value any
	var err error
	switch kind {
	case "str":
		return text, nil
	case "int":
		value, err = strconv.ParseInt(text, 10, 64)
	case "float":
		value, err = strconv.ParseFloat(text, 64)
	case "bool":
		value, err = strconv.ParseBool(text)
	default:
		err = errMalformed
	}
	if err != nil {
		return nil, errMalformed // err quotes the value
	}
	return value, nil
}

// Fields verifies the message authentication code. It returns no fields.
func (f *openedFile) Fields() (map[string]any, error) {
	code, err := f.decrypt(f.code, f.modified)
	if err != nil {
		return nil, err
	}
	want := fmt.Sprintf("%X", f.digest.Sum(nil))
	if got, _ := code.(string); subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
		return nil, fmt.Errorf("%w: its values are not those that were encrypted", errMalformed)
	}
	return map[string]any{}, nil
}
