// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/pipeline/condition"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	ready, delivering    = v1alpha1.ConditionReady, v1alpha1.ConditionSinksDelivering
	reconciling, stalled = v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
)

// usual are the conditions of a pipeline that delivers.
var usual = map[string]string{ready: "True Succeeded", delivering: "True Delivering"}

// pipeline returns a pipeline with the given sinks.
func pipeline(sinks ...v1alpha1.PipelineSinkStatus) *v1alpha1.SyncPipeline {
	p := &v1alpha1.SyncPipeline{
		ObjectMeta: metav1.ObjectMeta{Name: "inventory", Generation: 3},
		Status:     v1alpha1.SyncPipelineStatus{ObservedGeneration: 3, Sinks: sinks},
	}
	for _, sink := range sinks {
		p.Spec.Sinks = append(p.Spec.Sinks, v1alpha1.PipelineSink{Name: sink.Name})
	}
	return p
}

func well(name string) v1alpha1.PipelineSinkStatus {
	return v1alpha1.PipelineSinkStatus{Name: name, Delivered: 12, LastAnswer: "200 OK"}
}

func failing(name string, failures int32) v1alpha1.PipelineSinkStatus {
	return v1alpha1.PipelineSinkStatus{Name: name, Failures: failures, LastError: &v1alpha1.SyncError{
		Reason: v1alpha1.ReasonDeliveryFailed, Message: "503 Service Unavailable",
	}}
}

func refusing(name string) v1alpha1.PipelineSinkStatus {
	return v1alpha1.PipelineSinkStatus{Name: name, Rejected: 2, LastError: &v1alpha1.SyncError{
		Reason: v1alpha1.ReasonDeliveryRejected, Message: "400 Bad Request",
	}}
}

// TestSet checks the conditions that differ from usual, and the message of SinksDelivering.
func TestSet(t *testing.T) {
	for name, tt := range map[string]struct {
		of      *v1alpha1.SyncPipeline
		facts   condition.Facts
		want    map[string]string
		message string
	}{
		"as usual": {of: pipeline(well("search")), facts: condition.Facts{Listed: true}, message: "The sink takes what it is sent"},
		"two sinks": {
			of: pipeline(well("search"), well("audit")), facts: condition.Facts{Listed: true}, message: "All 2 sinks take what they are sent",
		},
		"nothing sent yet": {
			of:    pipeline(well("search"), v1alpha1.PipelineSinkStatus{Name: "audit"}),
			facts: condition.Facts{Listed: true},
			want:  map[string]string{delivering: "Unknown NothingSent"}, message: "Nothing has been sent yet to audit",
		},
		"new": {
			of:   pipeline(well("search")),
			want: map[string]string{ready: "False Progressing", reconciling: "True Progressing"}, message: "The sink takes what it is sent",
		},
		"suspended": {
			of:    pipeline(well("search")),
			facts: condition.Facts{Held: conditions.Reason{Code: v1alpha1.ReasonSuspended, Message: "spec.suspend is set"}},
			want:  map[string]string{ready: "False Suspended", delivering: "False Suspended"}, message: "spec.suspend is set",
		},
		"not permitted any more": {
			of:      pipeline(well("search")),
			facts:   condition.Facts{Held: conditions.Reason{Code: v1alpha1.ReasonPermissionLost, Message: `user "eve" may not list secrets`}},
			want:    map[string]string{ready: "False PermissionLost", delivering: "False PermissionLost", stalled: "True PermissionLost"},
			message: `user "eve" may not list secrets`,
		},
		"a type cannot be listed": {
			of: pipeline(well("search")), facts: condition.Facts{WatchFailures: []string{"widgets.shop.io cannot be listed: forbidden"}},
			want: map[string]string{ready: "False WatchFailed"}, message: "The sink takes what it is sent",
		},
		"cannot be carried out": {
			of: pipeline(well("search")), facts: condition.Facts{Failure: "the store is full", WatchFailures: []string{"a"}, Listed: true},
			want: map[string]string{ready: "False Progressing", reconciling: "True Progressing"}, message: "The sink takes what it is sent",
		},
		"failed once": {
			of: pipeline(well("audit"), failing("search", 1)), facts: condition.Facts{Listed: true},
			want: map[string]string{delivering: "False DeliveryRetrying"}, message: "Sink search is tried again: 503 Service Unavailable",
		},
		"fails": {
			of: pipeline(well("audit"), failing("search", 3)), facts: condition.Facts{Listed: true},
			want:    map[string]string{ready: "False DeliveryFailed", delivering: "False DeliveryFailed"},
			message: "Sink search fails and is tried again by itself: 503 Service Unavailable",
		},
		"rests": {
			of: pipeline(failing("search", 5)), facts: condition.Facts{Listed: true, GivenUp: map[string]bool{"search": true}},
			want:    map[string]string{ready: "False DeliveryGivenUp", delivering: "False DeliveryGivenUp", stalled: "True DeliveryGivenUp"},
			message: "Sink search failed 5 times and rests; ask for a sync when it is well again: 503 Service Unavailable",
		},
		"refuses": {
			of: pipeline(refusing("search")), facts: condition.Facts{Listed: true},
			want:    map[string]string{ready: "False DeliveryRejected", delivering: "False DeliveryRejected", stalled: "True DeliveryRejected"},
			message: "Sink search refuses 2 of the objects; put right what it says and ask for a sync: 400 Bad Request",
		},
		"one is tried again, one refuses, one fails": {
			of: pipeline(failing("a", 1), refusing("b"), failing("c", 4)), facts: condition.Facts{Listed: true},
			want: map[string]string{ready: "False DeliveryFailed", delivering: "False DeliveryFailed"},
			message: "Sink c fails and is tried again by itself: 503 Service Unavailable; " +
				"Sink b refuses 2 of the objects; put right what it says and ask for a sync: 400 Bad Request; " +
				"Sink a is tried again: 503 Service Unavailable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			condition.Set(tt.of, tt.facts, noon)
			want := maps.Clone(usual)
			maps.Copy(want, tt.want)
			if diff := cmp.Diff(want, conditionsOf(t, tt.of)); diff != "" {
				t.Errorf("wrong conditions (-want +got):\n%s", diff)
			}
			if got := meta.FindStatusCondition(tt.of.Status.Conditions, delivering).Message; got != tt.message {
				t.Errorf("message of SinksDelivering = %q", got)
			}
		})
	}
}

