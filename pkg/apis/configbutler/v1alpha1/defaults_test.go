// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestDefaults(t *testing.T) {
	sameNamespace := &v1alpha1.AccessPolicy{
		NamespacedRules: v1alpha1.NamespacedRules{Mode: v1alpha1.AccessModeSameNamespace},
	}
	selected := &v1alpha1.AccessPolicy{
		NamespacedRules: v1alpha1.NamespacedRules{
			Mode:              v1alpha1.AccessModeFromSelector,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		},
		AllowClusterRules: true,
	}
	tests := []struct {
		name     string
		in, want runtime.Object
	}{
		{
			name: "a destination that says nothing",
			in:   &v1alpha1.GitDestination{},
			want: &v1alpha1.GitDestination{Spec: v1alpha1.GitDestinationSpec{
				AccessPolicy: sameNamespace,
				Granularity:  v1alpha1.GranularityPerAuthor,
				Secrets:      v1alpha1.SecretsEncrypt,
				Prune:        v1alpha1.PruneAlways,
			}},
		},
		{
			name: "a destination that says everything",
			in: &v1alpha1.GitDestination{Spec: v1alpha1.GitDestinationSpec{
				AccessPolicy: selected,
				Granularity:  v1alpha1.GranularityBatch,
				Secrets:      v1alpha1.SecretsOmit,
				Prune:        v1alpha1.PruneNever,
			}},
			want: &v1alpha1.GitDestination{Spec: v1alpha1.GitDestinationSpec{
				AccessPolicy: selected,
				Granularity:  v1alpha1.GranularityBatch,
				Secrets:      v1alpha1.SecretsOmit,
				Prune:        v1alpha1.PruneNever,
			}},
		},
		{
			name: "a repository that says nothing: bounds on pushes stay with the server",
			in:   &v1alpha1.GitRepoConfig{},
			want: &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{AccessPolicy: sameNamespace}},
		},
		{
			name: "an access policy without namespaced rules",
			in: &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{
				AccessPolicy: &v1alpha1.AccessPolicy{AllowClusterRules: true},
			}},
			want: &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{AccessPolicy: &v1alpha1.AccessPolicy{
				NamespacedRules:   v1alpha1.NamespacedRules{Mode: v1alpha1.AccessModeSameNamespace},
				AllowClusterRules: true,
			}}},
		},
		{
			name: "signing without a format",
			in: &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{
				AccessPolicy: selected,
				Commit:       &v1alpha1.CommitPolicy{Signing: &v1alpha1.CommitSigning{}},
			}},
			want: &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{
				AccessPolicy: selected,
				Commit: &v1alpha1.CommitPolicy{
					Signing: &v1alpha1.CommitSigning{Format: v1alpha1.SigningFormatSSH},
				},
			}},
		},
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.in.DeepCopyObject()
			scheme.Default(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("wrong defaults (-want +got):\n%s", diff)
			}
		})
	}
}
