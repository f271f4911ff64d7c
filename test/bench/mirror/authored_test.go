// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/bench/bare"
	"github.com/configbutler/slipstream/test/bench/samples"
	"github.com/configbutler/slipstream/test/devcluster"
)

const (
	// starts is the number of restarts of the server, and firstChanges the number of measured changes after each.
	starts       = 3
	firstChanges = 30
	// manyObjects is the size of the larger population.
	manyObjects = 10_000
)

// BenchmarkAuthored measures the time from a change to its pushed commit on a control plane that sends audit events and
// admission reviews, as BenchmarkMirror does on one that sends neither. Each change is the first one of its object since
// the start of the server.
func BenchmarkAuthored(b *testing.B) {
	s := newTestCluster(b, devcluster.Options{Audit: true, Admission: true})
	p := newPopulation(s.core)
	m := s.newMirror(b, "shop")
	for _, size := range []int{few, manyObjects} {
		b.Run(fmt.Sprintf("EventToCommit/objects=%d", size), func(b *testing.B) {
			p.Grow(b, size)
			if size == few {
				m.watch(b)
			}
			m.settled(b, p)
			for b.Loop() {
				authored(b, m, p)
			}
			b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
		})
	}
}

// authored measures the first changes after each restart, and then as many as are measured without the webhooks. After
// each change, a file is pushed to a copy of the repository for comparison.
func authored(b *testing.B, m *mirror, p *population) {
	r := m.open(b)
	r.Git(b, "repack", "-a", "-d", "-q")
	direct := newDirectPush(b, m, p.Size)
	before, changed := r.Tip(), 0
	measure := func(count int) (events, pushes []time.Duration) {
		for range count {
			event, object := changeOnce(b, r, p, changed*7919%p.Size)
			events, pushes = append(events, event), append(pushes, direct.once(b.Context(), object))
			changed++
		}
		return events, pushes
	}
	var first []time.Duration
	for range starts {
		m.restarted(b)
		events, _ := measure(firstChanges)
		first = append(first, events...)
	}
	later, pushes := measure(latencySamples)
	b.ReportMetric(samples.Milliseconds(samples.Quantile(first, 0.5)), "first-p50-ms")
	b.ReportMetric(samples.Milliseconds(samples.Quantile(first, 0.99)), "first-p99-ms")
	b.ReportMetric(samples.Milliseconds(samples.Quantile(later, 0.5)), "p50-ms")
	b.ReportMetric(samples.Milliseconds(samples.Quantile(later, 0.99)), "p99-ms")
	b.ReportMetric(samples.Milliseconds(samples.Quantile(pushes, 0.5)), "push-p50-ms")
	b.ReportMetric(samples.Ratio(samples.Quantile(later, 0.5), samples.Quantile(pushes, 0.5)), "p50/push")
	b.ReportMetric(100*float64(rightAuthors(b, r, before, writer(b, m)))/float64(changed), "right-%")
}

// writer is the user who makes the changes.
func writer(b *testing.B, m *mirror) string {
	b.Helper()
	review, err := m.core.AuthenticationV1().SelfSubjectReviews().Create(b.Context(), &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return review.Status.UserInfo.Username
}

// rightAuthors counts the commits since the given one that have the right author, reported by a webhook.
func rightAuthors(b *testing.B, r *repository, since, author string) (count int) {
	b.Helper()
	out := r.Git(b, "log", "--format=%an %(trailers:key=X-ConfigButler-Attribution,valueonly,separator=%x2C)", since+".."+bare.Branch)
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line == author+" audit" || line == author+" admission" {
			count++
		}
	}
	return count
}
