// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/bench/bare"
	"github.com/configbutler/slipstream/test/bench/configmaps"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// baseFolder is the folder of each repository to which the tools write.
const baseFolder = "clusters/bench"

const (
	// deadline is the timeout for a seed, with a margin for a busy machine.
	deadline = 10 * time.Minute
	// arrivalLimit is how long it takes until a change, or the rest of all objects, counts as missing.
	arrivalLimit = time.Minute
	// arrivalInterval is the interval at which the branch is read for the end of a burst.
	arrivalInterval = 50 * time.Millisecond
)

// tool is one that writes changes of objects to Git.
type tool interface {
	// name is the prefix of its metrics.
	name() string
	// launch runs it on the state that it has stored, and waits until it is ready. end ends it, if it runs.
	launch(b *testing.B)
	end(b *testing.B)
	// watch has it mirror the population to the main branch of a repository, and unwatch ends that.
	watch(b *testing.B, repository, url string)
	unwatch(b *testing.B)
	// path is the file of an object below baseFolder.
	path(object *corev1.ConfigMap) string
	// ready waits until the tool reports that it mirrors without errors.
	ready(b *testing.B)
	// pid is the id of its process.
	pid(b *testing.B) string
}

// side is a tool with the repository to which it currently mirrors.
type side struct {
	tool
	cluster *testCluster
	*bare.Repository
	// remote is between the tool and the Git server, for all repositories.
	remote *mirrortest.Wire
	// repositories is the number of repositories that it has had, and watches whether it mirrors to the last one.
	repositories int
	watches      bool
	// runs is whether the tool runs.
	runs bool
}

// start launches the tool, unless it runs.
func (s *side) start(b *testing.B) {
	b.Helper()
	if !s.runs {
		s.launch(b)
		s.runs = true
	}
}

func (s *side) stop(b *testing.B) {
	b.Helper()
	s.end(b)
	s.runs = false
}

// newRepository has the tool mirror to a new and empty repository. The repository exists before: GitOps Reverser creates none by a push.
func (s *side) newRepository(b *testing.B) {
	b.Helper()
	s.repositories++
	repository := fmt.Sprintf("%s-%d", s.name(), s.repositories)
	s.Repository = &bare.Repository{Folder: filepath.Join(s.cluster.Env(devcluster.EnvGitRoot), repository+".git")}
	if out, err := exec.CommandContext(b.Context(), "git", "init", "--quiet", "--bare", "--initial-branch="+bare.Branch, s.Folder).CombinedOutput(); err != nil {
		b.Fatalf("git init: %v: %s", err, out)
	}
	s.Git(b, "config", "http.receivepack", "true")
	s.watch(b, repository, "http://"+s.remote.Addr().String()+"/"+repository+".git")
	s.watches = true
}

// forget has the tool, which must run, mirror to its repository no longer.
func (s *side) forget(b *testing.B) {
	b.Helper()
	if s.watches {
		s.unwatch(b)
		s.watches = false
	}
}

// open prepares the repository for reading. A benchmark cannot use what an earlier one has opened.
func (s *side) open(b *testing.B) {
	b.Helper()
	s.Repository = bare.Open(b, s.Folder)
}

// holds reports whether a commit has the current state of an object.
func (s *side) holds(commit string, object *corev1.ConfigMap) (bool, error) {
	return s.Holds(commit, baseFolder+"/"+s.path(object), configmaps.Line(object))
}

// missing counts the objects of the population whose current state the branch does not have.
func (s *side) missing(ctx context.Context) (count int, err error) {
	objects, err := s.cluster.core.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{LabelSelector: "app=shop", ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	tip := s.Tip()
	for i := range objects.Items {
		held, err := s.holds(tip, &objects.Items[i])
		if err != nil {
			return 0, err
		}
		if !held {
			count++
		}
	}
	return count, nil
}

// caughtUp waits until the branch has the current state of all objects, for arrivalLimit at most, and until the tool reports that it mirrors.
// It opens the repository, which must have a first push.
func (s *side) caughtUp(b *testing.B) {
	b.Helper()
	s.open(b)
	missing := 0
	err := wait.PollUntilContextTimeout(b.Context(), arrivalInterval, arrivalLimit, true, func(ctx context.Context) (_ bool, err error) {
		missing, err = s.missing(ctx)
		return missing == 0, err
	})
	if err != nil && !wait.Interrupted(err) {
		b.Fatal(err)
	}
	if missing > 0 {
		b.Logf("%s lacks %d objects a minute after its start", s.name(), missing)
		b.ReportMetric(float64(missing), s.name()+"-behind")
	}
	// Git servers repack regularly, which keeps commands from searching hundreds of packs.
	s.Git(b, "repack", "-a", "-d", "-q")
	s.open(b)
	s.ready(b)
}

// arrived waits until the branch has the state of an object, and returns the time.
func (s *side) arrived(ctx context.Context, from string, object *corev1.ConfigMap) (time.Time, error) {
	return s.Arrived(ctx, from, baseFolder+"/"+s.path(object), configmaps.Line(object))
}
