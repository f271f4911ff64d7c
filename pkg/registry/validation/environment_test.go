// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

type envt = *configbutler.Environment

func environment() *configbutler.Environment {
	return &configbutler.Environment{
		ObjectMeta: meta("alice"),
		Spec: configbutler.EnvironmentSpec{
			CatalogRef:      configbutler.ObjectReference{Name: "shop", Namespace: "catalogs"},
			TargetNamespace: "alice",
			Type:            configbutler.EnvironmentShared,
			Patches: []configbutler.Patch{{
				Target: configbutler.PatchTarget{Kind: "Deployment"}, Type: configbutler.PatchMerge, Patch: "spec: {replicas: 2}",
			}},
			Adapt: configbutler.Adaptation{
				Replicas: configbutler.ReplicasOne, CronJobs: configbutler.CronJobsSuspend, LoadBalancers: configbutler.LoadBalancersClusterIP,
				IngressHosts: configbutler.IngressHosts{Type: configbutler.IngressHostsTemplate, Template: "{label}.{environment}.dev.example.com"},
			},
			HistoryLimit:   ptr.To(int32(10)),
			SyncWindows:    []configbutler.SyncWindow{syncWindow("nightly"), syncWindow("noon")},
			DeletionPolicy: configbutler.DeletionPolicyDelete,
		},
		Status: configbutler.EnvironmentStatus{
			AppliedRevision: 5, LatestRevision: 7,
			History: []configbutler.CatalogRevision{{Revision: 5}, {Revision: 7}, {Revision: 4}},
		},
	}
}

func syncWindow(name string) configbutler.SyncWindow {
	return configbutler.SyncWindow{
		Name: name, Kind: configbutler.SyncWindowAllow, Schedule: "0 22 * * 1-5",
		Duration: metav1.Duration{Duration: 8 * time.Hour}, TimeZone: "Europe/Berlin",
	}
}

func branch() *configbutler.Environment {
	e := environment()
	e.Spec.Type = configbutler.EnvironmentBranch
	e.Spec.BranchWorkloads = []configbutler.WorkloadReference{{Kind: configbutler.WorkloadDeployment, Name: "api"}}
	e.Spec.BaseEnvironmentRef = &configbutler.EnvironmentReference{Name: "staging"}
	return e
}

// included is an object that cannot be included.
func included(name, apiVersion, kind, path, says string) change[envt] {
	return change[envt]{name: name, path: "spec.include[0]." + path, says: says, do: func(e envt) {
		e.Spec.Include = []configbutler.IncludedObject{{APIVersion: apiVersion, Kind: kind, Name: "a"}}
	}}
}

