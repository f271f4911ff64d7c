// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

const jobTemplate = `{"metadata":{"labels":{"app":"scan"}},"spec":{"backoffLimit":2,"template":{"spec":{"restartPolicy":"Never",
"containers":[{"name":"scan","image":"example.com/scan:1"}]}}}}`

// syncPipeline has a sink of each kind, in this order: DotAI, CloudEvents, Job. What it does not say has its default.
func syncPipeline() *configbutler.SyncPipeline {
	said := &v1alpha1.SyncPipeline{
		ObjectMeta: metav1.ObjectMeta{Name: "knowledge", ResourceVersion: "1"},
		Spec: v1alpha1.SyncPipelineSpec{Sinks: []v1alpha1.PipelineSink{
			{Name: "assistant", HTTP: &v1alpha1.HTTPSink{
				URL: "https://dot-ai.example.com/base/", Format: v1alpha1.PipelineFormatDotAI,
				SecretRef: &v1alpha1.NamespacedObjectReference{Namespace: "ai", Name: "token"},
			}},
			{Name: "inventory", HTTP: &v1alpha1.HTTPSink{URL: "http://inventory.ai.svc:8080", Format: v1alpha1.PipelineFormatCloudEvents}},
			{Name: "scan", Job: &v1alpha1.JobSink{Namespace: "ai", Template: runtime.RawExtension{Raw: []byte(jobTemplate)}}},
		}},
	}
	v1alpha1.SetObjectDefaults_SyncPipeline(said)
	pipeline := &configbutler.SyncPipeline{}
	if err := v1alpha1.Convert_v1alpha1_SyncPipeline_To_configbutler_SyncPipeline(said, pipeline, nil); err != nil {
		panic(err)
	}
	return pipeline
}

type pipe = *configbutler.SyncPipeline

func checkPipelines(t *testing.T, changes []change[pipe]) {
	t.Helper()
	checkChanges(t, syncPipeline, validation.ValidateSyncPipeline, validation.ValidateSyncPipelineUpdate, changes)
}

func TestSyncPipelineSources(t *testing.T) {
	include := func(names ...string) func(pipe) {
		return func(p pipe) { p.Spec.CustomResourceDefinitions.Include = names }
	}
	resources := func(names ...string) func(pipe) { return func(p pipe) { p.Spec.Instances.Resources = names } }
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf("a%d", i)
	}
	checkPipelines(t, []change[pipe]{
		{name: "only definitions", do: func(p pipe) { p.Spec.Instances.Enabled = ptr.To(false) }},
		{name: "only instances", do: func(p pipe) { p.Spec.CustomResourceDefinitions.Enabled = ptr.To(false) }},
		{
			name: "definitions by name, by group and by plural",
			do:   include("certificates.cert-manager.io", "*.cert-manager.io", "widgets.*", "*store*.example.com"),
		},
		{name: "all definitions", do: include("*")},
		{name: "types with and without a group", do: resources("services", "deployments.apps")},
		{name: "all types", do: resources("*")},
		{name: "no type left out", do: func(p pipe) { p.Spec.Instances.Exclude, p.Spec.Sinks = []string{}, p.Spec.Sinks[:2] }},
		{
			name: "nothing to send", do: func(p pipe) {
				p.Spec.Instances.Enabled, p.Spec.CustomResourceDefinitions.Enabled = ptr.To(false), ptr.To(false)
			},
			path: "spec.instances.enabled", says: "must be true while customResourceDefinitions.enabled is false",
		},
		{
			name: "a definition without a group", do: include("certificates"),
			path: "spec.customResourceDefinitions.include[0]", says: "such as certificates.cert-manager.io",
		},
		{
			name: "a definition in capitals", do: include("a.example.com", "*.Example.com"),
			path: "spec.customResourceDefinitions.include[1]", says: "* stands for any characters",
		},
		{
			name: "an empty definition", do: include(""),
			path: "spec.customResourceDefinitions.include[0]", says: "such as certificates.cert-manager.io",
		},
		{
			name: "a definition twice", do: include("*.example.com", "*.example.com"),
			path: "spec.customResourceDefinitions.include[1]", says: "Duplicate",
		},
		{
			name: "a definition beside all", do: include("*", "*.example.com"),
			path: "spec.customResourceDefinitions.include", says: "must not list anything beside *",
		},
		{
			name: "a wrong definition left out", do: func(p pipe) { p.Spec.CustomResourceDefinitions.Exclude = []string{"a b.c"} },
			path: "spec.customResourceDefinitions.exclude[0]", says: "such as certificates.cert-manager.io",
		},
		{
			name: "a kind instead of a plural", do: resources("Deployment"),
			path: "spec.instances.resources[0]", says: "plural in lower case such as services, or plural.group",
		},
		{name: "a subresource", do: resources("pods/log"), path: "spec.instances.resources[0]", says: "or * for every type"},
		{name: "a glob of types", do: resources("*.apps"), path: "spec.instances.resources[0]", says: "or * for every type"},
		{name: "a type beside all", do: resources("pods", "*"), path: "spec.instances.resources", says: "beside *"},
		{name: "a type twice", do: resources("pods", "pods"), path: "spec.instances.resources[1]", says: "Duplicate"},
		{name: "too many types", do: resources(many...), path: "spec.instances.resources", says: "at most 1000"},
		{
			name: "every type left out", do: func(p pipe) { p.Spec.Instances.Exclude, p.Spec.Sinks = []string{"*"}, p.Spec.Sinks[:2] },
			path: "spec.instances.exclude[0]", says: "plural.group such as deployments.apps",
		},
	})
}

