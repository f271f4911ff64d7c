// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/bench/bare"
	"github.com/configbutler/slipstream/test/bench/configmaps"
)

const (
	// warmUpChanges is the number of changes after a start, before anything is measured, and warmUpInterval the interval between them: the
	// server measures how late audit events are from those that come one by one.
	warmUpChanges  = 20
	warmUpInterval = 250 * time.Millisecond
	// burstChanges is the number of changes of a burst, each of another object.
	burstChanges = 60
)

// changed is an object as it was last written, and the user who wrote it.
type changed struct {
	*corev1.ConfigMap
	by string
}

// burst has several users, and then one, change objects as fast as they can, and measures how long after the last response the branch has all
// changes, how many it does not have by arrivalLimit, and the share of all whose commit has the right author.
func (s *testCluster) burst(b *testing.B) {
	several, one := make([]float64, len(s.sides)), make([]float64, len(s.sides))
	for number, each := range s.sides {
		s.alone(b, each)
		before := each.Tip()
		written, missing, settled := s.burstOf(b, each, configmaps.Writers)
		several[number] = settled
		b.ReportMetric(100*float64(each.rightAuthors(b, before, written))/float64(len(written)), each.name()+"-right-%")
		_, more, settled := s.burstOf(b, each, 1)
		one[number] = settled
		b.ReportMetric(float64(missing+more), each.name()+"-missing")
	}
	s.report(b, "settled-s", func(number int) float64 { return several[number] })
	s.report(b, "one-user-settled-s", func(number int) float64 { return one[number] })
}

// burstOf makes the changes of a number of users and waits for them. It returns the changes, how many are missing, and the seconds from the
// last response until the last change that arrived.
func (s *testCluster) burstOf(b *testing.B, running *side, users int) (written []changed, missing int, settled float64) {
	b.Helper()
	written = s.write(b, users, burstChanges, 0)
	ended := time.Now()
	missing, at, err := running.await(b.Context(), written, arrivalLimit)
	if err != nil {
		b.Fatal(err)
	}
	if missing > 0 {
		at = ended.Add(arrivalLimit)
	}
	return written, missing, max(at.Sub(ended).Seconds(), 0)
}

// warmUp makes changes and waits until all running tools have mirrored them, which shows that they watch, and know the authors.
func (s *testCluster) warmUp(b *testing.B, running ...*side) {
	b.Helper()
	written := s.write(b, len(s.writers), warmUpChanges, warmUpInterval)
	for _, each := range running {
		missing, _, err := each.await(b.Context(), written, arrivalLimit)
		if err != nil {
			b.Fatal(err)
		}
		if missing > 0 {
			b.Logf("%s has not mirrored %d of %d changes after its start", each.name(), missing, len(written))
		}
	}
}

// write has as many clients as there are writers change objects, each its own, in an interval if it is not zero, and returns the changes. The
// clients are those of the first users.
func (s *testCluster) write(b *testing.B, users, changes int, interval time.Duration) (written []changed) {
	b.Helper()
	var mutex sync.Mutex
	began := time.Now()
	group, ctx := errgroup.WithContext(b.Context())
	for client := range configmaps.Writers {
		writer := client % users
		group.Go(func() error {
			for number := client; number < changes; number += configmaps.Writers {
				select {
				case <-time.After(time.Until(began.Add(time.Duration(number) * interval))):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				object, err := s.UpdateAs(ctx, s.writers[writer], number)
				if err != nil {
					return err
				}
				mutex.Lock()
				written = append(written, changed{object, writerName(writer)})
				mutex.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return written
}

// await waits until the branch has all changes, up to a limit, and returns how many it does not have and the time at which it got the last
// one that it has.
func (s *side) await(ctx context.Context, written []changed, limit time.Duration) (count int, at time.Time, err error) {
	rest, tip := written, ""
	at = time.Now()
	err = wait.PollUntilContextTimeout(ctx, arrivalInterval, limit, true, func(context.Context) (bool, error) {
		next, read := s.Tip(), time.Now()
		if next == tip {
			return false, nil
		}
		tip = next
		var still []changed
		for _, each := range rest {
			held, err := s.holds(tip, each.ConfigMap)
			if err != nil {
				return false, err
			}
			if !held {
				still = append(still, each)
			}
		}
		if len(still) < len(rest) {
			at = read
		}
		rest = still
		return len(rest) == 0, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = nil
	}
	return len(rest), at, err
}

// rightAuthors counts the changes whose file was last committed by the user who made them, since a commit.
func (s *side) rightAuthors(b *testing.B, since string, written []changed) (count int) {
	b.Helper()
	const mark = "author "
	authors, author := map[string]string{}, ""
	for line := range strings.Lines(s.Git(b, "log", "--format="+mark+"%an", "--name-only", since+".."+bare.Branch)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, mark); ok {
			author = name
		} else if _, known := authors[line]; !known && line != "" {
			authors[line] = author
		}
	}
	for _, each := range written {
		if authors[baseFolder+"/"+s.path(each.ConfigMap)] == each.by {
			count++
		}
	}
	return count
}
