// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Pipeline returns the state of a pipeline at a time: what prevents it from sending, or else a failing or rejecting sink, or else what is
// being sent or waits, or else that it is up to date.
func Pipeline(p *v1alpha1.SyncPipeline, now time.Time) string {
	status := &p.Status
	switch {
	case p.DeletionTimestamp != nil:
		return "Deleting"
	case p.Spec.Suspend:
		return "Suspended"
	case status.ObservedGeneration == 0:
		return "Not looked at yet"
	}
	for _, sentence := range []string{
		heldPipeline(status), failingSink(status.Sinks, now), refusingSink(status.Sinks), running(status.CurrentRun),
	} {
		if sentence != "" {
			return sentence
		}
	}
	switch {
	case p.Generation != status.ObservedGeneration:
		return "Taking over a change of the spec"
	case status.Pending > 0:
		return grouped(status.Pending) + " waiting"
	case reasonOf(status) == v1alpha1.ReasonProgressing:
		return "Listing"
	}
	return "Up to date"
}

// heldPipeline returns why a pipeline cannot watch or send what its spec selects. It is empty if it can.
func heldPipeline(status *v1alpha1.SyncPipelineStatus) string {
	ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return ""
	}
	switch ready.Reason {
	case v1alpha1.ReasonSuspended, v1alpha1.ReasonPipelinesSuspended, v1alpha1.ReasonPermissionLost:
		return With("Held", ready.Message)
	case v1alpha1.ReasonWatchFailed, v1alpha1.ReasonDiscoveryFailed, v1alpha1.ReasonTypeNotFound, v1alpha1.ReasonNoMatchingTypes:
		return Line(ready.Message)
	}
	return ""
}

// failingSink returns the state of the sink with the most consecutive failures, and the names of other failing sinks.
func failingSink(sinks []v1alpha1.PipelineSinkStatus, now time.Time) string {
	var failing []string
	var worst *v1alpha1.PipelineSinkStatus
	for i := range sinks {
		if sink := &sinks[i]; sink.Failures > 0 {
			failing = append(failing, sink.Name)
			if worst == nil || sink.Failures > worst.Failures {
				worst = sink
			}
		}
	}
	if worst == nil {
		return ""
	}
	sentence := With(worst.Name, problemOf(worst)) + ", " + nextAttempt(worst, now)
	if len(failing) > 1 {
		others := slices.DeleteFunc(failing, func(name string) bool { return name == worst.Name })
		sentence += "; also failing: " + List(others)
	}
	return sentence
}

// problemOf returns the last error of a failing sink.
func problemOf(sink *v1alpha1.PipelineSinkStatus) string {
	if sink.LastError == nil {
		return "failed"
	}
	return Line(sink.LastError.Message)
}

// nextAttempt returns when a failing sink is retried, if it is.
func nextAttempt(sink *v1alpha1.PipelineSinkStatus, now time.Time) string {
	switch next := sink.NextAttemptTime; {
	case next == nil:
		return "given up after " + Count(int(sink.Failures), "attempt")
	case next.After(now):
		return "next attempt in " + duration.HumanDuration(next.Sub(now).Round(time.Second))
	}
	return "being tried again"
}

// refusingSink returns the state of the sink that has rejected the most objects.
func refusingSink(sinks []v1alpha1.PipelineSinkStatus) string {
	var worst *v1alpha1.PipelineSinkStatus
	for i := range sinks {
		if sink := &sinks[i]; sink.Rejected > 0 && (worst == nil || sink.Rejected > worst.Rejected) {
			worst = sink
		}
	}
	if worst == nil {
		return ""
	}
	sentence := fmt.Sprintf("%s refuses %s of the objects", worst.Name, grouped(worst.Rejected))
	if worst.LastError != nil {
		sentence = With(sentence, worst.LastError.Message)
	}
	return sentence
}

// running returns the progress of a run.
func running(run *v1alpha1.PipelineRun) string {
	switch {
	case run == nil:
		return ""
	case run.Phase == v1alpha1.PipelineRunSending:
		return fmt.Sprintf("Sending %s of %s", grouped(run.Done), grouped(run.Total))
	}
	return "Listing"
}

// PipelineRun returns what a completed run has sent to each sink, and their responses.
func PipelineRun(run *v1alpha1.PipelineRun) string {
	if run.Total == 0 {
		return "The run has finished: every sink knew what there is"
	}
	answers := make([]string, len(run.Sinks))
	for i := range run.Sinks {
		answers[i] = sinkResult(&run.Sinks[i])
	}
	return With("The run has finished", strings.Join(answers, "; "))
}

// sinkResult returns the result of a run for one sink.
func sinkResult(sink *v1alpha1.PipelineRunSink) string {
	if sink.Total == 0 {
		return sink.Name + " knew what there is"
	}
	sentence := fmt.Sprintf("%s took %s", sink.Name, grouped(sink.Done-sink.Rejected))
	if sink.Rejected > 0 {
		sentence += " and refused " + grouped(sink.Rejected)
	}
	if sink.Answer == "" {
		return sentence
	}
	return fmt.Sprintf("%s (%s)", sentence, Line(sink.Answer))
}

// grouped formats a number with commas between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func reasonOf(status *v1alpha1.SyncPipelineStatus) string {
	if ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}
