// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller decides when the controllers run: all of them, or none.
//
// They run while this process holds the leader Lease, and they are drained before the Lease is given back, so that two
// processes never act at once. Every replica serves the API; only the leader runs the loop.
package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

// Times of the leader Lease. A killed leader is replaced after at most the duration and twice lookInterval; a leader that
// cannot renew stops at the deadline, which leaves it the rest of the duration to drain before another may take over.
const (
	DefaultLeaseDuration = 24 * time.Second
	DefaultRenewDeadline = 16 * time.Second
	DefaultRetryPeriod   = 8 * time.Second
)

// lookInterval is how often a process that does not lead looks whether the Lease is free. An elector looks once in one to
// two retry periods, and counts the duration from when it has looked: a stop would cost the controllers up to 18 seconds
// instead of 3, and a kill up to 59 instead of 35.
const lookInterval = 2 * time.Second

// Pauses between a term that failed and the next one.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Runner is one controller. Run works until ctx is done, stops everything that it started, and returns. Returning
// earlier, with or without an error, ends the term of all runners, and the loop starts them again after a pause. What clients log with
// ctx has nothing in it of what they read.
type Runner interface {
	// Name says in logs which controller this is.
	Name() string
	Run(ctx context.Context) error
}

// Lease says when this process leads.
type Lease struct {
	// NewLock returns the Lease object with the identity of this process, anew with each call: a lock remembers what it
	// has read and has one user. Nil means that this process always leads.
	NewLock func() resourcelock.Interface
	// Duration, RenewDeadline and RetryPeriod are those of leaderelection.LeaderElectionConfig.
	Duration      time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
}

// Loop runs the controllers while this process leads.
type Loop struct {
	lease   Lease
	runners []Runner
}

// New returns a loop over runners. The error says which time of the lease does not fit the others.
func New(lease Lease, runners ...Runner) (*Loop, error) {
	l := &Loop{lease: lease, runners: runners}
	if lease.NewLock == nil {
		return l, nil
	}
	if _, err := leaderelection.NewLeaderElector(l.election(nil, nil)); err != nil {
		return nil, fmt.Errorf("configuring the leader election: %w", err)
	}
	return l, nil
}

// Run leads whenever it can, until ctx is done. When it returns, all runners have stopped and the Lease is free.
func (l *Loop) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	pause := newPause()
	var free vacancyError
	for ctx.Err() == nil {
		started := time.Now()
		err := l.term(ctx, free.record)
		if ctx.Err() != nil {
			return
		}
		if errors.As(err, &free) {
			continue
		}
		free = vacancyError{}
		if time.Since(started) > lastPause {
			pause = newPause()
		}
		delay := pause.Step()
		logger.Error(err, "The controllers stopped, trying again", "delay", delay)
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// newPause grows from firstPause to lastPause; a term that lasted starts it anew.
func newPause() wait.Backoff {
	return wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.1, Steps: 10, Cap: lastPause}
}

// errLeaseLost ends a term without a fault of the runners.
var errLeaseLost = errors.New("the leader lease was lost")

// vacancyError ends a wait for leadership: an election begun now is won at once, unless somebody else is quicker.
type vacancyError struct {
	// record is the Lease as the leader left it.
	record []byte
}

func (vacancyError) Error() string { return "the leader lease is free" }

// term waits for leadership, runs the controllers, and gives the Lease back once they have stopped. A Lease that reads
// as vacant counts as free.
func (l *Loop) term(ctx context.Context, vacant []byte) error {
	if l.lease.NewLock == nil {
		return l.lead(ctx, ctx)
	}
	// The election outlives ctx: cancelling it releases the Lease, which must wait for the runners.
	election, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	elected := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(l.election(elected, vacant))
	if err != nil {
		return fmt.Errorf("configuring the leader election: %w", err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		elector.Run(election)
	}()
	waiting, stopWaiting := context.WithCancel(election)
	defer stopWaiting()
	err = errLeaseLost
	select {
	case <-ctx.Done():
	case <-over:
	case record := <-l.vacated(waiting):
		err = vacancyError{record: record}
	case leading := <-elected:
		stopWaiting()
		err = l.lead(ctx, leading)
	}
	release()
	<-over
	return err
}

// vacated gives the Lease of another process once that has given it back or let it run out, or never. ctx ends the
// looking.
func (l *Loop) vacated(ctx context.Context) <-chan []byte {
	vacant := make(chan []byte, 1)
	lock := l.lease.NewLock()
	var led bool
	var seen []byte
	var changed time.Time
	look := func(ctx context.Context) (bool, error) {
		record, raw, err := lock.Get(ctx)
		if err != nil || record.HolderIdentity == lock.Identity() {
			return false, nil //nolint:nilerr // The elector meets the same trouble and reports it.
		}
		if !bytes.Equal(raw, seen) {
			seen, changed = raw, time.Now()
		}
		led = led || record.HolderIdentity != ""
		// The clocks of two machines are not compared.
		ranOut := time.Since(changed) >= time.Duration(record.LeaseDurationSeconds)*time.Second
		return led && (record.HolderIdentity == "" || ranOut), nil
	}
	go func() {
		if wait.PollUntilContextCancel(ctx, lookInterval, true, look) == nil {
			vacant <- seen
		}
	}()
	return vacant
}

// vacantLock is a Lease that is free for as long as it reads as it did when its leader was found gone. That nobody has
// written it meanwhile is checked by the API server when it is taken.
type vacantLock struct {
	resourcelock.Interface
	record []byte
}

func (l vacantLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && bytes.Equal(raw, l.record) {
		record.HolderIdentity = ""
	}
	return record, raw, err //nolint:wrapcheck // The elector tells what kind of error it is.
}

// election hands the context of a won election to elected; that context ends with the leadership.
func (l *Loop) election(elected chan<- context.Context, vacant []byte) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:          vacantLock{Interface: l.lease.NewLock(), record: vacant},
		LeaseDuration: l.lease.Duration,
		RenewDeadline: l.lease.RenewDeadline,
		RetryPeriod:   l.lease.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { elected <- leading },
			OnStoppedLeading: func() {},
		},
		ReleaseOnCancel: true,
		Name:            "slipstream",
	}
}

// lead runs all runners until ctx or leading is done, or one of them returns; it returns when all have.
func (l *Loop) lead(ctx, leading context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()

	logger := klog.FromContext(ctx)
	logger.Info("Leading: starting the controllers", "controllers", len(l.runners))
	defer logger.Info("Leading no longer: the controllers have stopped")
	group, running := errgroup.WithContext(ctx)
	for _, runner := range l.runners {
		group.Go(func() error { return run(running, runner) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	<-ctx.Done() // a loop without runners leads all the same
	return errLeaseLost
}

// run makes an early return of a runner an error, so that the group ends with it.
func run(ctx context.Context, runner Runner) error {
	logger := klog.LoggerWithName(klog.FromContext(ctx), runner.Name())
	err := runner.Run(logredact.WithoutBodies(klog.NewContext(ctx, logger)))
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // A runner that is told to stop has no say in why the term ends.
	case err != nil:
		return fmt.Errorf("controller %s: %w", runner.Name(), err)
	}
	return fmt.Errorf("controller %s: stopped although it leads", runner.Name())
}
