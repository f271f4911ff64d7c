// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/attribution/factlog"
	"github.com/configbutler/slipstream/pkg/attribution/intake"
	"github.com/configbutler/slipstream/pkg/keyedhash"
	"github.com/configbutler/slipstream/pkg/workstore"
)

// reports are what API servers tell of who makes changes: every replica takes them, the one that leads reads them.
type reports struct {
	log       *factlog.Log
	endpoints *intake.Endpoints
	// hash is the one under which content is compared with admission reviews. All replicas have the same.
	hash func(content []byte) string
}

func newReports(ctx context.Context, opts *options.AttributionOptions, store *workstore.Store) (*reports, error) {
	hasher, err := keyedhash.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	r := &reports{
		log:  factlog.New(store, clock.RealClock{}),
		hash: func(content []byte) string { return hasher.Sum("admission content", content) },
	}
	r.endpoints, err = intake.New(intake.Config{
		Recorder: r.log, Hash: r.hash, Clock: clock.RealClock{},
		AuditClientCAFile: opts.AuditClientCAFile, AuditClientNames: opts.AuditClientNames,
		AdmissionSegmentFile: opts.AdmissionSegmentFile, AdmissionClientCAFile: opts.AdmissionClientCAFile,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to be told who makes changes: %w", err)
	}
	return r, nil
}

// runWith takes reports in for as long as a server listens.
func (r *reports) runWith(server *apiserver.Server) error {
	if err := server.AddBackground("record-facts", r.log.Run); err != nil {
		return err
	}
	return server.AddBackground("read-admission-reviews", r.endpoints.Run)
}
