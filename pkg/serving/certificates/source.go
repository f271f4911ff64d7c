// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"time"
)

// Source is where the server's certificate comes from.
type Source interface {
	// String names it to people.
	String() string
	// wanted returns what the server is to show from now on: one of those that it knows, if it is that, or another. The
	// first is the one that it shows. With an error it may return what to go on with, or nil.
	wanted(ctx context.Context, now time.Time, known ...*identity) (*identity, error)
	// renewed returns what is shown, or the same for longer if it can be had without asking anybody.
	renewed(now time.Time, shown *identity) (*identity, error)
	// changed tells whether something else is to be shown, as far as that is known without asking the cluster.
	changed(now time.Time, shown *identity) bool
	// hold is how long an authority stays in bundles that is not needed by the leader any more: after that time no
	// replica shows a certificate of it.
	hold() time.Duration
}
