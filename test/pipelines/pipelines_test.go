// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"testing"

	"github.com/configbutler/slipstream/test/people"
)

// play is a scene.
type play struct {
	name  string
	scene func(*stage, *testing.T)
}

// TestPipelines plays scenes on one stage: first those that can be played at the same time, then those that end the server, need all
// of it, or change what all pipelines share.
func TestPipelines(t *testing.T) {
	s := newStage(t, people.Pipelines)
	resync := s.beginResync(t) // Its time comes while others play.
	t.Run("side by side", func(t *testing.T) {
		for _, p := range []play{
			{"what changes is told, in every format", (*stage).told},
			{"changes go out by themselves", (*stage).flowed},
			{"an object that changes and changes is told of once", (*stage).settled},
			{"batches have their size", (*stage).batched},
			{"one version of a resource is told of", (*stage).versioned},
			{"what is chosen is told of", (*stage).chosen},
			{"a receiver that fails gets everything, in order", (*stage).recovered},
			{"what a receiver refuses is shown", (*stage).rejected},
			{"a sink that has failed too often rests", (*stage).rested},
			{"what may have been lost is told again", (*stage).repeated},
			{"receivers are where users may send to", (*stage).unreachable},
			{"requests have a scope, and can be watched", (*stage).requested},
			{"credentials come from Secrets", (*stage).authenticated},
			{"certificates are checked", (*stage).certified},
			{"Jobs get batches", (*stage).employed},
			{"a pipeline can be suspended", (*stage).suspended},
			{"a cluster can be polled", (*stage).polled},
			{"another receiver gets everything", (*stage).redirected},
			{"pipelines do not know each other", (*stage).doubled},
			{"a pipeline is owned by several", (*stage).shared},
			{"a pipeline says how things are", (*stage).described},
			{"pipelines take the rights to read what they tell of", (*stage).entitled},
			{"secrets stay where they are", (*stage).discreet},
		} {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.scene(s, t)
			})
		}
	})
	t.Run("everything is told again from time to time", resync.comes)
	for _, p := range []play{
		{"without those rights nothing is told", (*stage).withdrawn},
		{"the SyncPolicy stops all pipelines", (*stage).governed},
		{"what goes while there is no server is told", (*stage).restarted},
		{"a full run outlives the server", (*stage).interrupted},
		{"many definitions travel in calls that can be taken", (*stage).crowded},
	} {
		t.Run(p.name, func(t *testing.T) { p.scene(s, t) })
	}
}

// TestNarrowed has a server that may read the types that its only pipeline tells of, and no others.
func TestNarrowed(t *testing.T) {
	newStage(t).narrowed(t)
}
