// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// DefaultPeriod is short beside the days that records are kept, and long beside the time that a look through 100 000 of
// them takes.
const DefaultPeriod = time.Hour

// Config is what a sweeper works with.
type Config struct {
	Client versioned.Interface
	// Folder is the archive for a SyncPolicy that wants files. It is made when it is missing; the folder around it is not.
	// Empty: this server has no place for files.
	Folder string
	// Git writes records for a SyncPolicy that wants them in a GitDestination, and Table keeps what it is asked to write.
	Git   Git
	Table *table.Table
	// Period is the time from one sweep to the next.
	Period time.Duration
	Clock  clock.WithTicker
}

// Sweeper removes records whose time is over.
type Sweeper struct{ Config }

// New returns a sweeper. One at a time may run on the same API.
func New(config Config) *Sweeper { return &Sweeper{config} }

var _ controller.Controller = &Sweeper{}

// Name is "retention".
func (*Sweeper) Name() string { return "retention" }

// run sweeps at once, every period and when the SyncPolicy has changed, until ctx is done. What failed is tried again with the next
// sweep, which starts sooner if records could not be archived: a remote may be reachable again in a minute.
func (s *Sweeper) run(ctx context.Context, changed <-chan struct{}) error {
	defer recordsGauge.Set(0) // the next leader sets it
	ticker := s.Clock.NewTicker(s.Period)
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
			again = s.Clock.NewTimer(backoff.Step()).C()
			fallthrough
		default:
			klog.FromContext(ctx).Error(err, "Records whose time is over stay for now")
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
	// An archive that cannot be written is tried again after retryMin, doubling up to retryMax, with a tenth of jitter.
	retryMin = 30 * time.Second
	retryMax = 10 * time.Minute
)

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: retryMin, Factor: 2, Jitter: 0.1, Steps: 30, Cap: retryMax}
}

// errChanged ends a sweep whose retention holds no more.
var errChanged = errors.New("the retention was changed")

// Sweep looks through all records, removes those whose time is over, and tells the SyncPolicy how many. It begins anew when
// the retention is changed meanwhile. An error leaves the records that have not been removed where they are.
func (s *Sweeper) Sweep(ctx context.Context) error {
	for {
		switch err := s.once(ctx); {
		case err == nil:
			sweeps.WithLabelValues(success).Inc()
			return nil
		case !errors.Is(err, errChanged):
			sweeps.WithLabelValues(failure).Inc()
			return err
		}
	}
}

// once sweeps by the retention as it is at the beginning.
func (s *Sweeper) once(ctx context.Context) error {
	retention, err := s.settings(ctx)
	if err != nil {
		return err
	}
	started := s.Clock.Now()
	found, err := s.look(ctx, retention, started)
	if err != nil {
		return err
	}
	went, err := s.remove(ctx, found.expired, retention)
	if err == nil {
		went.finished = started
	}
	left := found.records - went.expired
	recordsGauge.Set(float64(left))
	return errors.Join(err, s.report(ctx, retention, left, went, err))
}
