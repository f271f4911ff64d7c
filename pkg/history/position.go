// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
)

// position is where a Change is in a list, whose order is that of names, and so of times, the newest first. Changes of one time are in the
// order of their names and namespaces. The zero position precedes all.
type position struct{ name, namespace string }

// compare compares two positions.
func (p position) compare(other position) int {
	return cmp.Or(cmp.Compare(p.name, other.name), cmp.Compare(p.namespace, other.namespace))
}

// key returns the key in the table of Changes.
func (p position) key() string { return p.namespace + "/" + p.name }

// ownToken begins the positions in the continue tokens of this storage, and namespaces do not begin with it, as the keys in upstream's tokens
// do.
const ownToken = "/@"

// token returns the continue token of a list at a resourceVersion whose last Change is at the position.
func (p position) token(revision uint64) (string, error) {
	token, err := storage.EncodeContinue(ownToken+p.name+"/"+p.namespace, "/", int64(min(revision, math.MaxInt64)))
	if err != nil {
		return "", fmt.Errorf("encode a continue token: %w", err)
	}
	return token, nil
}

// beginning is where a page begins: after a position, in a list at a resourceVersion, which is 0 for the first page.
type beginning struct {
	after    position
	revision uint64
}

// continued returns where a list continues. own is false for a token of upstream's storage.
func continued(token string) (from beginning, own bool, err error) {
	if token == "" {
		return beginning{}, true, nil
	}
	key, revision, err := storage.DecodeContinue(token, "/")
	if err != nil {
		return beginning{}, false, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	at, own := strings.CutPrefix(key, ownToken)
	if !own {
		return beginning{}, false, nil
	}
	name, namespace, found := strings.Cut(at, "/")
	if !found || revision < 0 {
		return beginning{}, false, apierrors.NewBadRequest("invalid continue token: it has no namespace or no resourceVersion")
	}
	return beginning{position{name, namespace}, uint64(revision)}, true, nil
}