// Each Job makes Events. A pipeline that starts Jobs of Events never comes to rest.
func TestJobsOfEvents(t *testing.T) {
	leaving := func(excluded []string, chosen ...string) func(pipe) {
		return func(p pipe) { p.Spec.Instances.Exclude, p.Spec.Instances.Resources = excluded, chosen }
	}
	const path, says = "spec.instances.exclude", "must have events while a sink has job"
	checkPipelines(t, []change[pipe]{
		{name: "events left out", do: leaving([]string{"events"})},
		{name: "events left out that are named", do: leaving([]string{"events"}, "events", "events.events.k8s.io")},
		{name: "one of the two left out that is named", do: leaving([]string{"events.events.k8s.io"}, "events.events.k8s.io", "pods")},
		{name: "other types", do: leaving([]string{}, "pods", "events.example.com")},
		{name: "no instances", do: func(p pipe) { p.Spec.Instances = configbutler.InstanceSource{Enabled: ptr.To(false)} }},
		{name: "nothing left out", do: leaving([]string{}), path: path, says: says},
		{name: "nothing left out of all", do: leaving([]string{}, "*"), path: path, says: says},
		{name: "one of the two left out", do: leaving([]string{"events.events.k8s.io"}), path: path, says: says},
		{name: "events by name", do: leaving([]string{"events.events.k8s.io"}, "events"), path: path, says: says},
		{name: "events by name and group", do: leaving([]string{}, "events.events.k8s.io"), path: path, says: says},
	})
}

