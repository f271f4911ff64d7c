// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package factlog

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var unreadable = metrics.NewCounter(&metrics.CounterOpts{
	Namespace: "slipstream", Name: "facts_unreadable_total", StabilityLevel: metrics.ALPHA,
	Help: "Stored reports of who made a change that could not be opened or decoded, and were left out.",
})

func init() { legacyregistry.MustRegister(unreadable) }
