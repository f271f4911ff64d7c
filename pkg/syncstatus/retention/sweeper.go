// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/controller"
)

// DefaultPeriod is the default time between sweeps. It is short compared to the days that records are kept, and long compared to the time
// that a scan of 100 000 records takes.
const DefaultPeriod = time.Hour

// Config configures a Controller.
type Config struct {
	// Folder is the folder of an archive of files. It is created if it does not exist. Its parent is not. Empty: this server cannot archive
	// to files.
	Folder string
	// Git writes an archive in a GitDestination.
	Git Git
	// Period is the time from one sweep to the next.
	Period time.Duration
}

// Sweeper deletes expired records.
type Sweeper struct {
	config Config
	// process has the client, the clock, and the store with the last batch of an archive in Git.
	process *controller.Process
}

// New returns a Sweeper. Only one may run on the same API at a time.
func New(config Config, process *controller.Process) *Sweeper { return &Sweeper{config, process} }

// run sweeps immediately, every period, and when the SyncPolicy has changed, until ctx is done. A failed sweep is retried by the next
// one, which starts sooner if records could not be archived, because a remote may be reachable again in a minute.
func (s *Sweeper) run(ctx context.Context, changed <-chan struct{}) error {
	defer recordsGauge.Set(0) // The next leader sets it.
	ticker := s.process.Clock.NewTicker(s.config.Period)
	defer ticker.Stop()
	backoff := newBackoff()
	for ctx.Err() == nil {
		var again <-chan time.Time
		archive := &archiveError{}
		switch err := s.Sweep(ctx); {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			backoff = newBackoff()
		case errors.As(err, &archive):
			again = s.process.Clock.NewTimer(backoff.Step()).C()
			fallthrough
		default:
			klog.FromContext(ctx).Error(err, "Failed to sweep expired records")
		}
		select {
		case <-ctx.Done():
		case <-ticker.C():
		case <-again:
		case <-changed:
		}
	}
	return nil
}

const (
	// An unavailable archive is retried after retryMin, doubling up to retryMax, with a jitter of a tenth.
	retryMin = 30 * time.Second
	retryMax = 10 * time.Minute
)

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: retryMin, Factor: 2, Jitter: 0.1, Steps: 30, Cap: retryMax}
}

// errChanged ends a sweep whose retention has changed.
var errChanged = errors.New("the retention was changed")

// Sweep archives and deletes all expired records, and writes the result to the status of the SyncPolicy. It starts again if the retention
// has changed meanwhile. After an error the records that were not deleted remain in the API.
func (s *Sweeper) Sweep(ctx context.Context) error {
	for {
		switch err := s.sweepOnce(ctx); {
		case err == nil:
			sweeps.WithLabelValues(success).Inc()
			return nil
		case !errors.Is(err, errChanged):
			sweeps.WithLabelValues(failure).Inc()
			return err
		}
	}
}

// sweepOnce sweeps with the current retention. It returns errChanged if the retention changes meanwhile.
func (s *Sweeper) sweepOnce(ctx context.Context) error {
	retention, err := s.retention(ctx)
	if err != nil {
		return err
	}
	started := s.process.Clock.Now()
	found, err := s.scan(ctx, retention, started)
	if err != nil {
		return err
	}
	removed, err := s.remove(ctx, found.expired, retention)
	if err == nil {
		removed.finished = started
	}
	left := found.records - removed.expired
	recordsGauge.Set(float64(left))
	return errors.Join(err, s.report(ctx, retention, left, removed, err))
}
