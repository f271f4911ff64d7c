// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var evictions = metrics.NewCounter(&metrics.CounterOpts{
	Namespace: "slipstream", Name: "kv_evictions_total", StabilityLevel: metrics.ALPHA,
	Help: "Reports of who made a change that were given up before their time, because there were too many.",
})

func init() { legacyregistry.MustRegister(evictions) }

// Evicted counts facts that are given up before their time, because there are too many of them.
func Evicted(facts int) { evictions.Add(float64(facts)) }
