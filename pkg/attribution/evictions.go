// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

var evictions = metrics.NewCounter("kv_evictions_total",
	"Attribution facts that were dropped before they expired because there were too many.")

func init() { legacyregistry.MustRegister(evictions) }

// Evicted counts facts that are dropped before they expire because there are too many.
func Evicted(facts int) { evictions.Add(float64(facts)) }
