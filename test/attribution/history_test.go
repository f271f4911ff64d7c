// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// commit is a commit about one change.
type commit struct{ mirrortest.Commit }

// hasNoAuthor reports whether the commit names no user.
func (c commit) hasNoAuthor() bool { return c.Signal == "unknown" || c.Signal == "managed-fields" }

// about returns the name of the object of the commit, and its operation.
func (c commit) about() (object, operation string) {
	operation, rest, _ := strings.Cut(strings.TrimPrefix(c.Subject, "["), "] ")
	return rest[strings.LastIndex(rest, "/")+1:], operation
}

// history returns the commits about single changes of a resource such as "v1/configmaps", oldest first.
func (m *mirror) history(ctx context.Context, resource string) ([]commit, error) {
	found, err := m.History(ctx, resource)
	commits := make([]commit, len(found))
	for i := range found {
		commits[i] = commit{found[i]}
	}
	return commits, err
}

// commits waits for a number of commits about a resource, and returns them. The test fails if there are more.
func (m *mirror) commits(t *testing.T, resource string, want int) []commit {
	t.Helper()
	var commits []commit
	mirrortest.Eventually(t, fmt.Sprintf("%d commits about %s", want, resource), func(ctx context.Context) error {
		var err error
		if commits, err = m.history(ctx, resource); err == nil && len(commits) < want {
			err = fmt.Errorf("found %v", commits[max(0, len(commits)-10):])
		}
		return err
	})
	if len(commits) > want {
		t.Errorf("%d commits about %s, want %d; last commit: %s", len(commits), resource, want, commits[len(commits)-1])
	}
	return commits
}

// expected is the object, operation and author of an expected commit.
type expected struct{ object, operation, by string }

// expectAuthors waits for the commits about a resource, and fails the test unless they match the expected ones, in order for each
// object, and name their authors.
func (m *mirror) expectAuthors(t *testing.T, resource string, wants ...expected) []commit {
	t.Helper()
	return m.compare(t, resource, wants, true)
}

// expectNoWrongAuthors is like expectAuthors, but without exact facts a commit may have no author.
func (m *mirror) expectNoWrongAuthors(t *testing.T, resource string, wants ...expected) []commit {
	t.Helper()
	return m.compare(t, resource, wants, m.exact)
}

// compare returns the commits in the order of the expected ones. A commit must name the author if all is set; without exact facts
// the share admissionShare is sufficient.
func (m *mirror) compare(t *testing.T, resource string, wants []expected, all bool) []commit {
	t.Helper()
	commits := m.commits(t, resource, len(wants))
	found := make([]commit, len(wants))
	var wrong, unnamed mistakes
	for i, want := range wants {
		at := slices.IndexFunc(commits, func(c commit) bool {
			object, _ := c.about()
			return object == want.object
		})
		if at < 0 {
			wrong.add("no commit of %s, %s %s", want.by, want.operation, want.object)
			continue
		}
		found[i] = commits[at]
		commits = slices.Delete(commits, at, at+1)
		if _, operation := found[i].about(); operation != want.operation {
			wrong.add("%s, want %s", found[i], want.operation)
		}
		if found[i].hasNoAuthor() {
			unnamed.add("%s, want author %s", found[i], want.by)
		}
		wrong.check(found[i], want.by, false)
	}
	if all && (m.exact || float64(len(unnamed)-m.unansweredReviews(t)) > (1-admissionShare)*float64(len(wants))) {
		wrong = append(wrong, unnamed...)
	}
	wrong.report(t)
	return found
}

// mistakes are differences between commits and expectations. Only the first ones are printed.
type mistakes []string

func (w *mistakes) add(format string, arguments ...any) {
	*w = append(*w, fmt.Sprintf(format, arguments...))
}

// check adds a mistake if a commit names another author than expected, or none if required is set. It reports whether the commit
// names the author.
func (w *mistakes) check(c commit, by string, required bool) bool {
	switch {
	case c.hasNoAuthor() && required:
		w.add("%s, want author %s", c, by)
	case !c.hasNoAuthor() && (c.Author != by || !strings.HasPrefix(c.Email, by+"@")):
		w.add("WRONG: %s <%s>, want author %s", c, c.Email, by)
	}
	return !c.hasNoAuthor() && c.Author == by
}

func (w *mistakes) report(t *testing.T) {
	t.Helper()
	const shown = 5
	if len(*w) > 0 {
		t.Errorf("%d mistakes:\n%s", len(*w), strings.Join((*w)[:min(len(*w), shown)], "\n"))
	}
}

// checkAuthor fails the test if a commit names another author than expected, or none if required is set. It reports whether the
// commit names the author.
func checkAuthor(t *testing.T, c commit, by string, required bool) bool {
	t.Helper()
	var wrong mistakes
	defer wrong.report(t)
	return wrong.check(c, by, required)
}

// changesOf waits for a number of commits about one object, and returns them.
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
			err = fmt.Errorf("found %v", found)
		}
		return err
	})
	return found
}
