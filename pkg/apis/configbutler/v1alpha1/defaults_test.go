// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// defaultsTest is an object as written and as served with defaults.
type defaultsTest struct {
	name     string
	in, want runtime.Object
}

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
	tests := []defaultsTest{
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
			name: "a delivery by pull request that says nothing else",
			in: &v1alpha1.GitDestination{Spec: v1alpha1.GitDestinationSpec{Delivery: &v1alpha1.Delivery{
				PullRequest: &v1alpha1.PullRequestDelivery{},
			}}},
			want: &v1alpha1.GitDestination{Spec: v1alpha1.GitDestinationSpec{
				Delivery: &v1alpha1.Delivery{
					Type:        v1alpha1.DeliveryPush,
					PullRequest: &v1alpha1.PullRequestDelivery{BranchPrefix: "slipstream/", CloseWhenEqual: new(true)},
				},
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
			want: &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{AccessPolicy: sameNamespace, Provider: v1alpha1.ProviderGeneric}},
		},
		{
			name: "an access policy without namespaced rules",
			in: &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{
				AccessPolicy: &v1alpha1.AccessPolicy{AllowClusterRules: true},
			}},
			want: &v1alpha1.GitRepoConfig{Spec: v1alpha1.GitRepoConfigSpec{Provider: v1alpha1.ProviderGeneric, AccessPolicy: &v1alpha1.AccessPolicy{
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
				Provider:     v1alpha1.ProviderGeneric,
				AccessPolicy: selected,
				Commit: &v1alpha1.CommitPolicy{
					Signing: &v1alpha1.CommitSigning{Format: v1alpha1.SigningFormatSSH},
				},
			}},
		},
	}
	checkDefaults(t, append(tests, catalogDefaults(&v1alpha1.CatalogAccessPolicy{NamespacedRules: sameNamespace.NamespacedRules})...))
}

func checkDefaults(t *testing.T, tests []defaultsTest) {
	t.Helper()
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

func catalogDefaults(sameNamespace *v1alpha1.CatalogAccessPolicy) []defaultsTest {
	catalog := func(ignore []v1alpha1.IgnoreRule) *v1alpha1.AppCatalog {
		return &v1alpha1.AppCatalog{Spec: v1alpha1.AppCatalogSpec{
			Ignore: ignore, HistoryLimit: ptr.To(int32(10)), Secrets: v1alpha1.CatalogSecretsRequester, AccessPolicy: sameNamespace,
		}}
	}
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	status := []v1alpha1.IgnoreRule{{Fields: []string{"/metadata/annotations/a"}}}
	patched, wantPatched := catalog(status), catalog(status)
	patched.Spec.Patches = []v1alpha1.Patch{{}, {Type: v1alpha1.PatchMerge}}
	wantPatched.Spec.Patches = []v1alpha1.Patch{{Type: v1alpha1.PatchStrategicMerge}, {Type: v1alpha1.PatchMerge}}
	return []defaultsTest{
		{
			name: "a catalog that says nothing",
			in:   &v1alpha1.AppCatalog{},
			want: catalog([]v1alpha1.IgnoreRule{{Fields: []string{"/spec/replicas"}}}),
		},
		{
			name: "a catalog that ignores nothing",
			in:   &v1alpha1.AppCatalog{Spec: v1alpha1.AppCatalogSpec{Ignore: []v1alpha1.IgnoreRule{}}},
			want: catalog([]v1alpha1.IgnoreRule{}),
		},
		{name: "a catalog with patches", in: patched, want: wantPatched},
		{
			name: "a policy that says nothing",
			in:   &v1alpha1.SyncPolicy{},
			want: &v1alpha1.SyncPolicy{Spec: v1alpha1.SyncPolicySpec{
				BatchWindow: duration(30 * time.Second), MaxSyncsPerMinute: ptr.To(int32(60)),
				Retry: v1alpha1.RetryPolicy{
					MaxAttempts: ptr.To(int32(5)), Backoff: duration(10 * time.Second), MaxBackoff: duration(10 * time.Minute),
				},
				Retention: v1alpha1.Retention{Days: ptr.To(int32(90)), KeepPerSubject: ptr.To(int32(10)), MaxPerSubject: ptr.To(int32(1000))},
				Changes: v1alpha1.ChangeRetention{
					TTL: duration(720 * time.Hour), MaxTotal: ptr.To(int32(200_000)), MaxPerObject: ptr.To(int32(1000)),
				},
				Reminders: v1alpha1.Reminders{
					After: []metav1.Duration{{Duration: 24 * time.Hour}, {Duration: 72 * time.Hour}}, Every: duration(168 * time.Hour),
				},
			}},
		},
		{
			name: "a policy that keeps nothing",
			in:   &v1alpha1.SyncPolicyList{Items: []v1alpha1.SyncPolicy{keeping(0)}},
			want: &v1alpha1.SyncPolicyList{Items: []v1alpha1.SyncPolicy{keeping(0)}},
		},
	}
}

// keeping returns a policy without unset fields.
func keeping(records int32) v1alpha1.SyncPolicy {
	minute := &metav1.Duration{Duration: time.Minute}
	one := ptr.To(int32(1))
	return v1alpha1.SyncPolicy{Spec: v1alpha1.SyncPolicySpec{
		BatchWindow: minute, MaxSyncsPerMinute: one,
		Retry:     v1alpha1.RetryPolicy{MaxAttempts: one, Backoff: minute, MaxBackoff: minute},
		Retention: v1alpha1.Retention{Days: one, KeepPerSubject: &records, MaxPerSubject: one},
		Changes:   v1alpha1.ChangeRetention{TTL: minute, MaxTotal: one, MaxPerObject: one},
		Reminders: v1alpha1.Reminders{After: []metav1.Duration{}, Every: &metav1.Duration{}},
	}}
}
