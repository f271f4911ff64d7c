// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/bits"

	"filippo.io/age"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

// Masked values.
const (
	maskEmpty     = "(hidden, empty)"
	maskEncrypted = "(hidden, encrypted for a key that this server does not hold)"
)

// opener shows Secrets. It reads the server's private key once, when it is first needed.
type opener struct {
	past *Past
	// decrypted shows the values.
	decrypted bool

	read       bool
	identities []age.Identity
}

// open returns a Secret as it is in the cluster. It returns sops.ErrNoKey if the file is encrypted for other keys than the server's, and
// errUnreadable if it is damaged.
func (o *opener) open(ctx context.Context, secret *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !sops.IsEncrypted(secret.Object) {
		return secret, nil
	}
	if !o.read {
		o.read, o.identities = true, o.past.identities(ctx)
	}
	content, err := sops.Decrypt(secret, o.identities)
	switch {
	case errors.Is(err, sops.ErrNoKey):
		return nil, err
	case err != nil:
		return nil, errUnreadable
	}
	return decode(content)
}

// show returns a Secret as the caller wants to see it.
func (o *opener) show(ctx context.Context, secret *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	opened, err := o.open(ctx, secret)
	switch {
	case errors.Is(err, sops.ErrNoKey) && o.decrypted:
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"secrets: Secret %s/%s is encrypted for keys that this server does not hold; decrypt the file in Git with SOPS, or ask for secrets=Masked",
			secret.GetNamespace(), secret.GetName()))
	case errors.Is(err, sops.ErrNoKey):
		return masked(secret, maskWith(maskEncrypted)), nil
	case err != nil:
		return nil, err
	case o.decrypted:
		return opened, nil
	}
	return masked(opened, maskLength), nil
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
