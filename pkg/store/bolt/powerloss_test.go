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
	"github.com/configbutler/slipstream/test/testkit"
)

// faults is the duration of each fault injection loop in this package.
var faults = flag.Duration("faults", 0, "duration of each fault injection loop; 0 runs a few iterations")

// byFaults returns short, or long if -faults is set.
func byFaults(short, long int) int {
	if *faults > 0 {
		return long
	}
	return short
}

// repeatFor calls a function a number of times, or until -faults has passed.
func repeatFor(t *testing.T, times int, do func(random *rand.Rand)) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	start := time.Now()
	round := 0
	for ; round < times || time.Since(start) < *faults; round++ {
		do(random)
	}
	t.Logf("%d rounds", round)
}

// TestPowerLoss simulates power losses during concurrent writes and compaction. Each sector has either the content that
// was last synced or one that was written later.
func TestPowerLoss(t *testing.T) {
	t.Parallel() // It mostly waits for the disk.
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

// checkOutcome opens a restored file and checks it, also after it was written to and closed.
func checkOutcome(t *testing.T, path string, p *acknowledgedWrites) {
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

// writeAndCapture runs concurrent writers on a store, which may not have been closed, and captures its disk at random
// times. It returns each capture with the writes acknowledged before it.
func writeAndCapture(t *testing.T, random *rand.Rand, path string, writers int) (acknowledged []*acknowledgedWrites, captures []capture) {
	t.Helper()
	e := openManual(t, path, bolt.Options{}.WithoutSync())
	file := recordFile(t, e)
	p := newAcknowledgedWrites()
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
		testkit.EventuallyTrue(t, "writes continue", func() bool { return e.Revision() > from+more })
		acknowledged = append(acknowledged, p.clone())
		captures = append(captures, file.capture())
	}
	stop()
	group.Wait()
	closeEngine(t, e)
	return acknowledged, captures
}

// resume treats the content of the store as acknowledged.
func (p *acknowledgedWrites) resume(t *testing.T, e *bolt.Engine, writers int) {
	t.Helper()
	stored := contents(t, e)
	for w := range writers {
		p.done[w] = 0
		if counted := stored[counterKey(w)]; counted != "" {
			done, err := strconv.Atoi(counted)
			if err != nil {
				t.Fatal(err)
			}
			p.done[w] = done
		}
	}
}

// compact compacts the store. It ignores revisions that are compacted already.
func compact(ctx context.Context, e *bolt.Engine, revision int64) error {
	_, err := e.Compact(ctx, &pb.CompactionRequest{Revision: max(1, revision)})
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil
	}
	return err
}

// TestCrashAtEveryStep simulates a crash of the process and a power loss before each write to the file.
func TestCrashAtEveryStep(t *testing.T) {
	t.Parallel() // It mostly waits for the disk.
	repeatFor(t, 1, func(random *rand.Rand) {
		path := leasedStore(t)
		for range 3 {
			path = crashAtEveryStep(t, random, path)
		}
	})
}

// crashAtEveryStep writes to an engine with a capture before each write to its file. It returns a store that was not closed.
func crashAtEveryStep(t *testing.T, random *rand.Rand, path string) string {
	t.Helper()
	e, p := openManual(t, path, bolt.Options{}.WithoutSync()), newAcknowledgedWrites()
	p.resume(t, e, 1)
	p.revision = e.Revision()
	var acknowledged []*acknowledgedWrites
	var captures []capture
	file := recordFile(t, e)
	file.step = func() {
		acknowledged = append(acknowledged, p.clone())
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
			checkOutcome(t, c.restore(t, left), acknowledged[i])
		}
	}
	return captures[len(captures)-1].restore(t, powerLoss(random))
}
