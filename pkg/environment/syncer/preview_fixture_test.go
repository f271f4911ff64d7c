// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
)

// previewFixture is a fixture whose catalog offers web alone, and a Previewer.
type previewFixture struct {
	*fixture
	previewer *syncer.Previewer
}

func newPreviewFixture(t *testing.T) *previewFixture {
	t.Helper()
	s := &previewFixture{newFixture(t), nil}
	s.previewer = syncer.NewPreviewer(s.runner())
	s.offer(web)
	return s
}

// sync syncs the environment, and records the applied revision in its status.
func (s *previewFixture) sync() {
	s.Helper()
	s.environment.Status.AppliedRevision = s.fixture.sync().Revision
	s.cluster.TakeRequests()
}

// wrote returns the requests since the last call that write.
func (s *previewFixture) wrote() []string {
	return slices.DeleteFunc(s.cluster.TakeRequests(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.HasPrefix(request, "dry ")
	})
}

// changeLines returns the changes of a plan as lines.
func changeLines(shown *v1alpha1.SyncPlan) []string {
	lines := []string{}
	for _, change := range shown.Changes {
		line := fmt.Sprintf("%s %s %s", change.ChangeType, change.Kind, change.Name)
		for _, field := range change.Fields {
			line += fmt.Sprintf(" %s %s -> %s", field.Field, ptr.Deref(field.Before, "?"), ptr.Deref(field.After, "?"))
		}
		lines = append(lines, strings.TrimSuffix(line+": "+change.Refusal, ": "))
	}
	return lines
}
