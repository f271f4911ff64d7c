// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/bits"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

// Masked values.
const (
	maskEmpty     = "(hidden, empty)"
	maskEncrypted = "(hidden, encrypted for a key that this server does not hold)"
	maskForeign   = "(hidden)"
)

// opener shows Secrets. It reads the server's keys once, when they are first needed.
type opener struct {
	past *Past
	// decrypted shows the values.
	decrypted bool

	read bool
	keys sops.Opener
}

// open returns a Secret as it is in the cluster. It returns sops.ErrNoKey if the file is encrypted for other keys than the server's,
// sops.ErrForeign if the server has not encrypted it as it is, and errUnreadable if it is damaged.
func (o *opener) open(ctx context.Context, secret *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !sops.IsEncrypted(secret.Object) {
		return secret, nil
	}
	o.readKeys(ctx)
	content, err := o.keys.Decrypt(secret)
	switch {
	case isSealed(err):
		return nil, err
	case err != nil:
		return nil, errUnreadable
	}
	return decode(ctx, content)
}

func (o *opener) readKeys(ctx context.Context) {
	if !o.read {
		o.read, o.keys = true, o.past.keys(ctx)
	}
}

// altered reports whether an encrypted file that the server can decrypt has other bytes than the server writes.
func (o *opener) altered(ctx context.Context, file gitrepo.Hash, secret *unstructured.Unstructured) bool {
	if !sops.IsEncrypted(secret.Object) {
		return false
	}
	o.readKeys(ctx)
	content, err := o.keys.Rewrite(secret)
	return err == nil && gitrepo.BlobHash(content) != file
}

// isSealed reports whether an error of open is about an encrypted file that may be intact.
func isSealed(err error) bool {
	return errors.Is(err, sops.ErrNoKey) || errors.Is(err, sops.ErrForeign)
}

// sealedMask returns the mask of the values of a Secret that could not be decrypted.
func sealedMask(err error) func([]string, any) any {
	if errors.Is(err, sops.ErrForeign) {
		return maskWith(maskForeign)
	}
	return maskWith(maskEncrypted)
}

// show returns a Secret as the caller wants to see it. The error for readable values that the server cannot decrypt is isSealed.
func (o *opener) show(ctx context.Context, secret *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	opened, err := o.open(ctx, secret)
	switch {
	case isSealed(err) && !o.decrypted:
		return masked(secret, sealedMask(err)), nil
	case err != nil:
		return nil, err
	case o.decrypted:
		return opened, nil
	}
	return masked(opened, maskLength), nil
}

// sealedError returns the error for the caller who wants the values of a Secret that the server cannot decrypt.
func sealedError(secret *unstructured.Unstructured, err error) error {
	const advice = "decrypt the file in Git with SOPS, or ask for secrets=Masked"
	why := "is encrypted for keys that this server does not hold"
	if errors.Is(err, sops.ErrForeign) {
		why = "was not encrypted by this server with its present seed, or was changed since then, so it is not decrypted here"
	}
	return apierrors.NewBadRequest(fmt.Sprintf("secrets: Secret %s/%s %s; %s", secret.GetNamespace(), secret.GetName(), why, advice))
}

func masked(secret *unstructured.Unstructured, mask func(path []string, value any) any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: sops.Mask(secret.Object, mask)}
}

// maskWith returns a mask that replaces all values by a text.
func maskWith(text string) func([]string, any) any { return func([]string, any) any { return text } }

// maskLength replaces a value by the class of its length: between two powers of two. The length of data is that of the decoded value.
func maskLength(path []string, value any) any {
	text, ok := value.(string)
	if !ok {
		text = fmt.Sprint(value)
	}
	length := len(text)
	if decoded, err := base64.StdEncoding.DecodeString(text); path[0] == "data" && err == nil {
		length = len(decoded)
	}
	switch length {
	case 0:
		return maskEmpty
	case 1:
		return "(hidden, 1 byte)"
	}
	least := 1 << (bits.Len(uint(length)) - 1)
	return fmt.Sprintf("(hidden, %d to %d bytes)", least, 2*least-1)
}
