// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/mirrortest"
)

// commit is a commit about one change.
type commit struct{ mirrortest.Commit }

// nobody says whether the commit names no user.
func (c commit) nobody() bool { return c.Signal == "unknown" || c.Signal == "managed-fields" }

// about says which object the commit is about, and what was done to it, as a claim says it.
func (c commit) about() (object, operation string) {
	operation, rest, _ := strings.Cut(strings.TrimPrefix(c.Subject, "["), "] ")
	return rest[strings.LastIndex(rest, "/")+1:], operation
}

// history returns the commits of the branch that are about changes of one resource, such as "v1/configmaps", the oldest
// first.
func (m *mirror) history(ctx context.Context, resource string) ([]commit, error) {
	found, err := m.History(ctx, resource)
	commits := make([]commit, len(found))
	for i := range found {
		commits[i] = commit{found[i]}
	}
	return commits, err
}

// commits waits until there are as many commits about a resource, and returns them. More fail the test.
func (m *mirror) commits(t *testing.T, resource string, want int) []commit {
	t.Helper()
	var commits []commit
	mirrortest.Eventually(t, fmt.Sprintf("%d commits about %s", want, resource), func(ctx context.Context) error {
		var err error
		if commits, err = m.history(ctx, resource); err == nil && len(commits) < want {
			err = fmt.Errorf("%v so far", commits[max(0, len(commits)-10):])
		}
		return err
	})
	if len(commits) > want {
		t.Errorf("%d commits about %s, want %d; the last is %s", len(commits), resource, want, commits[len(commits)-1])
	}
	return commits
}

// claim is that somebody did something to an object.
type claim struct{ object, operation, by string }

// named waits for the commits about a resource and fails the test unless they are those claimed, for each object in that
// order, and name who did it.
func (m *mirror) named(t *testing.T, resource string, claims ...claim) []commit {
	t.Helper()
	return m.compare(t, resource, claims, true)
}

// notMisnamed is named where the control plane tells exactly. Where it does not, a commit may name nobody.
func (m *mirror) notMisnamed(t *testing.T, resource string, claims ...claim) []commit {
	t.Helper()
	return m.compare(t, resource, claims, m.exact)
}

// compare returns the commits in the order of the claims, as far as they are those claimed. All of them must name who did it,
// or, where the control plane does not tell exactly, admissionShare.
func (m *mirror) compare(t *testing.T, resource string, claims []claim, all bool) []commit {
	t.Helper()
	commits := m.commits(t, resource, len(claims))
	found := make([]commit, len(claims))
	var wrong, unnamed mistakes
	for i, want := range claims {
		at := slices.IndexFunc(commits, func(c commit) bool {
			object, _ := c.about()
			return object == want.object
		})
		if at < 0 {
			wrong.add("no commit that %s %s %s", want.by, want.operation, want.object)
			continue
		}
		found[i] = commits[at]
		commits = slices.Delete(commits, at, at+1)
		if _, operation := found[i].about(); operation != want.operation {
			wrong.add("%s, want %s", found[i], want.operation)
		}
		if found[i].nobody() {
			unnamed.add("%s, but it was %s", found[i], want.by)
		}
		wrong.judge(found[i], want.by, false)
	}
	if all && (m.exact || float64(len(unnamed)) > (1-admissionShare)*float64(len(claims))) {
		wrong = append(wrong, unnamed...)
	}
	wrong.report(t)
	return found
}

// mistakes are what commits say that is not so. The first few tell enough.
type mistakes []string

func (w *mistakes) add(format string, arguments ...any) {
	*w = append(*w, fmt.Sprintf(format, arguments...))
}

// judge makes it a mistake of a commit to name somebody else than who did it or, if it must, nobody. It says whether the
// commit names who did it.
func (w *mistakes) judge(c commit, by string, must bool) bool {
	switch {
	case c.nobody() && must:
		w.add("%s, but it was %s", c, by)
	case !c.nobody() && (c.Author != by || !strings.HasPrefix(c.Email, by+"@")):
		w.add("WRONG: %s <%s>, but it was %s", c, c.Email, by)
	}
	return !c.nobody() && c.Author == by
}

func (w *mistakes) report(t *testing.T) {
	t.Helper()
	const shown = 5
	if len(*w) > 0 {
		t.Errorf("%d mistakes, such as\n%s", len(*w), strings.Join((*w)[:min(len(*w), shown)], "\n"))
	}
}

// judge fails the test when a commit names somebody else than who did it or, if it must, nobody. It says whether it
// names who did it.
func judge(t *testing.T, c commit, by string, must bool) bool {
	t.Helper()
	var wrong mistakes
	defer wrong.report(t)
	return wrong.judge(c, by, must)
}

// changesOf waits for the changes of one object, and returns their commits.
func (m *mirror) changesOf(t *testing.T, resource, name string, want int) []commit {
	t.Helper()
	var found []commit
	mirrortest.Eventually(t, fmt.Sprintf("%d commits about %s", want, name), func(ctx context.Context) error {
		commits, err := m.history(ctx, resource)
		found = slices.DeleteFunc(commits, func(c commit) bool {
			object, operation := c.about()
			return object != name || operation == "SEED"
		})
		if err == nil && len(found) < want {
			err = fmt.Errorf("%v so far", found)
		}
		return err
	})
	return found
}
