// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/metrics"
)

var (
	bufferRows = metrics.NewGaugeVec("work_buffer_rows",
		"Changes of the work store that are buffered in memory until they are written, by table.", "table")
	bufferBytes = metrics.NewGaugeVec("work_buffer_bytes",
		"Size of the changes of the work store that are buffered in memory until they are written, by table.", "table")
)

func init() { legacyregistry.MustRegister(bufferRows, bufferBytes) }

// fillLevel is what a buffer contributes to the metrics of its table. Tables may have several buffers.
type fillLevel struct {
	table string
	// shown is false while the buffer is not running, and contributes nothing.
	shown       bool
	rows, bytes int
}

func (l *fillLevel) set(rows, bytes int) {
	if !l.shown {
		rows, bytes = 0, 0
	}
	if rows == l.rows && bytes == l.bytes {
		return
	}
	bufferRows.WithLabelValues(l.table).Add(float64(rows - l.rows))
	bufferBytes.WithLabelValues(l.table).Add(float64(bytes - l.bytes))
	l.rows, l.bytes = rows, bytes
}
