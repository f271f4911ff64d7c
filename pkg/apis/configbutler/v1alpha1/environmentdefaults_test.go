// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// environmentSpec returns the spec of an empty environment with its defaults.
func environmentSpec() v1alpha1.EnvironmentSpec {
	return v1alpha1.EnvironmentSpec{
		Type: v1alpha1.EnvironmentShared,
		Adapt: v1alpha1.Adaptation{
			Replicas: v1alpha1.ReplicasOne, CronJobs: v1alpha1.CronJobsSuspend, LoadBalancers: v1alpha1.LoadBalancersClusterIP,
			IngressHosts: v1alpha1.IngressHosts{Type: v1alpha1.IngressHostsOmit},
		},
		HistoryLimit:   ptr.To(int32(10)),
		DeletionPolicy: v1alpha1.DeletionPolicyDelete,
	}
}

// TestEnvironmentDefaults checks that defaults do not act on production: nothing is applied automatically, no CronJob
// runs, no host is copied.
func TestEnvironmentDefaults(t *testing.T) {
	adapted, wantAdapted := v1alpha1.EnvironmentSpec{}, environmentSpec()
	adapted.Adapt = v1alpha1.Adaptation{
		Replicas: v1alpha1.ReplicasAsSource, CronJobs: v1alpha1.CronJobsAsSource, LoadBalancers: v1alpha1.LoadBalancersAsSource,
		IngressHosts: v1alpha1.IngressHosts{Type: v1alpha1.IngressHostsTemplate, Template: "{host}"},
	}
	wantAdapted.Adapt = adapted.Adapt
	windows, wantWindows := v1alpha1.EnvironmentSpec{}, environmentSpec()
	windows.SyncWindows = []v1alpha1.SyncWindow{{Name: "a"}, {Name: "b", TimeZone: "Europe/Berlin"}}
	wantWindows.SyncWindows = []v1alpha1.SyncWindow{{Name: "a", TimeZone: "UTC"}, {Name: "b", TimeZone: "Europe/Berlin"}}
	environment := func(spec v1alpha1.EnvironmentSpec) *v1alpha1.Environment { return &v1alpha1.Environment{Spec: spec} }
	checkDefaults(t, []defaultsTest{
		{name: "an environment that says nothing", in: &v1alpha1.Environment{}, want: environment(environmentSpec())},
		{name: "an environment that is like production", in: environment(adapted), want: environment(wantAdapted)},
		{name: "windows", in: environment(windows), want: environment(wantWindows)},
		{
			name: "a request that says nothing",
			in:   &v1alpha1.SyncRequest{},
			want: &v1alpha1.SyncRequest{Spec: v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionAll}},
		},
		{
			name: "a request for one action",
			in:   &v1alpha1.SyncRequest{Spec: v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster}},
			want: &v1alpha1.SyncRequest{Spec: v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster}},
		},
	})
}
