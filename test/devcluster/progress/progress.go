// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress reports the progress of long steps: their beginning, that they
// still run, and their duration.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A running step is reported soon, and then less and less often, so that one of minutes does not fill a screen.
const (
	firstPause = 5 * time.Second
	lastPause  = time.Minute
)

// Reporter writes lines about steps to one writer. It is safe for concurrent use; a
// nil Reporter writes nothing.
type Reporter struct {
	mutex sync.Mutex
	out   io.Writer
}

// NewReporter returns a reporter that writes to out.
func NewReporter(out io.Writer) *Reporter {
	return &Reporter{out: out}
}

// Sayf writes one line.
func (r *Reporter) Sayf(format string, arguments ...any) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	// A write error cannot be reported.
	_, _ = fmt.Fprintf(r.out, format+"\n", arguments...)
}

// Step runs do, and reports its beginning, from time to time that it still runs, and
// its end. It returns the error of do.
func (r *Reporter) Step(name string, do func() error) error {
	begin := time.Now()
	r.Sayf("%s ...", name)
	stop := r.tick(name, begin)
	err := do()
	stop()
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	r.Sayf("%s: %s after %s", name, outcome, time.Since(begin).Round(100*time.Millisecond))
	return err
}

// tick reports periodically that the step still runs, until the returned function is
// called.
func (r *Reporter) tick(name string, begin time.Time) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for pause := firstPause; ; pause = min(2*pause, lastPause) {
			select {
			case <-done:
				return
			case <-time.After(pause):
				r.Sayf("%s: still running after %s", name, time.Since(begin).Round(time.Second))
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