func TestEnvironment(t *testing.T) {
	checkChanges(t, environment, validation.ValidateEnvironment, validation.ValidateEnvironmentUpdate, []change[envt]{
		{
			name: "everything that works by itself",
			do:   func(e envt) { e.Spec.AutoSync, e.Spec.Shadow, e.Spec.ServiceAccountName = true, true, "syncer" },
		},
		{name: "no windows and no patches", do: func(e envt) { e.Spec.SyncWindows, e.Spec.Patches = nil, nil }},
		{name: "what the application reads by itself", do: func(e envt) {
			e.Spec.Include = []configbutler.IncludedObject{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "settings"}, {APIVersion: "v1", Kind: "Secret", Name: "settings"},
				{APIVersion: "example.com/v1beta1", Kind: "Widget", Name: "settings"},
				{APIVersion: "notopenshift.io/v1", Kind: "Widget", Name: "settings"},
			}
		}},
		included("a workload", "apps/v1", "Deployment", "apiVersion", "such as example.com/v1, in no API group of Kubernetes"),
		included("what grants rights", "rbac.authorization.k8s.io/v1", "Role", "apiVersion", "in no API group of Kubernetes"),
		included("an Environment", "configbutler.ai/v1alpha1", "Environment", "apiVersion", "or this server"),
		included("what grants rights in OpenShift", "authorization.openshift.io/v1", "RoleBinding", "apiVersion", "OpenShift (openshift.io)"),
		included("what is OpenShift's", "openshift.io/v1", "Project", "apiVersion", "OpenShift (openshift.io)"),
		included("what grants rights in Rancher", "management.cattle.io/v3", "ProjectRoleTemplateBinding", "apiVersion", "Rancher (cattle.io)"),
		included("what is Rancher's", "cattle.io/v1", "Project", "apiVersion", "Rancher (cattle.io)"),
		included("no version", "example.com", "Widget", "apiVersion", "must be v1, for a ConfigMap or a Secret"),
		included("a Pod", "v1", "Pod", "kind", `"ConfigMap", "Secret"`),
		included("no kind", "example.com/v1", "widgets", "kind", "must be a kind such as Certificate"),
		{name: "an object twice", do: func(e envt) {
			e.Spec.Include = []configbutler.IncludedObject{
				{APIVersion: "example.com/v1", Kind: "Widget", Name: "a"}, {APIVersion: "example.com/v2", Kind: "Widget", Name: "a"},
			}
		}, path: "spec.include[1]", says: "Duplicate"},
		{name: "an object without a name", do: func(e envt) {
			e.Spec.Include = []configbutler.IncludedObject{{APIVersion: "v1", Kind: "Secret"}}
		}, path: "spec.include[0].name", says: "Required"},
		{
			name: "more than can be included", do: func(e envt) { e.Spec.Include = make([]configbutler.IncludedObject, 101) },
			path: "spec.include", says: "must have at most 100",
		},
		{name: "a time to live", do: func(e envt) { e.Spec.TTL = &metav1.Duration{Duration: 72 * time.Hour} }},
		{name: "what stays", do: func(e envt) { e.Spec.DeletionPolicy = configbutler.DeletionPolicyOrphan }},
		{name: "no Ingresses", do: func(e envt) {
			e.Spec.Adapt.IngressHosts = configbutler.IngressHosts{Type: configbutler.IngressHostsOmit}
		}},
		{
			name: "workloads of a branch", do: func(e envt) { e.Spec.BranchWorkloads = branch().Spec.BranchWorkloads },
			path: "spec.branchWorkloads", says: "must be absent unless type is Branch",
		},
		{
			name: "replicas of no kind", do: func(e envt) { e.Spec.Adapt.Replicas = "Two" },
			path: "spec.adapt.replicas", says: `"One", "AsSource"`,
		},
		{
			name: "CronJobs of no kind", do: func(e envt) { e.Spec.Adapt.CronJobs = "" },
			path: "spec.adapt.cronJobs", says: `"Suspend", "AsSource"`,
		},
		{
			name: "load balancers of no kind", do: func(e envt) { e.Spec.Adapt.LoadBalancers = "NodePort" },
			path: "spec.adapt.loadBalancers", says: `"ClusterIP", "AsSource"`,
		},
		{
			name: "hosts of no kind", do: func(e envt) { e.Spec.Adapt.IngressHosts = configbutler.IngressHosts{Type: "Keep"} },
			path: "spec.adapt.ingressHosts.type", says: `"Template", "Omit", "AsSource"`,
		},
		{
			name: "no template", do: func(e envt) { e.Spec.Adapt.IngressHosts.Template = "" },
			path: "spec.adapt.ingressHosts.template", says: "type Template needs it",
		},
		{
			name: "an unused template", do: func(e envt) { e.Spec.Adapt.IngressHosts.Type = configbutler.IngressHostsOmit },
			path: "spec.adapt.ingressHosts.template", says: "must be absent unless type is Template",
		},
		{
			name: "a template with an unknown variable", do: func(e envt) { e.Spec.Adapt.IngressHosts.Template = "{name}.dev" },
			path: "spec.adapt.ingressHosts.template", says: "{host}, {label}, {environment}, {namespace}, not {name}",
		},
		{
			name: "a patch that cannot be read", do: func(e envt) { e.Spec.Patches[0].Patch = "[" },
			path: "spec.patches[0].patch", says: "YAML",
		},
		{
			name: "no history", do: func(e envt) { e.Spec.HistoryLimit = ptr.To(int32(0)) },
			path: "spec.historyLimit", says: "at least 1 and at most 100",
		},
		{
			name: "a window without a name", do: func(e envt) { e.Spec.SyncWindows[1].Name = "" },
			path: "spec.syncWindows[1].name", says: "RFC 1123",
		},
		{
			name: "a window twice", do: func(e envt) { e.Spec.SyncWindows[1].Name = "nightly" },
			path: "spec.syncWindows[1].name", says: "Duplicate",
		},
		{
			name: "a window of no kind", do: func(e envt) { e.Spec.SyncWindows[0].Kind = "Block" },
			path: "spec.syncWindows[0].kind", says: `"Allow", "Deny"`,
		},
		{
			name: "a window that never opens", do: func(e envt) { e.Spec.SyncWindows[0].Schedule = "0 0 31 4 *" },
			path: "spec.syncWindows[0].schedule", says: "no month has that day",
		},
		{
			name: "a window that closes at once", do: func(e envt) { e.Spec.SyncWindows[0].Duration.Duration = 0 },
			path: "spec.syncWindows[0].duration", says: "at least 1m and at most 744h",
		},
		{
			name: "a window nowhere", do: func(e envt) { e.Spec.SyncWindows[0].TimeZone = "CEST" },
			path: "spec.syncWindows[0].timeZone", says: "such as Europe/Berlin",
		},
		{
			name: "too many windows", do: func(e envt) {
				for i := range 49 {
					e.Spec.SyncWindows = append(e.Spec.SyncWindows, syncWindow(fmt.Sprint("w", i)))
				}
			},
			path: "spec.syncWindows", says: "at most 50",
		},
		{
			name: "no time to live", do: func(e envt) { e.Spec.TTL = &metav1.Duration{} },
			path: "spec.ttl", says: "at least 1m and at most 8760h",
		},
		{
			name: "a life without end", do: func(e envt) { e.Spec.TTL = &metav1.Duration{Duration: 8761 * time.Hour} },
			path: "spec.ttl", says: "at least 1m and at most 8760h",
		},
		{
			name: "an unknown end", do: func(e envt) { e.Spec.DeletionPolicy = "Keep" },
			path: "spec.deletionPolicy", says: `"Delete", "Orphan"`,
		},
		{
			name: "an account that cannot be", do: func(e envt) { e.Spec.ServiceAccountName = "Syncer" },
			path: "spec.serviceAccountName", says: "RFC 1123",
		},
	})
}

