// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// faults is how long each loop of this package that looks for losses runs.
var faults = flag.Duration("faults", 0, "how long each loop of faults runs; 0 is a short run of each")

// byFaults returns a number of a short run, or that of a run with -faults.
func byFaults(short, long int) int {
	if *faults > 0 {
		return long
	}
	return short
}

// repeatFor calls a function a few times, or for as long as -faults says.
func repeatFor(t *testing.T, times int, do func(random *rand.Rand)) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	begun := time.Now()
	round := 0
	for ; round < times || time.Since(begun) < *faults; round++ {
		do(random)
	}
	t.Logf("%d rounds", round)
}

// TestPowerLoss takes the power away while many write and history is compacted: of each
// sector either what was synced last is left, or what was written since.
func TestPowerLoss(t *testing.T) {
	repeatFor(t, 2, func(random *rand.Rand) {
		path := leasedStore(t)
		for range 2 {
			p, captures := writeAndCapture(t, random, path, 8)
			for i, c := range captures {
				for range 4 {
					checkOutcome(t, c.restore(t, powerLoss(random)), p[i])
				}
				checkOutcome(t, c.restore(t, killed), p[i])
			}
			path = captures[len(captures)-1].restore(t, powerLoss(random))
		}
	})
}

// checkOutcome opens what is left and looks at it, also after it was closed and written to.
func checkOutcome(t *testing.T, path string, p *promises) {
	t.Helper()
	e := openManual(t, path, bolt.Options{}.WithoutSync())
	p.check(t, e)
	set(t, e, "/after", "x")
	p.check(t, e)
	closeEngine(t, e)
	e = openManual(t, path, bolt.Options{}.WithoutSync())
	p.check(t, e)
	closeEngine(t, e)
}

// writeAndCapture lets many write to a store, which may be one that was not closed, and captures its disk at random
// moments, each with what was promised before it.
func writeAndCapture(t *testing.T, random *rand.Rand, path string, writers int) (made []*promises, captures []capture) {
	t.Helper()
	e := openManual(t, path, bolt.Options{}.WithoutSync())
	file := recordFile(t, e)
	p := newPromises()
	p.resume(t, e, writers)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var group sync.WaitGroup
	client := bolt.NewClient(ctx, e).Client
	for w := range writers {
		group.Go(func() {
			for p.write(ctx, client, w) == nil {
				if revision := e.Revision(); revision%32 == 0 && compact(ctx, e, revision-200) != nil {
					return
				}
			}
		})
	}
	for range 5 {
		from := e.Revision()
		more := 5 + random.Int64N(250)
		eventually(t, "writes are made", func() bool { return e.Revision() > from+more })
		made = append(made, p.clone())
		captures = append(captures, file.capture())
	}
	stop()
	group.Wait()
	closeEngine(t, e)
	return made, captures
}

// resume takes what a store holds for promised.
func (p *promises) resume(t *testing.T, e *bolt.Engine, writers int) {
	t.Helper()
	held := contents(t, e)
	for w := range writers {
		p.done[w] = 0
		if counted := held[counterKey(w)]; counted != "" {
			done, err := strconv.Atoi(counted)
			if err != nil {
				t.Fatal(err)
			}
			p.done[w] = done
		}
	}
}

// compact compacts unless that is done already.
func compact(ctx context.Context, e *bolt.Engine, revision int64) error {
	_, err := e.Compact(ctx, &pb.CompactionRequest{Revision: max(1, revision)})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil
	}
	return err
}

// TestCrashAtEveryStep kills the process, and takes the power away, before each write to
// the file.
func TestCrashAtEveryStep(t *testing.T) {
	repeatFor(t, 1, func(random *rand.Rand) {
		path := leasedStore(t)
		for range 3 {
			path = crashAtEveryStep(t, random, path)
		}
	})
}

// crashAtEveryStep goes through the life of an engine and returns a store that was not closed.
func crashAtEveryStep(t *testing.T, random *rand.Rand, path string) string {
	t.Helper()
	e, p := openManual(t, path, bolt.Options{}.WithoutSync()), newPromises()
	p.resume(t, e, 1)
	p.revision = e.Revision()
	var made []*promises
	var captures []capture
	file := recordFile(t, e)
	file.step = func() {
		made = append(made, p.clone())
		captures = append(captures, file.captureLocked())
	}
	client := bolt.NewClient(t.Context(), e).Client
	for i := range byFaults(24, 60) {
		if err := p.write(t.Context(), client, 0); err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 {
			if err := compact(t.Context(), e, e.Revision()-10); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeEngine(t, e)
	t.Logf("%d steps", len(captures))
	for i, c := range captures {
		for _, left := range []outcome{killed, powerLoss(random)} {
			checkOutcome(t, c.restore(t, left), made[i])
		}
	}
	return captures[len(captures)-1].restore(t, powerLoss(random))
}
