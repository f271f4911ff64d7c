// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package installcheck checks whether an installation works. It sends requests to kube-apiserver as users do, and
// reports the next step for each failed check.
package installcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

const (
	// checkTimeout limits one check.
	checkTimeout = 10 * time.Second
	// retryInterval is the time between attempts of a failed check.
	retryInterval = time.Second
	// progressInterval is the time between messages about a check that is retried.
	progressInterval = 5 * time.Second
)

// ErrFailed is returned if a check failed.
var ErrFailed = errors.New("the check of the installation failed")

// Checker checks one installation.
type Checker struct {
	Discovery discovery.DiscoveryInterfaceWithContext
	Dynamic   dynamic.Interface
	// Namespace is the server's namespace, Lease the name of its leader election Lease.
	Namespace, Lease string
	// Limit bounds all checks together. A check that has not succeeded by then has failed.
	Limit time.Duration
	Clock clock.Clock
	// Out receives a line for each result, and progress messages.
	Out io.Writer
}

// check is one check of the installation.
type check struct {
	about string
	// ask returns the result in words, or a failure.
	ask func(ctx context.Context) (string, error)
}

// failure is the error of a failed check.
type failure struct {
	error
	// next is the next step for the user.
	next string
}

// Unwrap returns the cause.
func (f failure) Unwrap() error { return f.error }

// Run runs all checks, even after a failure, and returns ErrFailed if one failed. It retries until the limit, since a
// new installation needs some time.
func (c *Checker) Run(ctx context.Context) error {
	deadline := c.Clock.Now().Add(c.Limit)
	failed := false
	for _, check := range c.checks() {
		answer, err := c.await(ctx, check, deadline)
		if ctx.Err() != nil {
			return fmt.Errorf("checking the installation: %w", ctx.Err())
		}
		if err == nil {
			c.sayf("ok       %s: %s", check.about, answer)
			continue
		}
		failed = true
		c.sayf("FAILED   %s: %v", check.about, err)
		var known failure
		if errors.As(err, &known) {
			c.sayf("         next: %s", known.next)
		}
	}
	if failed {
		return ErrFailed
	}
	return nil
}

// checks returns the checks in order. Each relies on the ones before it.
func (c *Checker) checks() []check {
	return []check{
		{"kube-apiserver", c.checkAPIServer},
		{"APIService", c.checkAPIService},
		{"certificate", c.checkCertificate},
		{"discovery", c.checkDiscovery},
		{"objects", c.checkObjects},
		{"controllers", c.checkControllers},
		{"attribution", c.checkAttribution},
	}
}

// await retries a check until it succeeds or the deadline has passed, at least once.
func (c *Checker) await(ctx context.Context, q check, deadline time.Time) (string, error) {
	said := c.Clock.Now()
	for {
		limited, cancel := context.WithTimeout(ctx, checkTimeout)
		answer, err := q.ask(limited)
		cancel()
		now := c.Clock.Now()
		if err == nil || ctx.Err() != nil || !now.Before(deadline) {
			return answer, err
		}
		if now.Sub(said) >= progressInterval {
			said = now
			c.sayf("waiting  %s: %v", q.about, err)
		}
		select {
		case <-ctx.Done():
		case <-c.Clock.After(retryInterval):
		}
	}
}

func (c *Checker) sayf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(c.Out, format+"\n", arguments...) // The end of the command says the same.
}
