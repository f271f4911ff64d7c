// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/test/bench/bare"
	"github.com/configbutler/slipstream/test/bench/configmaps"
	"github.com/configbutler/slipstream/test/bench/samples"
	"github.com/configbutler/slipstream/test/devcluster"
)

const (
	// latencyWarmUp is the number of changes before the measured ones.
	latencyWarmUp  = 20
	latencySamples = 300
)

// latency measures the time from the request of a change until the branch of the remote
// has it. The next change is made after that, so the server is idle before each. After each
// change, a file is pushed directly to a copy of the repository, which measures the part of
// the Git server and pkg/mirror/gitrepo.
type latency struct {
	*mirror
	*population
	// samples is the number of measured changes.
	samples int
	// first is the median of the first and smallest population, zero before it is measured.
	first time.Duration
}

func (l *latency) run(b *testing.B) {
	r := l.open(b)
	// The population was pushed in hundreds of packs, which every git command would search.
	// Git servers repack regularly; here it is done explicitly.
	r.Git(b, "repack", "-a", "-d", "-q")
	direct := newDirectPush(b, l.mirror, l.Size)
	var events, pushes []time.Duration
	for i := range latencyWarmUp + l.samples {
		event, object := changeOnce(b, r, l.population, i*7919%l.Size)
		push := direct.once(b.Context(), object)
		if i >= latencyWarmUp {
			events, pushes = append(events, event), append(pushes, push)
		}
	}
	median := samples.Quantile(events, 0.5)
	b.ReportMetric(samples.Milliseconds(median), "p50-ms")
	b.ReportMetric(samples.Milliseconds(samples.Quantile(events, 0.99)), "p99-ms")
	b.ReportMetric(samples.Milliseconds(samples.Quantile(pushes, 0.5)), "push-p50-ms")
	b.ReportMetric(samples.Ratio(median, samples.Quantile(pushes, 0.5)), "p50/push")
	if l.first == 0 {
		l.first = median
		return
	}
	b.ReportMetric(samples.Ratio(median, l.first), "p50/first")
}

// changeOnce makes one change and waits for it.
func changeOnce(b *testing.B, r *repository, p *population, number int) (time.Duration, *corev1.ConfigMap) {
	b.Helper()
	from, began := r.Tip(), time.Now()
	object, err := p.Update(b.Context(), number)
	if err != nil {
		b.Fatal(err)
	}
	at, err := r.arrived(b.Context(), from, object)
	if err != nil {
		b.Fatal(err)
	}
	return at.Sub(began), object
}

// directPush changes a copy of the repository without the server.
type directPush struct {
	b      *testing.B
	branch *gitrepo.Branch
}

func newDirectPush(b *testing.B, m *mirror, objects int) *directPush {
	b.Helper()
	name := fmt.Sprintf("direct-%d", objects)
	root := m.Env(devcluster.EnvGitRoot)
	if err := os.CopyFS(filepath.Join(root, name+".git"), os.DirFS(m.repository)); err != nil {
		b.Fatal(err)
	}
	remote := &gitrepo.Remote{URL: m.Env(devcluster.EnvGitURL) + "/" + name + ".git"}
	b.Cleanup(remote.Close)
	if err := remote.Check(b.Context()); err != nil {
		b.Fatal(err)
	}
	branch, err := gitrepo.Load(b.Context(), remote, bare.Branch, gitrepo.Options{ManagedFolders: []string{baseFolder}})
	if err != nil {
		b.Fatal(err)
	}
	return &directPush{b: b, branch: branch}
}

// once returns how long it takes to commit and push a file as large as the object's.
func (d *directPush) once(ctx context.Context, object *corev1.ConfigMap) time.Duration {
	d.b.Helper()
	began := time.Now()
	signature := gitrepo.Signature{Name: "Bench", Email: "bench@example.com", When: began}
	_, staged, err := d.branch.Stage(gitrepo.Commit{Author: signature, Committer: signature, Message: "Change a file\n",
		Changes: []gitrepo.Change{
			{Path: filePath(object.Namespace, object.Name), Content: []byte(configmaps.Content(object))},
		}})
	if err != nil || !staged {
		d.b.Fatalf("staged: %v, error: %v", staged, err)
	}
	if _, err := d.branch.Push(ctx); err != nil {
		d.b.Fatal(err)
	}
	return time.Since(began)
}
