// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirrortest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
)

// ChangesAgree waits until each change of a file in the history of the branch has exactly one Change with the commit and the right
// contents, and there are no other Changes of the destination.
func (m *Mirror) ChangesAgree(t testing.TB) {
	t.Helper()
	clients := ClientOf(t, m.cluster.Admin(), versioned.NewForConfig)
	Eventually(t, "the Changes agree with the commits", func(ctx context.Context) error {
		committed, err := m.committed(ctx)
		if err != nil {
			return err
		}
		recorded, err := m.recorded(ctx, clients)
		if err != nil {
			return err
		}
		lost, added := without(committed, recorded), without(recorded, committed)
		if len(lost)+len(added) > 0 || len(committed) != len(recorded) {
			return fmt.Errorf("%d changes in commits and %d Changes; without a Change: %s; without a commit: %s",
				len(committed), len(recorded), first(lost), first(added))
		}
		return nil
	})
}

// committed returns the changes of files in the destination's folder, a line each: commit, path, and the contents before and after.
func (m *Mirror) committed(ctx context.Context) ([]string, error) {
	out, err := m.Git(ctx, "log", m.Branch, "--format=%H", "--raw", "--no-abbrev", "--no-renames", "--", m.Folder+"/")
	if err != nil {
		return nil, err
	}
	var lines []string
	commit := ""
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 1:
			commit = fields[0]
		case len(fields) > 5 && fields[5] != m.Folder+"/"+MarkerPath && fields[5] != m.Folder+"/"+NotesPath:
			lines = append(lines, strings.Join([]string{commit, fields[5], contentOf(fields[2]), contentOf(fields[3])}, " "))
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// contentOf returns the hash of a content, - for that of a file that does not exist.
func contentOf(hash string) string {
	if strings.Trim(hash, "0") == "" {
		return "-"
	}
	return hash
}

// recorded returns the Changes of the destination in the form of committed.
func (m *Mirror) recorded(ctx context.Context, clients *versioned.Clientset) ([]string, error) {
	var lines []string
	options := metav1.ListOptions{Limit: 500}
	for {
		page, err := clients.ConfigbutlerV1alpha1().Changes(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for _, change := range page.Items {
			for _, commit := range change.Spec.Commits {
				if commit.DestinationRef.Namespace == m.Namespace && commit.DestinationRef.Name == "main" {
					lines = append(lines, strings.Join([]string{commit.SHA, commit.Path, contentOf(commit.BlobBefore), contentOf(commit.BlobAfter)}, " "))
				}
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			slices.Sort(lines)
			return lines, nil
		}
	}
}

// without returns the lines that are not in others. Both are sorted.
func without(lines, others []string) (rest []string) {
	for _, line := range lines {
		if _, found := slices.BinarySearch(others, line); !found {
			rest = append(rest, line)
		}
	}
	return rest
}

// first returns the first of some lines, and how many there are.
func first(lines []string) string {
	if len(lines) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, such as %s", len(lines), lines[0])
}
