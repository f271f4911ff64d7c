// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress answers whether something long is still going on: it tells a
// person what was begun, that it goes on, and how long it took.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A step that goes on says so soon, and then less and less often: one that takes minutes need not fill a screen.
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
	// Nobody can be told that telling failed.
	_, _ = fmt.Fprintf(r.out, format+"\n", arguments...)
}

// Step runs do, says so when it begins, now and then while it goes on, and when it is
// done. It returns what do returns.
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

// tick says now and then that the step goes on, until the function that it returns is
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
				r.Sayf("%s: still at it after %s", name, time.Since(begin).Round(time.Second))
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
