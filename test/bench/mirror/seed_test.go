// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/bench/bare"
	"github.com/configbutler/slipstream/test/bench/samples"
)

// seedRounds is the number of measured seeds, and of their counterparts.
const seedRounds = 3

// seed measures the time from the creation of a rule to the push that completes the branch,
// and compares it with the time kubectl takes to print all ConfigMaps of the cluster.
func seed(b *testing.B, m *mirror, p *population) {
	// Otherwise changes would be written to both destinations.
	m.remove(b)
	var seeds, gets []time.Duration
	for round := range seedRounds {
		gets = append(gets, getAll(b, m))
		next := m.newMirror(b, fmt.Sprintf("seed-%d", round))
		seeds = append(seeds, next.seedOnce(b, p))
		next.settled(b, p)
		if round < seedRounds-1 {
			next.remove(b)
		}
		*m = *next
	}
	b.ReportMetric(samples.Quantile(seeds, 0.5).Seconds(), "seed-s")
	b.ReportMetric(samples.Quantile(gets, 0.5).Seconds(), "get-s")
	b.ReportMetric(samples.Ratio(samples.Quantile(seeds, 0.5), samples.Quantile(gets, 0.5)), "seed/get")
}

// seedSecrets measures the seed of encrypted Secrets, and compares it with that of the same
// Secrets without encryption.
func seedSecrets(b *testing.B, s *testCluster, p *population) {
	p.addSecrets(b)
	took := map[v1alpha1.SecretsPolicy][]time.Duration{}
	for round := range seedRounds {
		for _, policy := range []v1alpha1.SecretsPolicy{v1alpha1.SecretsAsIs, v1alpha1.SecretsEncrypt} {
			m := s.newMirrorOf(b, fmt.Sprintf("%s-%d", strings.ToLower(string(policy)), round), "secrets", policy)
			took[policy] = append(took[policy], m.seedOnce(b, p))
			m.settled(b, p)
			m.remove(b)
		}
	}
	plain, encrypted := samples.Quantile(took[v1alpha1.SecretsAsIs], 0.5), samples.Quantile(took[v1alpha1.SecretsEncrypt], 0.5)
	b.ReportMetric(plain.Seconds(), "plain-s")
	b.ReportMetric(encrypted.Seconds(), "encrypted-s")
	b.ReportMetric(samples.Ratio(encrypted, plain), "encrypted/plain")
}

// getAll returns how long kubectl takes to print all ConfigMaps.
func getAll(b *testing.B, m *mirror) time.Duration {
	b.Helper()
	command := m.Kubectl(m.Admin()).Command(b.Context(), "get", "configmaps", "-A", "-o", "yaml")
	command.Stdout = io.Discard
	began := time.Now()
	if err := command.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// seedOnce creates the rule and returns the time until the branch has a file for every
// object.
func (m *mirror) seedOnce(b *testing.B, p *population) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), deadline)
	defer cancel()
	began := time.Now()
	m.watch(b)
	r := &bare.Repository{Folder: m.repository}
	for tip := ""; ; {
		next, at, err := r.Moved(ctx, tip)
		if err != nil {
			b.Fatal(err)
		}
		if r.Files(b, next) >= p.Size {
			return at.Sub(began)
		}
		tip = next
	}
}

// settled waits until the branch has a file for every object and the destination reports
// no pending changes.
func (m *mirror) settled(b *testing.B, p *population) {
	b.Helper()
	eventually(b, "the branch has every object", stateInterval, m.isSettled(p))
}

// isSettled returns a check of what settled waits for.
func (m *mirror) isSettled(p *population) func(context.Context) error {
	return func(ctx context.Context) error {
		record, err := m.record(ctx)
		if err == nil && (record.State != "Up to date" || int(record.Files) != p.Size) {
			err = fmt.Errorf("state %q, %d files for %d objects", record.State, record.Files, p.Size)
		}
		return err
	}
}

// secondRun measures how long the server takes to restart and to detect that no object has
// changed. await waits until a check succeeds.
func secondRun(b *testing.B, m *mirror, await func(what string, check func(context.Context) error)) {
	b.Helper()
	r := &bare.Repository{Folder: m.repository}
	before := r.Commits(b)
	record, err := m.record(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	m.stop(b)
	began := time.Now()
	m.start(b)
	ready := time.Since(began)
	await("everything is compared", m.isCompared(record.LastSeedTime))
	b.ReportMetric(time.Since(began).Seconds(), "compared-s")
	b.ReportMetric(ready.Seconds(), "ready-s")
	b.ReportMetric(float64(r.Commits(b)-before), "commits")
}
