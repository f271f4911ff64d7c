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

// reports are the audit events and admission reviews that name the authors of changes. Every replica receives and records
// them, and the leader reads them.
type reports struct {
	log       *facts.Log
	endpoints *webhook.Endpoints
	// hash is the hash for comparing content with admission reviews. It is the same on all replicas.
	hash func(content []byte) string
}

// newReports makes the server of config receive reports, and record the authors of changes of its own kinds.
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
		return nil, fmt.Errorf("configuring the webhooks that report authors: %w", err)
	}
	config.Recorder = r.log
	if err := r.endpoints.Install(&config.Generic.Config); err != nil {
		return nil, fmt.Errorf("installing the webhooks that report authors: %w", err)
	}
	return r, nil
}

// run receives reports until ctx ends. The log ends last, after it has received all of them.
func (r *reports) run(ctx context.Context) {
	logging, end := context.WithCancel(context.WithoutCancel(ctx))
	var log wait.Group
	defer log.Wait()
	defer end()
	log.StartWithContext(logging, r.log.Run)
	r.endpoints.Run(ctx)
}
