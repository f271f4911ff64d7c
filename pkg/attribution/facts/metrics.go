// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

var unreadable = metrics.NewCounter("facts_unreadable_total",
	"Stored reports of who made a change that could not be opened or decoded, and were left out.")

func init() { legacyregistry.MustRegister(unreadable) }
