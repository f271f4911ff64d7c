// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
)

// stage is a cluster with the server.
type stage struct{ *mirrortest.Stage }

// newStage starts a server that has the rights for mirroring, and no others, unless the options give it some.
func newStage(t *testing.T, options devcluster.Options) *stage {
	t.Helper()
	if options.Parts == nil {
		options.Parts = []string{"slipstream-server-mirrored", "slipstream-server-credentials"}
	}
	return &stage{mirrortest.NewStage(t, options)}
}

// refused applies manifests and returns why that was refused.
func (s *stage) refused(t *testing.T, as devcluster.Kubectl, manifests string) string {
	t.Helper()
	_, err := as.Feed(t.Context(), manifests, "apply", "-f", "-")
	if err == nil {
		t.Fatalf("applied, although it should be refused:\n%s", manifests)
	}
	return err.Error()
}

// mirror is a namespace of the stage whose destination has a repository of its own.
type mirror struct {
	*stage
	*mirrortest.Mirror
}

func (s *stage) newMirror(t *testing.T, namespace string, extra ...string) *mirror {
	t.Helper()
	return &mirror{stage: s, Mirror: s.NewMirror(t, namespace, extra...)}
}
