// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncstatus_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// commit parses destination:sha@second.
func commit(text string) v1alpha1.MirroredCommit {
	destination, rest, _ := strings.Cut(text, ":")
	sha, second, _ := strings.Cut(rest, "@")
	at, err := time.ParseDuration(second + "s")
	if err != nil {
		panic(err)
	}
	return v1alpha1.MirroredCommit{
		CommitSummary:  v1alpha1.CommitSummary{SHA: sha, Time: metav1.NewTime(time.Unix(0, 0).Add(at))},
		DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: destination},
	}
}

func commitsOf(texts ...string) (out []v1alpha1.MirroredCommit) {
	for _, text := range texts {
		out = append(out, commit(text))
	}
	return out
}

func TestAddCommits(t *testing.T) {
	for name, test := range map[string]struct{ before, more, want []string }{
		"none":                   {},
		"the first":              {more: []string{"main:b@2", "main:a@1"}, want: []string{"main:b@2", "main:a@1"}},
		"newer ones":             {before: []string{"main:a@1"}, more: []string{"main:b@2"}, want: []string{"main:b@2", "main:a@1"}},
		"older ones":             {before: []string{"main:b@2"}, more: []string{"main:a@1"}, want: []string{"main:b@2", "main:a@1"}},
		"the same":               {before: []string{"main:a@1"}, more: []string{"main:a@1"}, want: []string{"main:a@1"}},
		"in another destination": {before: []string{"main:a@1"}, more: []string{"more:a@1"}, want: []string{"more:a@1", "main:a@1"}},
		"of one second": {
			before: []string{"main:a@1"}, more: []string{"main:c@1", "main:b@1", "main:a@1"}, want: []string{"main:c@1", "main:b@1", "main:a@1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			record := &v1alpha1.SyncStatus{Status: v1alpha1.SyncRecord{Commits: commitsOf(test.before...)}}
			syncstatus.AddCommits(record, commitsOf(test.more...))
			if got := record.Status.Commits; !slices.Equal(got, commitsOf(test.want...)) {
				t.Errorf("commits are %+v, want %v", got, test.want)
			}
		})
	}
}

func TestAddCommitsKeepsTheNewest(t *testing.T) {
	record := &v1alpha1.SyncStatus{}
	for i := range syncstatus.MaxCommits + 5 {
		syncstatus.AddCommits(record, commitsOf(fmt.Sprintf("main:%d@%d", i, i)))
	}
	named := record.Status.Commits
	if len(named) != syncstatus.MaxCommits || named[0].SHA != fmt.Sprint(syncstatus.MaxCommits+4) || named[len(named)-1].SHA != "5" {
		t.Errorf("%d commits, from %s to %s", len(named), named[0].SHA, named[len(named)-1].SHA)
	}
}
