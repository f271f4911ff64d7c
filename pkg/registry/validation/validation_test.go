// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// change is one thing done to a valid object: it stays valid, or one error is at path and says a few words.
type change[T any] struct {
	name string
	do   func(T)
	path string
	says string
}

func (c change[T]) check(t *testing.T, errs field.ErrorList) {
	t.Helper()
	if c.path == "" {
		if len(errs) > 0 {
			t.Errorf("want no error, got %v", errs)
		}
		return
	}
	if len(errs) != 1 {
		t.Fatalf("want one error, got %v", errs)
	}
	if errs[0].Field != c.path {
		t.Errorf("want an error at %s, got %v", c.path, errs[0])
	}
	if c.says == "" || !strings.Contains(errs[0].Error(), c.says) {
		t.Errorf("want an error that says %q, got %v", c.says, errs[0])
	}
}

// checkChanges applies each change to a fresh object, both as a new object and as an update of the unchanged one.
func checkChanges[T any](
	t *testing.T, valid func() T, create func(T) field.ErrorList, update func(changed, old T) field.ErrorList, changes []change[T],
) {
	t.Helper()
	for _, c := range append(changes, change[T]{name: "nothing", do: func(T) {}}) {
		t.Run(c.name, func(t *testing.T) {
			object := valid()
			c.do(object)
			c.check(t, create(object))
			c.check(t, update(object, valid()))
		})
	}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "team-a", ResourceVersion: "1"}
}

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func TestMetadata(t *testing.T) {
	longName := strings.Repeat("a", 64)
	tests := []struct {
		name string
		errs field.ErrorList
		path string
		says string
	}{
		{
			name: "a repository's name is a DNS subdomain",
			errs: validation.ValidateGitRepoConfig(with(repository(), func(c *configbutler.GitRepoConfig) { c.Name = "Upper" }),
				validation.Options{}),
			path: "metadata.name", says: "RFC 1123",
		},
		{
			name: "a repository has a namespace",
			errs: validation.ValidateGitRepoConfig(with(repository(), func(c *configbutler.GitRepoConfig) { c.Namespace = "" }),
				validation.Options{}),
			path: "metadata.namespace", says: "Required",
		},
		{
			name: "a destination's name fits a label",
			errs: validation.ValidateGitDestination(with(destination(), func(d *configbutler.GitDestination) { d.Name = longName })),
			path: "metadata.name", says: "at most 63",
		},
		{
			name: "a record's name fits a label",
			errs: validation.ValidateGitDestinationStatus(with(record(), func(r *configbutler.GitDestinationStatus) { r.Name = longName })),
			path: "metadata.name", says: "at most 63",
		},
		{
			name: "a rule's name may be longer",
			errs: validation.ValidateWatchRule(with(watchRule(), func(r *configbutler.WatchRule) { r.Name = longName })),
		},
		{
			name: "a cluster rule has no namespace",
			errs: validation.ValidateClusterWatchRule(with(clusterWatchRule(), func(r *configbutler.ClusterWatchRule) { r.Namespace = "team-a" })),
			path: "metadata.namespace", says: "not allowed",
		},
		{
			name: "a name stays",
			errs: validation.ValidateWatchRuleUpdate(with(watchRule(), func(r *configbutler.WatchRule) { r.Name = "other" }), watchRule()),
			path: "metadata.name", says: "immutable",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			change[struct{}]{path: test.path, says: test.says}.check(t, test.errs)
		})
	}
}

func with[T any](object T, do func(T)) T {
	do(object)
	return object
}

func TestStatusUpdates(t *testing.T) {
	wrong := []metav1.Condition{{Type: "Ready", Status: "Perhaps", Reason: "Succeeded", LastTransitionTime: metav1.Now()}}
	tests := []struct {
		name string
		errs field.ErrorList
		path string
		says string
	}{
		{
			name: "a repository's conditions",
			errs: validation.ValidateGitRepoConfigStatusUpdate(
				with(repository(), func(c *configbutler.GitRepoConfig) { c.Status.Conditions = wrong }), repository()),
			path: "status.conditions[0].status", says: "supported values",
		},
		{
			name: "a destination's generation",
			errs: validation.ValidateGitDestinationStateUpdate(
				with(destination(), func(d *configbutler.GitDestination) { d.Status.ObservedGeneration = -1 }), destination()),
			path: "status.observedGeneration", says: "greater than or equal to 0",
		},
		{
			name: "a rule's types",
			errs: validation.ValidateWatchRuleStatusUpdate(with(watchRule(), func(r *configbutler.WatchRule) {
				r.Status.MatchedResourceTypes = []configbutler.ResourceType{{Version: "v1"}}
			}), watchRule()),
			path: "status.matchedResourceTypes[0].resource", says: "deployments",
		},
		{
			name: "a cluster rule's types",
			errs: validation.ValidateClusterWatchRuleStatusUpdate(with(clusterWatchRule(), func(r *configbutler.ClusterWatchRule) {
				r.Status.MatchedResourceTypes = []configbutler.ResourceType{{Resource: "nodes"}}
			}), clusterWatchRule()),
			path: "status.matchedResourceTypes[0].version", says: "v1",
		},
		{
			name: "an invalid spec does not keep the status from being written",
			errs: validation.ValidateGitDestinationStateUpdate(with(destination(), func(d *configbutler.GitDestination) { d.Spec.Branch = "" }),
				destination()),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			change[struct{}]{path: test.path, says: test.says}.check(t, test.errs)
		})
	}
}
