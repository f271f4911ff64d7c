// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"time"
)

// Source is a source of the serving certificate.
type Source interface {
	// String describes the source.
	String() string
	// wanted returns the certificate to serve from now on: one of the known ones, of which the first is served now, or
	// another. With an error it returns the certificate to continue with, or nil.
	wanted(ctx context.Context, now time.Time, known ...*identity) (*identity, error)
	// renewed returns the served certificate, or a renewed one if that requires no request to the cluster.
	renewed(now time.Time, shown *identity) (*identity, error)
	// changed reports whether another certificate should be served, as far as that is known without a request to the
	// cluster.
	changed(now time.Time, shown *identity) bool
	// hold returns how long an authority stays in bundles after the leader no longer needs it. After that time no
	// replica serves its certificates.
	hold() time.Duration
}
