// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"

	"k8s.io/klog/v2"
)

// reporter counts failures and logs each new one once. It is not safe for concurrent use.
type reporter struct {
	last string
}

// failing reports whether the last report was a failure.
func (r *reporter) failing() bool { return r.last != "" }

func (r *reporter) report(ctx context.Context, what string, err error) {
	if err == nil {
		if r.last != "" {
			klog.FromContext(ctx).Info("The serving certificate and its authorities are up to date again")
		}
		r.last = ""
		return
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return // The server stops.
	}
	bundleFailures.Inc()
	if err.Error() != r.last {
		klog.FromContext(ctx).Error(err, what)
	}
	r.last = err.Error()
}
