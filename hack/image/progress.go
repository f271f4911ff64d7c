// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"
)

// The progress of a step is logged after a short time, and then less and less often: a first compilation takes minutes.
const (
	firstPause = 5 * time.Second
	lastPause  = time.Minute
)

// step runs do, and logs its start, its progress and its end.
func step(name string, do func() error) error {
	begin, done := time.Now(), make(chan error, 1)
	logf("%s ...", name)
	go func() { done <- do() }()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		select {
		case err := <-done:
			if err == nil {
				logf("%s: done after %s", name, time.Since(begin).Round(100*time.Millisecond))
			}
			return err
		case <-time.After(pause):
			logf("%s: still running after %s", name, time.Since(begin).Round(time.Second))
		}
	}
}

func logf(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
}
