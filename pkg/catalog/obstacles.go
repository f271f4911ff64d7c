// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// obstacles are why catalogs cannot go on, by their UIDs, where no record can say it: one that tells already of the change does
// not fail any more, and one that may not be made is not there. A server that starts finds them again.
type obstacles struct {
	mu sync.Mutex
	of map[types.UID]verdict
}

// set notes the obstacle of a catalog; the zero value says that there is none.
func (o *obstacles) set(uid types.UID, why verdict) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case why.ok():
		delete(o.of, uid)
	case o.of == nil:
		o.of = map[types.UID]verdict{uid: why}
	default:
		o.of[uid] = why
	}
}

func (o *obstacles) get(uid types.UID) verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[uid]
}

// each does something with each catalog, and returns those that nothing went wrong with: no catalog waits for another.
func each(
	catalogs []*v1alpha1.AppCatalog, do func(*v1alpha1.AppCatalog) error,
) (able []*v1alpha1.AppCatalog, err error) {
	var errs []error
	for _, catalog := range catalogs {
		err := do(catalog)
		if err == nil {
			able = append(able, catalog)
		}
		errs = append(errs, err)
	}
	return able, utilerrors.NewAggregate(errs)
}
