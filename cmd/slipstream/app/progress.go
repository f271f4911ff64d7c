// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"
)

// progressInterval is how long something may take before it says how far it is, and how often it says so.
const progressInterval = 2 * time.Second

// mebibyte is what progress is counted in.
const mebibyte = 1 << 20

// progress passes on what is read and says how far it is.
type progress struct {
	io.Reader
	out   io.Writer
	what  string
	clock clock.PassiveClock
	// total is the number of bytes to come, 0 if it is not known.
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
