// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

var unreadable = metrics.NewCounter("facts_unreadable_total",
	"Stored facts about authors of changes that could not be decrypted or decoded and were skipped.")

func init() { legacyregistry.MustRegister(unreadable) }
