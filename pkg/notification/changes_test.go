// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// change returns a Change of a ConfigMap of the namespace teams.
func change(name string) *v1alpha1.Change {
	return &v1alpha1.Change{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "change-of-" + name, UID: types.UID("uid-of-change-of-" + name)},
		Spec: v1alpha1.ChangeSpec{
			Object:    v1alpha1.ChangedObject{APIVersion: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "teams", Name: name},
			Operation: v1alpha1.ChangeUpdate, Time: metav1.NewMicroTime(testkit.Noon),
		},
	}
}

// TestChangesStoredTogether checks that all Changes are notified that have the same resourceVersion, also after those that no sink selects.
func TestChangesStoredTogether(t *testing.T) {
	s := newFixture(t, newSink(func(spec *v1alpha1.NotificationSinkSpec) { spec.Resources = []string{"configmaps"} }))
	s.start()
	// The first of these Changes may precede the watch.
	probes := 0
	s.clock.Eventually("the sink collects Changes", func() error {
		if len(s.inbox.received()) > 0 {
			return nil
		}
		s.api.Put(change(fmt.Sprintf("probe-%d", probes)))
		probes++
		return fmt.Errorf("%d Changes were not notified", probes)
	})
	other := change("other")
	other.Spec.Object.Resource = "secrets"
	s.api.PutTogether(other, change("a"), change("b"), change("c"))
	s.api.Put(change("d"))
	s.clock.Eventually("all are notified", func() error {
		all := strings.Split(strings.Join(s.inbox.lines(), ", "), ", ")
		for _, name := range []string{"a", "b", "c", "d"} {
			if !slices.Contains(all, "Change teams/"+name) {
				return fmt.Errorf("%s is not among %q", name, all)
			}
		}
		return nil
	})
}
