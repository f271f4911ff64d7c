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

const (
	// ownToken begins the positions in the continue tokens of this storage, and namespaces do not begin with it, as the keys in upstream's
	// tokens do.
	ownToken = "/@"
	// formerToken began the keys in tokens of lists that were in another order.
	formerToken = "/~"
)

// token returns the continue token of a list at a resourceVersion whose last Change is at the position.
func (p position) token(revision uint64) (string, error) {
	token, err := storage.EncodeContinue(ownToken+p.name+"/"+p.namespace, "/", int64(min(revision, math.MaxInt64)))
	if err != nil {
		return "", fmt.Errorf("encode a continue token: %w", err)
	}
	return token, nil
}

// continued returns the position after which a list continues. own is false for a token of upstream's storage.
func continued(token string) (after position, own bool, err error) {
	if token == "" {
		return position{}, true, nil
	}
	key, _, err := storage.DecodeContinue(token, "/")
	if err != nil {
		return position{}, false, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	if strings.HasPrefix(key, formerToken) {
		return position{}, false, apierrors.NewResourceExpired("the continue token is of an earlier version of the server: list again without it")
	}
	at, own := strings.CutPrefix(key, ownToken)
	if !own {
		return position{}, false, nil
	}
	after.name, after.namespace, own = strings.Cut(at, "/")
	if !own {
		return position{}, false, apierrors.NewBadRequest("invalid continue token: it has no namespace")
	}
	return after, true, nil
}
