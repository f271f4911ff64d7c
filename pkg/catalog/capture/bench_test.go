// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/catalog/capture"
)

// BenchmarkCapture measures the cost of each event of a source.
func BenchmarkCapture(b *testing.B) {
	for _, name := range []string{"deployment", "cronjob"} {
		b.Run(name, func(b *testing.B) {
			object, rules := live(b, name), byDefault(b)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := capture.Capture(object, rules); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