func TestBranch(t *testing.T) {
	checkChanges(t, branch, validation.ValidateEnvironment, validation.ValidateEnvironmentUpdate, []change[envt]{
		{name: "more workloads", do: func(e envt) {
			e.Spec.BranchWorkloads = append(e.Spec.BranchWorkloads, configbutler.WorkloadReference{Kind: configbutler.WorkloadJob, Name: "api"})
		}},
		{
			name: "no workloads", do: func(e envt) { e.Spec.BranchWorkloads = nil },
			path: "spec.branchWorkloads", says: "type Branch needs the workloads",
		},
		{
			name: "a workload twice", do: func(e envt) { e.Spec.BranchWorkloads = append(e.Spec.BranchWorkloads, e.Spec.BranchWorkloads[0]) },
			path: "spec.branchWorkloads[1]", says: "Duplicate",
		},
		{
			name: "a workload that no catalog can hold", do: func(e envt) { e.Spec.BranchWorkloads[0].Name = strings.Repeat("a", 250) },
			path: "spec.branchWorkloads[0].name", says: "longer than 253 characters",
		},
		{
			name: "a kind that is no workload", do: func(e envt) { e.Spec.BranchWorkloads[0].Kind = "Pod" },
			path: "spec.branchWorkloads[0].kind", says: `"Deployment"`,
		},
	})
}

