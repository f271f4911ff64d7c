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
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// metadataField is the field of a file with the metadata of SOPS.
const metadataField = "sops"

const (
	// longestRule bounds the regular expression of a file, in bytes: more than maxListed annotations with the longest keys take.
	longestRule = 8 << 10
	// longestWrapped bounds the encrypted data key of a recipient, in bytes, and mostRecipients their number.
	longestWrapped = 1 << 10
	mostRecipients = 100
)

// fileFields are the fields of the metadata of SOPS in a file.
var fileFields = sets.New("age", "encrypted_regex", "lastmodified", "mac", "version")

// objectMetadata are the fields of the metadata of objects.
var objectMetadata = readableMetadata.Union(sets.New("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
	"generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"))

var (
	// ErrNoKey is returned by Decrypt if none of the identities can decrypt the file.
	ErrNoKey = errors.New("the file is encrypted for other keys")
	// ErrForeign is returned by Decrypt if the file was not encrypted with the seed: by something else, or it was put together from files
	// that were.
	ErrForeign = errors.New("the file was not encrypted by this server with its present seed")
	// errMalformed is wrapped by errors about a file that has not the form in which this package writes it.
	errMalformed = errors.New("the encrypted file has not the form of SOPS")
)

// IsEncrypted reports whether the content of a file is encrypted by SOPS.
func IsEncrypted(content map[string]any) bool {
	_, found := content[metadataField]
	return found
}

// Opener decrypts files that were encrypted with a seed. It is safe for concurrent use.
type Opener struct {
	// Identities are the private keys that may fit.
	Identities []age.Identity
	// Seed is that of the Encrypter. Without it every file is foreign.
	Seed []byte
}

// Decrypt returns the file of an encrypted object as it was before it was encrypted.
//
// The authentication that SOPS defines does not cover keys, and a value can be moved to another file along with the key. So the key of the
// file must be the one that the Encrypter derives from what was decrypted: without the seed, no file that passes can be written.
//
// It returns ErrNoKey if no identity fits, and ErrForeign if the file is not of this seed; its other errors quote nothing of the content.
func (o *Opener) Decrypt(file *unstructured.Unstructured) ([]byte, error) {
	content, _, err := o.decrypt(file)
	return content, err
}

// Rewrite returns the file of an encrypted object as the Encrypter writes it for the same recipients. These are the bytes of the file unless
// others, or an earlier version, wrote it in another way, for example with comments. Its errors are those of Decrypt.
func (o *Opener) Rewrite(file *unstructured.Unstructured) ([]byte, error) {
	content, recipients, err := o.decrypt(file)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &object.Object); err != nil {
		return nil, fmt.Errorf("%w: it holds no object", errMalformed)
	}
	encrypter, err := NewEncrypter(o.Seed, recipients)
	if err != nil {
		return nil, ErrForeign
	}
	return encrypter.Encrypt(object)
}

// decrypt returns the file as it was before it was encrypted, and its recipients.
func (o *Opener) decrypt(file *unstructured.Unstructured) (content []byte, recipients []string, err error) {
	metadata, ok := file.Object[metadataField].(map[string]any)
	if !ok || !fileFields.HasAll(slices.Collect(maps.Keys(metadata))...) {
		return nil, nil, errMalformed
	}
	if of, _ := file.Object["metadata"].(map[string]any); !objectMetadata.HasAll(slices.Collect(maps.Keys(of))...) {
		return nil, nil, fmt.Errorf("%w: its object has unknown metadata", errMalformed)
	}
	object := &unstructured.Unstructured{Object: maps.Clone(file.Object)}
	delete(object.Object, metadataField)
	opened, err := o.open(metadata)
	if err != nil {
		return nil, nil, err
	}
	content, err = manifest.Verbatim(object, opened)
	if err != nil {
		return nil, nil, err
	}
	if err := o.verify(opened, content); err != nil {
		return nil, nil, err
	}
	return content, opened.recipients, nil
}

// verify returns ErrForeign unless the key of a file is derived from its content.
func (o *Opener) verify(opened *openedFile, content []byte) error {
	encrypter, err := NewEncrypter(o.Seed, opened.recipients)
	if err != nil {
		return ErrForeign
	}
	key, err := encrypter.fileKey(opened.rule, content).derive(dataKeyName, dataKeySize)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(key, opened.key) != 1 {
		return ErrForeign
	}
	return nil
}

// openedFile decrypts the values of a file.
type openedFile struct {
	key        []byte
	cipher     cipher.AEAD
	rule       rule
	covered    sets.Set[string]
	recipients []string
	// digest is over all values.
	digest hash.Hash
	// code is the encrypted message authentication code, modified its additional data.
	code, modified string
}

// Verbatim replaces the values of a file in their order, which is what decrypting needs, too.
var _ manifest.Encrypter = &openedFile{}

func (o *Opener) open(metadata map[string]any) (*openedFile, error) {
	f := &openedFile{digest: sha512.New()}
	expression, _ := metadata["encrypted_regex"].(string)
	f.code, _ = metadata["mac"].(string)
	f.modified, _ = metadata["lastmodified"].(string)
	var err error
	if f.rule, err = parseRule(expression); err != nil {
		return nil, err
	}
	f.covered = sets.New(f.rule...)
	if err := f.readKey(metadata, o.Identities); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(f.key)
	if err != nil {
		return nil, errMalformed
	}
	if f.cipher, err = cipher.NewGCMWithNonceSize(block, nonceSize); err != nil {
		return nil, fmt.Errorf("prepare the cipher: %w", err)
	}
	return f, nil
}

// readKey reads the recipients and the key of a file, which it decrypts with one of the identities. Each is tried once.
func (f *openedFile) readKey(metadata map[string]any, identities []age.Identity) error {
	recipients, _ := metadata["age"].([]any)
	if len(recipients) > mostRecipients {
		return errMalformed
	}
	wrapped := map[string]string{}
	for _, recipient := range recipients {
		fields, _ := recipient.(map[string]any)
		text, _ := fields["recipient"].(string)
		key, _ := fields["enc"].(string)
		if len(fields) != 2 || len(text) != recipientLength || len(key) > longestWrapped {
			return errMalformed
		}
		f.recipients, wrapped[text] = append(f.recipients, text), key
	}
	for _, identity := range identities {
		private, ok := identity.(*age.X25519Identity) // There are no other recipients.
		if !ok || wrapped[private.Recipient().String()] == "" {
			continue
		}
		var err error
		if f.key, err = unwrap(wrapped[private.Recipient().String()], private); err == nil {
			return nil
		}
	}
	return ErrNoKey
}

// unwrap decrypts an armored age file with a data key.
func unwrap(wrapped string, identity age.Identity) ([]byte, error) {
	opened, err := age.Decrypt(armor.NewReader(strings.NewReader(wrapped)), identity)
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
	if value != "" && f.covered.HasAny(path...) {
		text, ok := value.(string)
		if !ok {
			return nil, errMalformed
		}
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
