// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metric"
)

var dismissals = metric.NewCounter("dismissals_total",
	"Times that somebody has put aside what an environment prompts for, or a SyncStatus.")

func init() { legacyregistry.MustRegister(dismissals) }

// countDismissal counts one that was carried out, unless it was only tried.
func countDismissal(dryRun []string) {
	if !dryrun.IsDryRun(dryRun) {
		dismissals.Inc()
	}
}
