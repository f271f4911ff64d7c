// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

var evictions = metrics.NewCounter("kv_evictions_total",
	"Reports of who made a change that were given up before their time, because there were too many.")

func init() { legacyregistry.MustRegister(evictions) }

// Evicted counts facts that are given up before their time, because there are too many of them.
func Evicted(facts int) { evictions.Add(float64(facts)) }
