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

// Interval is how often a step that goes on says so.
const Interval = 5 * time.Second

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

// Step runs do, says so when it begins, each Interval that it goes on, and when it is
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

// tick says every Interval that the step goes on, until the function that it returns
// is called.
func (r *Reporter) tick(name string, begin time.Time) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(Interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				r.Sayf("%s: still at it after %s", name, time.Since(begin).Round(time.Second))
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