func TestSyncPipelineTimes(t *testing.T) {
	checkPipelines(t, []change[pipe]{
		{name: "no debounce and no wait", do: func(p pipe) { p.Spec.Debounce, p.Spec.Batch.MaxWait = lasting(0), lasting(0) }},
		{name: "no resync", do: func(p pipe) { p.Spec.ResyncInterval = lasting(0) }},
		{name: "polling", do: func(p pipe) {
			p.Spec.Mode, p.Spec.PollInterval = configbutler.PipelineModePoll, lasting(10*time.Second)
		}},
		{name: "suspended", do: func(p pipe) { p.Spec.Suspend = true }},
		{name: "an unknown mode", do: func(p pipe) { p.Spec.Mode = "Push" }, path: "spec.mode", says: `"Watch", "Poll"`},
		{
			name: "polling all the time", do: func(p pipe) { p.Spec.PollInterval = lasting(time.Second) },
			path: "spec.pollInterval", says: "at least 10s and at most 24h",
		},
		{
			name: "a debounce below zero", do: func(p pipe) { p.Spec.Debounce = lasting(-time.Second) },
			path: "spec.debounce", says: "at least 0s and at most 10m",
		},
		{
			name: "a debounce that is too long", do: func(p pipe) { p.Spec.Debounce = lasting(11 * time.Minute) },
			path: "spec.debounce", says: "at least 0s and at most 10m",
		},
		{
			name: "empty batches", do: func(p pipe) { p.Spec.Batch.MaxItems = ptr.To(int32(0)) },
			path: "spec.batch.maxItems", says: "at least 1 and at most 1000",
		},
		{
			name: "a batch that waits too long", do: func(p pipe) { p.Spec.Batch.MaxWait = lasting(6 * time.Minute) },
			path: "spec.batch.maxWait", says: "at least 0s and at most 5m",
		},
		{
			name: "a resync all the time", do: func(p pipe) { p.Spec.ResyncInterval = lasting(time.Second) },
			path: "spec.resyncInterval", says: "0s for never, or at least 1m and at most 720h",
		},
		{
			name: "a resync once a year", do: func(p pipe) { p.Spec.ResyncInterval = lasting(365 * 24 * time.Hour) },
			path: "spec.resyncInterval", says: "0s for never, or at least 1m and at most 720h",
		},
	})
}

func TestSyncPipelineMetadata(t *testing.T) {
	for _, test := range []struct {
		name, path, says string
		do               func(pipe)
	}{
		{"a name with a dot", "metadata.name", "must not contain dots", func(p pipe) { p.Name = "a.b" }},
		{"a name that fits no label", "metadata.name", "no more than 63", func(p pipe) { p.Name = strings.Repeat("a", 64) }},
		{"a namespace", "metadata.namespace", "not allowed", func(p pipe) { p.Namespace = "team-a" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			change[pipe]{path: test.path, says: test.says}.check(t, validation.ValidateSyncPipeline(with(syncPipeline(), test.do)))
		})
	}
}

func TestPipelineSync(t *testing.T) {
	for _, test := range []struct {
		name, path, says string
		request          configbutler.PipelineSync
		spec             configbutler.SyncPipelineSpec
	}{
		{
			name:    "everything",
			request: configbutler.PipelineSync{Spec: configbutler.PipelineSyncSpec{Scope: configbutler.PipelineScopeAll, Full: true}},
		},
		{
			name:    "everything there is",
			request: configbutler.PipelineSync{Spec: configbutler.PipelineSyncSpec{Scope: configbutler.PipelineScopeAll}},
			spec:    configbutler.SyncPipelineSpec{Instances: configbutler.InstanceSource{Enabled: ptr.To(false)}},
		},
		{
			name: "another pipeline", path: "metadata.name", says: "must be knowledge, the object in the path",
			request: configbutler.PipelineSync{
				ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: configbutler.PipelineSyncSpec{Scope: configbutler.PipelineScopeAll},
			},
		},
		{
			name: "an unknown scope", path: "spec.scope", says: `"All", "CustomResourceDefinitions", "Instances"`,
			request: configbutler.PipelineSync{Spec: configbutler.PipelineSyncSpec{Scope: "CRDs"}},
		},
		{
			name: "definitions that are off", path: "spec.scope", says: "must be Instances or All",
			request: configbutler.PipelineSync{Spec: configbutler.PipelineSyncSpec{Scope: configbutler.PipelineScopeDefinitions}},
			spec:    configbutler.SyncPipelineSpec{CustomResourceDefinitions: configbutler.DefinitionSource{Enabled: ptr.To(false)}},
		},
		{
			name: "instances that are off", path: "spec.scope", says: "must be CustomResourceDefinitions or All",
			request: configbutler.PipelineSync{Spec: configbutler.PipelineSyncSpec{Scope: configbutler.PipelineScopeInstances}},
			spec:    configbutler.SyncPipelineSpec{Instances: configbutler.InstanceSource{Enabled: ptr.To(false)}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			errs := validation.ValidatePipelineSync(&test.request, "knowledge")
			errs = append(errs, validation.ValidatePipelineSyncSource(&test.request, &test.spec)...)
			change[pipe]{path: test.path, says: test.says}.check(t, errs)
		})
	}
}
