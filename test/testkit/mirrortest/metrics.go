// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirrortest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Counted returns the value of a counter of the server with these labels, or the sum of all its series if it is given
// without labels.
func (s *AdminCluster) Counted(ctx context.Context, counter string) (float64, error) {
	out, err := s.ReadServer(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	return sum(out, func(series string) bool { return series == counter || strings.HasPrefix(series, counter+"{") })
}

// ReviewMetric returns the sum of one of kube-apiserver's metrics about the webhook that receives changes, such as fail_open_count.
func ReviewMetric(metrics, name string) (float64, error) {
	prefix := "apiserver_admission_webhook_" + name + `{name="attribution.configbutler.ai",`
	return sum(metrics, func(series string) bool { return strings.HasPrefix(series, prefix) })
}

// sum returns the sum of some series in metrics of a program.
func sum(metrics string, isSummed func(series string) bool) (total float64, err error) {
	// A regular expression would take seconds for megabytes of metrics.
	for line := range strings.Lines(metrics) {
		end := strings.LastIndexByte(line, ' ')
		if end < 0 || !isSummed(line[:end]) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[end:]), 64)
		if err != nil {
			return 0, fmt.Errorf("failed to read %s: %w", line[:end], err)
		}
		total += n
	}
	return total, nil
}
