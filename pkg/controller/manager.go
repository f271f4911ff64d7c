// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller is the runtime of the controllers: when they run, and what they share while they do.
//
// The Manager runs them while this process holds the leader Lease. It releases the Lease once they have stopped, and stops them while
// another process cannot take the Lease yet, so that two processes do not act at once. Every replica serves the API; only the leader
// runs the controllers. A Group runs the controllers that work on one Shared: the clients, informers and caches of one leader term. A
// Queue calls a reconcile function for each key.
package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

// Times are the times of the leader Lease. A killed leader is replaced when its Lease has not changed for the duration. A leader that cannot
// renew the Lease stops at the deadline after its last renewal, which leaves it the rest of the duration to drain before another process
// can take over. Two retry periods must fit into the deadline, so that one failed renewal does not end the term.
type Times struct {
	Duration      time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
}

// OneOfSeveral are the default times if other replicas can take over, and Single those if none can. A single replica has no successor
// that waits for its Lease, so it renews the Lease less often and tolerates a longer outage of the API server.
var (
	OneOfSeveral = Times{Duration: 8 * time.Second, RenewDeadline: 5 * time.Second, RetryPeriod: 1500 * time.Millisecond}
	Single       = Times{Duration: 24 * time.Second, RenewDeadline: 16 * time.Second, RetryPeriod: 6 * time.Second}
)

// Pauses between a term that failed and the next one.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Runner is what a Manager runs. Run works until ctx is done, stops everything that it started, and returns. If it returns
// earlier, with or without an error, the Manager stops all runners and starts them again after a pause. Clients that log with ctx do
// not log what they read.
type Runner interface {
	// Name identifies the runner in logs.
	Name() string
	Run(ctx context.Context) error
}

// Lease describes the leader Lease.
type Lease struct {
	// NewLock returns a new lock on the Lease object with the identity of this process. Each election needs its own, because a lock
	// caches what it has read. If NewLock is nil, this process always leads.
	NewLock func() resourcelock.Interface
	// Watch watches the Lease object. It may be nil, and it may fail: then the Lease is read every two seconds.
	Watch func(ctx context.Context) (watch.Interface, error)
	// Times are those of leaderelection.LeaderElectionConfig, except that RenewDeadline counts from the last renewal. Runners must
	// drain within the difference of Duration and RenewDeadline.
	Times
}

// Manager runs the runners while this process leads.
type Manager struct {
	lease   Lease
	runners []Runner
}

// NewManager returns a Manager of runners. It returns an error if the times of the lease contradict each other.
func NewManager(lease Lease, runners ...Runner) (*Manager, error) {
	m := &Manager{lease: lease, runners: runners}
	if lease.NewLock == nil {
		return m, nil
	}
	if _, err := leaderelection.NewLeaderElector(m.election(&electionLock{Interface: lease.NewLock()}, nil)); err != nil {
		return nil, fmt.Errorf("configuring the leader election: %w", err)
	}
	return m, nil
}

