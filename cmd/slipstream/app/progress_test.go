// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"io"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// slowReader takes a second for each mebibyte.
type slowReader struct {
	clock *clocktesting.FakePassiveClock
	left  int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	r.clock.SetTime(r.clock.Now().Add(time.Second))
	return min(len(p), mebibyte), nil
}

func TestProgress(t *testing.T) {
	tests := []struct {
		name  string
		size  int
		total int64
		want  string
	}{
		{name: "a quick copy prints nothing", size: 1, total: mebibyte},
		{name: "a slow copy prints its progress", size: 5, total: 8 * mebibyte, want: "copying: 2 of 8 MiB, 25 %\ncopying: 4 of 8 MiB, 50 %\n"},
		{name: "without a total", size: 3, want: "copying: 2 MiB\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			var said strings.Builder
			p := newProgress(&slowReader{clock: clock, left: tt.size}, &said, "copying", tt.total, clock)
			buffer := make([]byte, mebibyte)
			for {
				if _, err := p.Read(buffer); err != nil {
					break
				}
			}
			if said.String() != tt.want {
				t.Errorf("said %q, want %q", said.String(), tt.want)
			}
		})
	}
}
