// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Enabled reports whether this build reads SLIPSTREAM_FAILPOINTS.
const Enabled = true

// environment is the variable with the failpoints of this process.
const environment = "SLIPSTREAM_FAILPOINTS"

// armed is parsed from the environment when the first step is reached. The map is read-only.
var armed = sync.OnceValue(func() map[string]*countdown {
	points, err := parse(os.Getenv(environment))
	if err != nil {
		panic(err)
	}
	return points
})

// countdown counts the remaining times that a step can be reached before the process is killed.
type countdown struct {
	left atomic.Int64
}

// Reach marks the named step and kills the process if the environment requires it. It panics if SLIPSTREAM_FAILPOINTS
// is malformed, since a test with a misspelt failpoint would prove nothing.
func Reach(name string) {
	point, ok := armed()[name]
	if !ok || point.left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: killing the process\n", name)
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		panic(fmt.Errorf("killing the process at failpoint %s: %w", name, err))
	}
	select {} // the signal is on its way; the step after this one must not run
}

// parse parses "name=kill[@n],...".
func parse(text string) (map[string]*countdown, error) {
	points := map[string]*countdown{}
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		name, action, found := strings.Cut(entry, "=")
		if !found || name == "" {
			return nil, fmt.Errorf("%s: %q is not of the form name=kill[@n]", environment, entry)
		}
		times, err := parseAction(action)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", environment, entry, err)
		}
		point := &countdown{}
		point.left.Store(times)
		points[name] = point
	}
	return points, nil
}

// parseAction parses "kill" or "kill@n" and returns n, which defaults to 1.
func parseAction(action string) (int64, error) {
	verb, count, counted := strings.Cut(action, "@")
	if verb != "kill" {
		return 0, fmt.Errorf("unknown action %q: only kill is known", verb)
	}
	if !counted {
		return 1, nil
	}
	times, err := strconv.ParseInt(count, 10, 64)
	if err != nil || times < 1 {
		return 0, fmt.Errorf("%q is not a count of 1 or more", count)
	}
	return times, nil
}