// Run runs the runners whenever this process leads, until ctx is done. When it returns, all runners have stopped and the Lease is
// released.
func (m *Manager) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	pause := newPause()
	for ctx.Err() == nil {
		started := time.Now()
		err := m.term(ctx)
		if ctx.Err() != nil {
			return
		}
		delay := pollInterval
		if !errors.Is(err, errNotElected) {
			if time.Since(started) > lastPause {
				pause = newPause()
			}
			delay = pause.Step()
			logger.Error(err, "The controllers stopped, trying again", "delay", delay)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// newPause returns pauses that grow from firstPause to lastPause. They start over after a term that lasted longer than lastPause.
func newPause() wait.Backoff {
	return wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.1, Steps: 10, Cap: lastPause}
}

var (
	// errLeaseLost ends a term in which no runner failed.
	errLeaseLost = errors.New("the leader lease was lost")
	// errNotElected ends an election in which another process was faster.
	errNotElected = errors.New("another process leads")
)

// term waits until the Lease is free, acquires it, runs the runners, and releases the Lease once they have stopped.
func (m *Manager) term(ctx context.Context) error {
	if m.lease.NewLock == nil {
		return m.lead(ctx, ctx)
	}
	expired, err := awaitVacancy(ctx, m.lease)
	if err != nil {
		return err
	}
	// The election outlives ctx: cancelling it releases the Lease, which must wait for the runners.
	election, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	leading, lose := context.WithCancel(election)
	defer lose()
	lock := newElectionLock(m.lease, expired, lose)
	defer lock.expiry.Stop()
	elected := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(m.election(lock, elected))
	if err != nil {
		return fmt.Errorf("configuring the leader election: %w", err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer lose()
		elector.Run(election)
	}()
	select {
	case <-ctx.Done():
	case <-leading.Done():
		err = errNotElected
	case <-elected:
		err = m.lead(ctx, leading)
	}
	lock.drained.Store(true)
	release()
	<-over
	return err
}

// electionLock is the lock of one election. The elector alone would let two processes act at once: it gives up a renew deadline after
// its first failed renewal instead of after its last successful one, and then releases the Lease before it ends the context of the leader.
type electionLock struct {
	resourcelock.Interface
	// expired is the Lease when its leader was found to have let it expire. While that is its content, the lock presents it as free. The
	// API server checks that no other process has written it when it is acquired.
	expired []byte
	// lose ends the election or the term.
	lose func()
	// deadline is the time after a renewal at which expiry ends the term.
	deadline time.Duration
	expiry   *time.Timer
	// acquired is set once this process has written the Lease.
	acquired atomic.Bool
	// drained is set once no runner runs. Before, the Lease is not released.
	drained atomic.Bool
}

// newElectionLock returns a lock that calls lose when another process has the Lease, or when the Lease has been acquired but not been
// renewed until the deadline.
func newElectionLock(lease Lease, expired []byte, lose func()) *electionLock {
	expiry := time.AfterFunc(lease.RenewDeadline, lose)
	expiry.Stop() // until the Lease is acquired
	return &electionLock{Interface: lease.NewLock(), expired: expired, lose: lose, deadline: lease.RenewDeadline, expiry: expiry}
}

// Get implements resourcelock.Interface.
func (l *electionLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	switch {
	case err != nil:
	case bytes.Equal(raw, l.expired):
		record.HolderIdentity = ""
	case record.HolderIdentity != "" && record.HolderIdentity != l.Identity():
		l.lose()
	}
	return record, raw, err //nolint:wrapcheck // the elector distinguishes kinds of errors
}

// Create implements resourcelock.Interface.
func (l *electionLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *electionLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != "" {
		return l.renew(func() error { return l.Interface.Update(ctx, record) })
	}
	if !l.drained.Load() {
		return errDraining
	}
	return l.Interface.Update(ctx, record) //nolint:wrapcheck // the elector distinguishes kinds of errors
}

// errDraining is the error of a release while runners run.
var errDraining = errors.New("the controllers have not stopped yet")

// renew calls write, which writes the Lease for this process, and postpones the end of the term if it succeeds. Other processes count the
// duration of the Lease from a later time than the start of the request. If another process has written the Lease first, the election ends.
func (l *electionLock) renew(write func() error) error {
	sent := time.Now()
	if err := write(); err != nil {
		if !l.acquired.Load() && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
			l.lose()
		}
		return err
	}
	l.acquired.Store(true)
	l.expiry.Reset(time.Until(sent.Add(l.deadline)))
	return nil
}

// election configures an election with a lock. When it is won, elected is closed.
func (m *Manager) election(lock resourcelock.Interface, elected chan<- struct{}) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: m.lease.Duration,
		RenewDeadline: m.lease.RenewDeadline,
		RetryPeriod:   m.lease.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(elected) },
			OnStoppedLeading: func() {},
		},
		ReleaseOnCancel: true,
		Name:            "slipstream",
	}
}

// lead runs all runners until ctx or leading is done, or one of them returns. It returns when all have returned.
func (m *Manager) lead(ctx, leading context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()

	logger := klog.FromContext(ctx)
	logger.Info("Leading: starting the controllers", "controllers", len(m.runners))
	defer logger.Info("Leading no longer: the controllers have stopped")
	group, running := errgroup.WithContext(ctx)
	for _, runner := range m.runners {
		group.Go(func() error { return run(running, runner) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	<-ctx.Done() // a Manager without runners leads, too
	return errLeaseLost
}

// run turns an early return of a runner into an error, which stops the others.
func run(ctx context.Context, runner Runner) error {
	named := ctx
	if _, isGroup := runner.(*Group); !isGroup { // A Group names the logger of each of its controllers.
		named = withName(ctx, runner.Name())
	}
	return ended(ctx, runner.Name(), runner.Run(logredact.WithoutBodies(named)))
}

// withName names the logger of a runner or controller.
func withName(ctx context.Context, name string) context.Context {
	return klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), name))
}

// ended returns the error with which a runner or controller ends the term: none after ctx is done.
func ended(ctx context.Context, name string, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // an error during shutdown does not end the term
	case err != nil:
		return fmt.Errorf("controller %s: %w", name, err)
	}
	return fmt.Errorf("controller %s: stopped while this process leads", name)
}
