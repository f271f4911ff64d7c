// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"
)

// progressInterval is the time before the first and between further progress messages.
const progressInterval = 2 * time.Second

// mebibyte is the unit of progress messages.
const mebibyte = 1 << 20

// progress forwards what is read and reports progress.
type progress struct {
	io.Reader
	out   io.Writer
	what  string
	clock clock.PassiveClock
	// total is the expected number of bytes, 0 if unknown.
	total, done int64
	said        time.Time
}

func newProgress(r io.Reader, out io.Writer, what string, total int64, c clock.PassiveClock) *progress {
	return &progress{Reader: r, out: out, what: what, total: total, clock: c, said: c.Now()}
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.done += int64(n)
	if now := p.clock.Now(); now.Sub(p.said) >= progressInterval {
		p.said = now
		p.say()
	}
	return n, err
}

func (p *progress) say() {
	if p.total == 0 {
		_, _ = fmt.Fprintf(p.out, "%s: %d MiB\n", p.what, p.done/mebibyte) // Nothing depends on it.
		return
	}
	_, _ = fmt.Fprintf(p.out, "%s: %d of %d MiB, %d %%\n", p.what, p.done/mebibyte, p.total/mebibyte, min(100, 100*p.done/p.total))
}
