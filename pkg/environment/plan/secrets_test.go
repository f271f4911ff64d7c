// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/annotation/annotationtest"
)

// TestAnnotationsOfCopiedSecrets checks that annotations with the values of the source are not copied if patches
// replace the values of a Secret.
func TestAnnotationsOfCopiedSecrets(t *testing.T) {
	harmless := map[string]string{"helm.sh/resource-policy": "keep"}
	for name, tt := range map[string]struct {
		patch string
		want  map[string]string
	}{
		"as in the source": {"", map[string]string{"example.com/made-up": "hunter2", "helm.sh/resource-policy": "keep"}},
		"another value":    {"{stringData: {password: other}}", harmless},
		"no value":         {"{data: {password: null}}", harmless},
		"no data":          {"{data: null}", harmless},
		"a value more":     {"{data: {more: b3RoZXI=}}", harmless},
		"a label": {
			"{metadata: {labels: {a: b}}}", map[string]string{"example.com/made-up": "hunter2", "helm.sh/resource-policy": "keep"},
		},
		"annotations of the patch": {
			"{data: {password: b3RoZXI=}, metadata: {annotations: {example.com/made-up: other, example.com/more: hunter2}}}",
			map[string]string{"example.com/made-up": "other", "example.com/more": "hunter2", "helm.sh/resource-policy": "keep"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := object(t, database)
			annotations := map[string]string{"example.com/made-up": "hunter2"}
			for _, key := range annotationtest.Configurations() {
				annotations[key] = "hunter2"
			}
			maps.Copy(annotations, harmless)
			source.SetAnnotations(annotations)
			s := newFixture(t, object(t, web), object(t, appConfig), source)
			check := func() {
				t.Helper()
				s.sync()
				if diff := cmp.Diff(tt.want, s.target.objects[plan.KeyOf(source)].GetAnnotations()); diff != "" {
					t.Errorf("annotations (-want +got):\n%s", diff)
				}
			}
			if tt.patch != "" {
				s.Environment.Spec.Patches = []v1alpha1.Patch{
					{Target: v1alpha1.PatchTarget{Kind: "Secret"}, Type: v1alpha1.PatchMerge, Patch: tt.patch},
				}
			}
			check()
			if tt.patch == "" {
				return
			}
			// The patch is added after a sync, and removes what was copied.
			s = newFixture(t, object(t, web), object(t, appConfig), source)
			s.sync()
			s.Environment.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTarget{Kind: "Secret"}, Type: v1alpha1.PatchMerge, Patch: tt.patch}}
			check()
		})
	}
}
