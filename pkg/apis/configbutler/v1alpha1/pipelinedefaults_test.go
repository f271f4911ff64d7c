// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestPipelineDefaults(t *testing.T) {
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	retry := v1alpha1.PipelineRetry{
		MaxAttempts: ptr.To(int32(0)), Backoff: duration(time.Second), MaxBackoff: duration(5 * time.Minute),
	}
	checkDefaults(t, []defaultsTest{
		{
			name: "a pipeline that says as little as it can",
			in: &v1alpha1.SyncPipeline{Spec: v1alpha1.SyncPipelineSpec{Sinks: []v1alpha1.PipelineSink{
				{HTTP: &v1alpha1.HTTPSink{Format: v1alpha1.PipelineFormatDotAI}},
				{HTTP: &v1alpha1.HTTPSink{Format: v1alpha1.PipelineFormatCloudEvents}},
				{Job: &v1alpha1.JobSink{}},
			}}},
			want: &v1alpha1.SyncPipeline{Spec: v1alpha1.SyncPipelineSpec{
				CustomResourceDefinitions: v1alpha1.DefinitionSource{Enabled: ptr.To(true)},
				Instances: v1alpha1.InstanceSource{Enabled: ptr.To(true), Exclude: []string{
					"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpoints",
					"endpointslices.discovery.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
				}},
				Mode: v1alpha1.PipelineModeWatch, PollInterval: duration(5 * time.Minute), Debounce: duration(10 * time.Second),
				Batch:          v1alpha1.PipelineBatch{MaxItems: ptr.To(int32(50)), MaxWait: duration(5 * time.Second)},
				ResyncInterval: duration(time.Hour),
				Sinks: []v1alpha1.PipelineSink{
					{Retry: retry, HTTP: &v1alpha1.HTTPSink{
						Format: v1alpha1.PipelineFormatDotAI, Collection: "capabilities", Timeout: duration(30 * time.Second),
					}},
					{Retry: retry, HTTP: &v1alpha1.HTTPSink{
						Format: v1alpha1.PipelineFormatCloudEvents, Timeout: duration(30 * time.Second),
					}},
					{Retry: retry, Job: &v1alpha1.JobSink{
						ServiceAccountName: "default", ConcurrencyPolicy: v1alpha1.PipelineConcurrencyForbid,
					}},
				},
			}},
		},
		{
			name: "a pipeline with explicitly empty values",
			in:   &v1alpha1.SyncPipeline{Spec: explicitlyEmpty()},
			want: &v1alpha1.SyncPipeline{Spec: explicitlyEmpty()},
		},
		{
			name: "a request that says nothing",
			in:   &v1alpha1.PipelineSync{},
			want: &v1alpha1.PipelineSync{Spec: v1alpha1.PipelineSyncSpec{Scope: v1alpha1.PipelineScopeAll}},
		},
	})
}

// explicitlyEmpty returns a spec whose values are all explicitly empty.
func explicitlyEmpty() v1alpha1.SyncPipelineSpec {
	none := &metav1.Duration{}
	return v1alpha1.SyncPipelineSpec{
		CustomResourceDefinitions: v1alpha1.DefinitionSource{Enabled: ptr.To(false)},
		Instances:                 v1alpha1.InstanceSource{Enabled: ptr.To(false), Exclude: []string{}},
		Mode:                      v1alpha1.PipelineModePoll, PollInterval: none, Debounce: none, ResyncInterval: none,
		Batch: v1alpha1.PipelineBatch{MaxItems: ptr.To(int32(0)), MaxWait: none},
	}
}

// TestAnEmptyListOfTypesLeftOutStaysEmpty checks that an empty list is preserved. It differs from a missing list, which
// gets the default.
func TestAnEmptyListOfTypesLeftOutStaysEmpty(t *testing.T) {
	for _, exclude := range [][]string{nil, {}} {
		text, err := json.Marshal(v1alpha1.InstanceSource{Exclude: exclude})
		if err != nil {
			t.Fatal(err)
		}
		var read v1alpha1.InstanceSource
		if err := json.Unmarshal(text, &read); err != nil || (read.Exclude == nil) != (exclude == nil) {
			t.Errorf("%v became %v as JSON, %v", exclude, read.Exclude, err)
		}
	}
}
