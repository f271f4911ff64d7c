// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

// TestEnvironments plays scenes, one after the other, on one stage. Each has namespaces of its own, and leaves the server as it
// was: running, with the policy of the stage.
func TestEnvironments(t *testing.T) {
	s := newStage(t)
	for _, scene := range []struct {
		name string
		play func(*stage, *testing.T)
	}{
		{"an environment is a faithful and independent copy", (*stage).faithful},
		{"objects of every kind come, change and go", (*stage).everyKindGoes},
		{"routes of the Gateway API get hosts of their own", (*stage).routed},
		{"an application is complete once somebody has granted its rights", (*stage).rightful},
		{"nothing moves until somebody asks", (*stage).manual},
		{"what workloads refer to is prompted for where it is used", (*stage).depend},
		{"an automatic environment follows production", (*stage).automated},
		{"a shadow plans and records only", (*stage).shadowed},
		{"a closed window holds syncs back", (*stage).windowed},
		{"an environment goes back and forward", (*stage).pinned},
		{"a Branch asks about what both sides have changed", (*stage).branched},
		{"a diff says what the next sync does", (*stage).differed},
		{"what others made is left alone", (*stage).foreign},
		{"a refusal of the target has nothing written", (*stage).governed},
		{"environments have places of their own", (*stage).misplaced},
		{"a target that is deleted is rebuilt", (*stage).rebuilt},
		{"a sync that is interrupted is finished", (*stage).interrupted},
		{"asking for a sync takes the rights to do it", (*stage).entitled},
		{"without those rights nothing is done automatically", (*stage).withdrawn},
		{"environments come to their end", (*stage).lived},
	} {
		t.Run(scene.name, func(t *testing.T) { scene.play(s, t) })
	}
}

// TestUnwatched has a server that may not watch workloads in the whole cluster: it does not know whether those of environments run,
// and everything else goes on.
func TestUnwatched(t *testing.T) {
	s := newStageOf(t, devcluster.Options{
		Parts: []string{}, Denials: "whoever binds the other roles may leave out the one for the readiness of environments",
	})
	s.unwatched(t)
}
