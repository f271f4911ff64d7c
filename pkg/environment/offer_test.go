// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/test/testkit"
)

// emptyPlanner plans no changes.
type emptyPlanner struct{}

func (emptyPlanner) Run(context.Context, syncer.Request) (syncer.Result, error) {
	return syncer.Result{Plan: &plan.Plan{}}, nil
}

func (emptyPlanner) Moment() syncer.Moment { return 1 }

// TestOfferOfARecreatedEnvironment checks that an environment that replaces one of the same name does not get its offer, which is about
// another spec of the same generation.
func TestOfferOfARecreatedEnvironment(t *testing.T) {
	o := newOffers(emptyPlanner{}, testkit.NewClock(t), func(types.NamespacedName) {})
	defer o.queue.ShutDown()
	e, catalog := environmenttest.Environment(), environmenttest.Catalog()
	o.of(nameOf(e), newOfferRequest(e, catalog, nil))
	if _, err := o.find(t.Context(), nameOf(e)); err != nil {
		t.Fatal(err)
	}
	if o.of(nameOf(e), newOfferRequest(e, catalog, nil)) == nil {
		t.Fatal("no offer of the first environment")
	}
	e.UID = "another"
	if o.of(nameOf(e), newOfferRequest(e, catalog, nil)) != nil {
		t.Error("the new environment got the offer of the deleted one")
	}
}
