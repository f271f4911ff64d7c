// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// changesOf parses "author:path author:path ...". An author is "user" or "user/signal".
func changesOf(text string) []outbox.Change {
	var changes []outbox.Change
	for i, field := range strings.Fields(text) {
		author, path, _ := strings.Cut(field, ":")
		user, signal, _ := strings.Cut(author, "/")
		actor := attribution.Actor{Username: user, Groups: []string{fmt.Sprint(i)}}
		changes = append(changes, outbox.Change{
			Path: path, Author: attribution.Author{Actor: actor, Signal: attribution.Signal(signal)},
			Operation: v1alpha1.OperationUpdate, Content: []byte(fmt.Sprint(i)),
			Object: outbox.Object{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: path},
		})
	}
	return changes
}

func TestGroupChanges(t *testing.T) {
	for _, tc := range []struct {
		granularity v1alpha1.Granularity
		changes     string
		want        []string // author: paths in the commit
	}{
		{v1alpha1.GranularityPerChange, "ann:a ann:a bob:b", []string{"ann: a", "ann: a", "bob: b"}},
		{v1alpha1.GranularityPerAuthor, "ann:a ann:b ann:a bob:a ann:a", []string{"ann: a b", "bob: a", "ann: a"}},
		{v1alpha1.GranularityPerAuthor, ":a :b ann:a", []string{": a b", "ann: a"}},
		{v1alpha1.GranularityPerAuthor, "ann/audit:a ann/admission:b ann/audit:c ann/audit:d", []string{"ann/admission: a b c d"}},
		{v1alpha1.GranularityPerAuthor, "ann/audit:a bob/audit:b ann/audit:b", []string{"ann/audit: a", "bob/audit: b", "ann/audit: b"}},
		{v1alpha1.GranularityPerAuthor, ":a /unknown:b /managed-fields:c", []string{": a b", "/managed-fields: c"}},
		{v1alpha1.GranularityBatch, "ann:a bob:b ann:a", []string{": a b"}},
		{v1alpha1.GranularityBatch, "ann/audit:a ann/admission:b bob/audit:c", []string{": a b c"}},
		{v1alpha1.GranularityBatch, "ann:a ann:b", []string{"ann: a b"}},
		{v1alpha1.GranularityBatch, "", nil},
	} {
		var got []string
		for _, g := range groupChanges(tc.granularity, changesOf(tc.changes)) {
			line := g.author.Username
			if g.author.Signal != "" {
				line += "/" + string(g.author.Signal)
			}
			line += ":"
			for _, change := range g.final() {
				line += " " + change.Path
			}
			got = append(got, line)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s %q: commits %q, want %q", tc.granularity, tc.changes, got, tc.want)
		}
	}
}

func TestFinalKeepsTheLastChange(t *testing.T) {
	final := group{changes: changesOf("ann:a ann:b ann:a")}.final()
	if len(final) != 2 || string(final[0].Content) != "2" || string(final[1].Content) != "1" {
		t.Errorf("final changes = %+v", final)
	}
}
