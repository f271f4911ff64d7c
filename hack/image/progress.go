// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"
)

// interval is how often a step that goes on says so.
const interval = 5 * time.Second

// step runs do, and tells a person that it begins, goes on and ends.
func step(name string, do func() error) error {
	begin, done := time.Now(), make(chan error, 1)
	say("%s ...", name)
	go func() { done <- do() }()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			if err == nil {
				say("%s: done after %s", name, time.Since(begin).Round(100*time.Millisecond))
			}
			return err
		case <-ticker.C:
			say("%s: still at it after %s", name, time.Since(begin).Round(time.Second))
		}
	}
}

func say(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
}
