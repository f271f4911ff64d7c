// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/attribution/facts"
	"github.com/configbutler/slipstream/pkg/attribution/webhook"
	"github.com/configbutler/slipstream/pkg/store/hmac"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// reports are what API servers tell of who makes changes: every replica takes them, the one that leads reads them.
type reports struct {
	log       *facts.Log
	endpoints *webhook.Endpoints
	// hash is the one under which content is compared with admission reviews. All replicas have the same.
	hash func(content []byte) string
}

// newReports lets the server that config becomes take reports, and tell of changes of its own kinds as well.
func newReports(ctx context.Context, opts *options.AttributionOptions, config *apiserver.Config, store *table.Store) (*reports, error) {
	hasher, err := hmac.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	r := &reports{
		log:  facts.New(store, clock.RealClock{}),
		hash: func(content []byte) string { return hasher.Sum("admission content", content) },
	}
	r.endpoints, err = webhook.New(webhook.Config{
		Recorder: r.log, Hash: r.hash, Clock: clock.RealClock{},
		AuditClientCAFile: opts.AuditClientCAFile, AuditClientNames: opts.AuditClientNames,
		AdmissionSegmentFile: opts.AdmissionSegmentFile, AdmissionClientCAFile: opts.AdmissionClientCAFile,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to be told who makes changes: %w", err)
	}
	config.Recorder = r.log
	if err := r.endpoints.Install(&config.Generic.Config); err != nil {
		return nil, fmt.Errorf("preparing to be told who makes changes: %w", err)
	}
	return r, nil
}

// run takes reports in until ctx ends. The log ends last, after what has come in has been handed over to it.
func (r *reports) run(ctx context.Context) {
	logging, end := context.WithCancel(context.WithoutCancel(ctx))
	var log wait.Group
	defer log.Wait()
	defer end()
	log.StartWithContext(logging, r.log.Run)
	r.endpoints.Run(ctx)
}
