// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// records is what an archive in Git shows.
const records = "list syncstatuses.configbutler.ai"

// archivingIn is a policy with an archive in a destination of namespace shop.
func archivingIn(destination string) *configbutler.SyncPolicy {
	return &configbutler.SyncPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: configbutler.SyncPolicySpec{Retention: configbutler.Retention{Archive: &configbutler.Archive{
			Type: configbutler.ArchiveGitDestination, DestinationRef: &configbutler.NamespacedObjectReference{Namespace: "shop", Name: destination},
		}}},
	}
}

func TestWhatIsArchivedInGitMustBeReadable(t *testing.T) {
	files := archivingIn("")
	files.Spec.Retention.Archive = &configbutler.Archive{Type: configbutler.ArchiveFile}
	longer := archivingIn("main")
	longer.Spec.BatchWindow = &metav1.Duration{Duration: 1}
	tests := []struct {
		name     string
		obj, old runtime.Object
		asks     []string
	}{
		{name: "an archive in Git", obj: archivingIn("main"), asks: []string{records}},
		{name: "in Git now", obj: archivingIn("main"), old: files, asks: []string{records}},
		{name: "another place in Git", obj: archivingIn("mine"), old: archivingIn("main"), asks: []string{records}},
		{name: "in Git as before", obj: longer, old: archivingIn("main")},
		{name: "files", obj: files, old: archivingIn("main")},
		{name: "no archive", obj: &configbutler.SyncPolicy{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			operation := admission.Create
			if tt.old != nil {
				operation = admission.Update
			}
			asked := request(tt.obj, tt.old, operation, "")
			caller := &rbac{allowed: tt.asks}
			if err := plugin(t, caller, cluster()).Validate(t.Context(), asked, nil); err != nil {
				t.Errorf("refused although everything that it needs is allowed: %v", err)
			}
			if diff := cmp.Diff(tt.asks, caller.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			err := plugin(t, &rbac{}, cluster()).Validate(t.Context(), asked, nil)
			if needed := len(tt.asks) > 0; needed != apierrors.IsForbidden(err) || !needed && err != nil {
				t.Errorf("without any right: %v", err)
			}
		})
	}
}