// What decides about other objects can only be given when an environment is made.
func TestNewEnvironment(t *testing.T) {
	tests := []change[envt]{
		{name: "a branch", do: func(e envt) { e.Spec = branch().Spec }},
		{name: "a branch by itself", do: func(e envt) { e.Spec = branch().Spec; e.Spec.BaseEnvironmentRef = nil }},
		{name: "a catalog beside it", do: func(e envt) { e.Spec.CatalogRef.Namespace = "" }},
		{name: "its own namespace", do: func(e envt) { e.Spec.TargetNamespace = e.Namespace }},
		{name: "a name with a dot", do: func(e envt) { e.Name = "a.b" }, path: "metadata.name", says: "must not contain dots"},
		{
			name: "a name too long for labels", do: func(e envt) { e.Name = strings.Repeat("a", 64) },
			path: "metadata.name", says: "no more than 63",
		},
		{
			name: "no catalog", do: func(e envt) { e.Spec.CatalogRef.Name = "" },
			path: "spec.catalogRef.name", says: "name the object that is meant",
		},
		{
			name: "no target", do: func(e envt) { e.Spec.TargetNamespace = "" },
			path: "spec.targetNamespace", says: "name the namespace that is built",
		},
		{
			name: "a target that cannot be", do: func(e envt) { e.Spec.TargetNamespace = "a.b" },
			path: "spec.targetNamespace", says: "must not contain dots",
		},
		{
			name: "Kubernetes", do: func(e envt) { e.Spec.TargetNamespace = "kube-system" },
			path: "spec.targetNamespace", says: "must not begin with kube-",
		},
		{name: "an unknown type", do: func(e envt) { e.Spec.Type = "Copy" }, path: "spec.type", says: `"Shared", "Branch"`},
		{
			name: "a base of what is no branch", do: func(e envt) { e.Spec.BaseEnvironmentRef = branch().Spec.BaseEnvironmentRef },
			path: "spec.baseEnvironmentRef", says: "must be absent unless type is Branch",
		},
		{
			name: "a branch of itself", do: func(e envt) { e.Spec = branch().Spec; e.Spec.BaseEnvironmentRef.Name = e.Name },
			path: "spec.baseEnvironmentRef.name", says: "must be another environment",
		},
		{
			name: "a base without a name", do: func(e envt) { e.Spec = branch().Spec; e.Spec.BaseEnvironmentRef.Name = "" },
			path: "spec.baseEnvironmentRef.name", says: "name the environment",
		},
		{
			name: "a pin", do: func(e envt) { e.Spec.PinnedRevision = ptr.To(int64(5)) },
			path: "spec.pinnedRevision", says: "must be absent from a new environment",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := environment()
			test.do(e)
			test.check(t, validation.ValidateEnvironment(e))
		})
	}
}

func TestWhatAnEnvironmentIsStays(t *testing.T) {
	tests := []change[envt]{
		{name: "the catalog", do: func(e envt) { e.Spec.CatalogRef.Name = "other" }, path: "spec.catalogRef", says: "must stay catalogs/shop"},
		{
			name: "the catalog's namespace", do: func(e envt) { e.Spec.CatalogRef.Namespace = "" },
			path: "spec.catalogRef", says: "must stay catalogs/shop",
		},
		{name: "the target", do: func(e envt) { e.Spec.TargetNamespace = "bob" }, path: "spec.targetNamespace", says: "must stay alice"},
		{
			name: "the type", do: func(e envt) { e.Spec.Type = configbutler.EnvironmentShared; e.Spec.BranchWorkloads = nil },
			path: "spec.type", says: "must stay Branch",
		},
		{
			name: "the base", do: func(e envt) { e.Spec.BaseEnvironmentRef.Name = "other" },
			path: "spec.baseEnvironmentRef", says: "must stay staging",
		},
		{
			name: "that there is a base", do: func(e envt) { e.Spec.BaseEnvironmentRef = nil },
			path: "spec.baseEnvironmentRef", says: "must stay staging",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old, e := branch(), branch()
			if test.name == "the type" {
				old.Spec.BaseEnvironmentRef, e.Spec.BaseEnvironmentRef = nil, nil
			}
			test.do(e)
			test.check(t, validation.ValidateEnvironmentUpdate(e, old))
		})
	}
	t.Run("the same catalog, written otherwise", func(t *testing.T) {
		old, e := environment(), environment()
		old.Spec.CatalogRef.Namespace, e.Spec.CatalogRef.Namespace = "", e.Namespace
		change[envt]{}.check(t, validation.ValidateEnvironmentUpdate(e, old))
	})
}

func TestEnvironmentPin(t *testing.T) {
	tests := map[int64]change[envt]{
		5: {}, 4: {}, 7: {},
		6: {path: "spec.pinnedRevision", says: `supported values: "5", "7", "4"`},
	}
	for revision, want := range tests {
		e := environment()
		e.Spec.PinnedRevision = &revision
		want.check(t, validation.ValidateEnvironmentUpdate(e, environment()))

		pinned := environment()
		pinned.Spec.PinnedRevision, pinned.Status.History = ptr.To(revision), nil
		change[envt]{}.check(t, validation.ValidateEnvironmentUpdate(e, pinned))
	}
}