// conditionsOf returns the status and the reason of each condition. It fails the test if one lacks a field or has another generation.
func conditionsOf(t *testing.T, p *v1alpha1.SyncPipeline) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range p.Status.Conditions {
		out[c.Type] = string(c.Status) + " " + c.Reason
		if c.ObservedGeneration != 3 || c.LastTransitionTime.IsZero() || c.Message == "" {
			t.Errorf("incomplete condition %+v", c)
		}
	}
	return out
}

// TestSetAgain checks that solved problems are removed, and that unchanged conditions keep their time.
func TestSetAgain(t *testing.T) {
	p := pipeline(refusing("search"))
	condition.Set(p, condition.Facts{Listed: true}, noon)
	p.Status.Sinks = []v1alpha1.PipelineSinkStatus{well("search")}
	condition.Set(p, condition.Facts{Listed: true}, noon.Add(time.Hour))
	condition.Set(p, condition.Facts{Listed: true}, noon.Add(2*time.Hour))
	if diff := cmp.Diff(usual, conditionsOf(t, p)); diff != "" {
		t.Errorf("wrong conditions (-want +got):\n%s", diff)
	}
	if at := meta.FindStatusCondition(p.Status.Conditions, ready).LastTransitionTime.UTC(); !at.Equal(noon.Add(time.Hour)) {
		t.Errorf("transition time of Ready = %v", at)
	}
}

func TestMessagesFit(t *testing.T) {
	p := pipeline(well("search"))
	condition.Set(p, condition.Facts{WatchFailures: []string{"a\u202eb"}}, noon)
	if got := meta.FindStatusCondition(p.Status.Conditions, ready).Message; !strings.Contains(got, `a\u202eb`) {
		t.Errorf("message = %q", got)
	}
	condition.Set(p, condition.Facts{WatchFailures: []string{strings.Repeat("ä", 40_000)}}, noon)
	if got := meta.FindStatusCondition(p.Status.Conditions, ready).Message; len(got) > 32768 || len(got) < 32000 {
		t.Errorf("message has %d bytes", len(got))
	}
}
