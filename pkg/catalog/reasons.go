// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// reasons has a reason for each of some catalogs, by UID. It is not stored: the reasons are found again after a restart.
type reasons struct {
	mu sync.Mutex
	of map[types.UID]conditions.Reason
}

// set sets the reason of a catalog. The zero value deletes it.
func (r *reasons) set(uid types.UID, reason conditions.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case reason.IsZero():
		delete(r.of, uid)
	case r.of == nil:
		r.of = map[types.UID]conditions.Reason{uid: reason}
	default:
		r.of[uid] = reason
	}
}

// delete deletes the reason of a catalog.
func (r *reasons) delete(uid types.UID) { r.set(uid, conditions.Reason{}) }

// get returns the reason of a catalog, the zero value if it has none.
func (r *reasons) get(uid types.UID) conditions.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[uid]
}
