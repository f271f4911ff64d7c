// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package installcheck answers whether an installation does what it is there for. It asks kube-apiserver, as users do, and says
// what to do next about what it does not like.
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
	// askLimit is how long one question may take.
	askLimit = 10 * time.Second
	// askInterval is how long an answer that is not good is left alone before the question is asked again.
	askInterval = time.Second
	// sayInterval is how often something that is waited for is told of.
	sayInterval = 5 * time.Second
)

// ErrFailed says that an answer was not good.
var ErrFailed = errors.New("the installation does not do what it should")

// Checkup is about one installation.
type Checkup struct {
	Discovery discovery.DiscoveryInterfaceWithContext
	Dynamic   dynamic.Interface
	// Namespace is the server's, Lease the name of that of its leader.
	Namespace, Lease string
	// Limit is how long everything together is waited for. What is not good by then has failed.
	Limit time.Duration
	Clock clock.Clock
	// Out gets a line for each answer, and lines about what is waited for.
	Out io.Writer
}

// question is one thing that must be right.
type question struct {
	about string
	// ask returns the good answer in words, or a failure.
	ask func(ctx context.Context) (string, error)
}

// failure is an answer that is not good.
type failure struct {
	error
	// next is what somebody should do about it.
	next string
}

// Unwrap is what is wrong.
func (f failure) Unwrap() error { return f.error }

// Run asks everything, even where an answer was not good, and then returns ErrFailed. It waits for good answers until the
// limit, since a new installation needs a moment.
func (c *Checkup) Run(ctx context.Context) error {
	deadline := c.Clock.Now().Add(c.Limit)
	failed := false
	for _, question := range c.questions() {
		answer, err := c.await(ctx, question, deadline)
		if ctx.Err() != nil {
			return fmt.Errorf("checking the installation: %w", ctx.Err())
		}
		if err == nil {
			c.sayf("ok       %s: %s", question.about, answer)
			continue
		}
		failed = true
		c.sayf("FAILED   %s: %v", question.about, err)
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

// questions are in an order in which each needs what the one before it has found.
func (c *Checkup) questions() []question {
	return []question{
		{"kube-apiserver", c.askAPIServer},
		{"APIService", c.askAPIService},
		{"certificate", c.askCertificate},
		{"discovery", c.askDiscovery},
		{"objects", c.askObjects},
		{"controllers", c.askControllers},
		{"attribution", c.askAttribution},
	}
}

// await asks until the answer is good or the deadline has passed, and once at least.
func (c *Checkup) await(ctx context.Context, q question, deadline time.Time) (string, error) {
	said := c.Clock.Now()
	for {
		limited, cancel := context.WithTimeout(ctx, askLimit)
		answer, err := q.ask(limited)
		cancel()
		now := c.Clock.Now()
		if err == nil || ctx.Err() != nil || !now.Before(deadline) {
			return answer, err
		}
		if now.Sub(said) >= sayInterval {
			said = now
			c.sayf("waiting  %s: %v", q.about, err)
		}
		select {
		case <-ctx.Done():
		case <-c.Clock.After(askInterval):
		}
	}
}

func (c *Checkup) sayf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(c.Out, format+"\n", arguments...) // The end of the command says the same.
}
