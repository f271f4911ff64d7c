// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// failed is the number of consecutive failures from which a sink counts as failed. Fewer are normal when a server is busy or restarts.
const failed = 3

// sinkProblem returns why not every sink accepts what it is sent: the worst reason, with the messages of all.
func sinkProblem(p *v1alpha1.SyncPipeline, givenUp map[string]bool) conditions.Reason {
	var found []conditions.Reason
	for _, sink := range p.Status.Sinks {
		if problem := problemOf(sink, givenUp[sink.Name]); !problem.IsZero() {
			found = append(found, problem)
		}
	}
	if len(found) == 0 {
		return conditions.Reason{}
	}
	slices.SortStableFunc(found, func(a, b conditions.Reason) int { return cmp.Compare(rank(a.Code), rank(b.Code)) })
	messages := make([]string, len(found))
	for i, problem := range found {
		messages[i] = problem.Message
	}
	return conditions.Reason{Code: found[0].Code, Message: strings.Join(messages, "; ")}
}

// rank orders reason codes, the worst first.
func rank(code string) int {
	return slices.Index([]string{
		v1alpha1.ReasonDeliveryGivenUp, v1alpha1.ReasonDeliveryFailed, v1alpha1.ReasonDeliveryRejected, v1alpha1.ReasonDeliveryRetrying,
	}, code)
}

// problemOf returns why a sink does not accept what it is sent; zero if it does.
func problemOf(sink v1alpha1.PipelineSinkStatus, givenUp bool) conditions.Reason {
	last := cmp.Or(lastMessage(sink), "no reason is known")
	switch {
	case givenUp:
		return conditions.Reason{Code: v1alpha1.ReasonDeliveryGivenUp, Message: fmt.Sprintf(
			"Sink %s failed %s and rests; ask for a sync when it is well again: %s", sink.Name, times(sink.Failures), last)}
	case sink.Failures >= failed:
		return conditions.Reason{Code: v1alpha1.ReasonDeliveryFailed, Message: fmt.Sprintf(
			"Sink %s fails and is tried again by itself: %s", sink.Name, last)}
	case sink.Failures > 0:
		return conditions.Reason{Code: v1alpha1.ReasonDeliveryRetrying, Message: fmt.Sprintf("Sink %s is tried again: %s", sink.Name, last)}
	case sink.Rejected > 0:
		return conditions.Reason{Code: v1alpha1.ReasonDeliveryRejected, Message: fmt.Sprintf(
			"Sink %s refuses %d of the objects; put right what it says and ask for a sync: %s", sink.Name, sink.Rejected, last)}
	}
	return conditions.Reason{}
}

// lastMessage returns the last error of a sink, or else its last response.
func lastMessage(sink v1alpha1.PipelineSinkStatus) string {
	if sink.LastError == nil {
		return sink.LastAnswer
	}
	return sink.LastError.Message
}

func times(n int32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
