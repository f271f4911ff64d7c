// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// What validation rejects for its size needs the permission to read everything, and is not resolved: the resolver is nil.
func TestTooLargeRulesNeedEverything(t *testing.T) {
	names := make([]string, 200_000)
	for i := range names {
		names[i] = fmt.Sprintf("r%d", i)
	}
	for name, rules := range map[string][]v1alpha1.ResourceRule{
		"rules":   make([]v1alpha1.ResourceRule, v1alpha1.MaxRules+1),
		"entries": {{Resources: names}},
		"types":   {{APIGroups: names[:30], Resources: names[:40]}},
	} {
		t.Run(name, func(t *testing.T) {
			rule := &v1alpha1.WatchRule{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: v1alpha1.WatchRuleSpec{Rules: rules}}
			clusterRule := &v1alpha1.ClusterWatchRule{}
			for _, each := range rules {
				clusterRule.Spec.Rules = append(clusterRule.Spec.Rules, v1alpha1.ClusterResourceRule{ResourceRule: each})
			}
			permissions, _ := access.OfRule(nil, rule)
			wide, _ := access.OfClusterRule(nil, clusterRule)
			checkNeeds(t, permissions, "list and watch *.* in the namespace shop")
			checkNeeds(t, wide, "list and watch *.* in the whole cluster")
		})
	}
}

func TestTooLargePipelinesNeedEverything(t *testing.T) {
	no := false
	pipeline := &v1alpha1.SyncPipeline{}
	pipeline.Spec.CustomResourceDefinitions.Enabled = &no
	for i := range v1alpha1.MaxSourceNames + 1 {
		pipeline.Spec.Instances.Resources = append(pipeline.Spec.Instances.Resources, fmt.Sprintf("r%d.example.com", i))
	}
	permissions, _ := access.OfPipeline(nil, pipeline)
	checkNeeds(t, permissions, "list *.* in the whole cluster")
}

func checkNeeds(t *testing.T, permissions []access.Permission, want ...string) {
	t.Helper()
	var got []string
	for _, p := range permissions {
		got = append(got, p.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}
