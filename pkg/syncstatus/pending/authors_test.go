// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	syncstatuspending "github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

func TestChangedBy(t *testing.T) {
	alice := attribution.Actor{Username: "alice", Name: "Alice", Email: "a@example.com", Groups: []string{"staff"}, ImpersonatedBy: "ci"}
	want := v1alpha1.SourceAuthor{Username: "alice", Name: "Alice", Email: "a@example.com", ImpersonatedBy: "ci"}
	with := func(signal v1alpha1.AttributionSignal) v1alpha1.SourceAuthor { want.Signal = signal; return want }
	for _, test := range []struct {
		author attribution.Author
		want   v1alpha1.SourceAuthor
	}{
		{attribution.Author{Signal: attribution.Audit, Actor: alice}, with(v1alpha1.SignalAudit)},
		{attribution.Author{Signal: attribution.Admission, Actor: alice}, with(v1alpha1.SignalAdmission)},
		{attribution.Author{Signal: attribution.ManagedFields, Manager: "kubectl-edit"},
			v1alpha1.SourceAuthor{Signal: v1alpha1.SignalManagedFields, FieldManager: "kubectl-edit"}},
		{attribution.Author{Signal: attribution.Unknown}, v1alpha1.SourceAuthor{Signal: v1alpha1.SignalUnknown}},
		{attribution.Author{}, v1alpha1.SourceAuthor{Signal: v1alpha1.SignalUnknown}},
	} {
		test.want.Workloads = 1
		change := syncstatuspending.Change{
			Object: changed("shop", "web", 1).Object, Authors: []syncstatuspending.Contribution{{Author: test.author, Events: 3}},
		}
		got := syncstatuspending.ChangedBy([]syncstatuspending.Change{change},
			[]v1alpha1.ResourceSummary{{Type: "Deployment", Namespace: "shop", Name: "web"}})
		if len(got) != 1 || got[0] != test.want {
			t.Errorf("%+v is named %+v, want %+v", test.author, got, test.want)
		}
	}
}
