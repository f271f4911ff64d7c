// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// failed is the number of consecutive failures from which a sink counts as failed. Fewer are normal when a server is busy or restarts.
const failed = 3

// sinks returns why not every sink accepts what it is sent, the worst reason first.
func sinks(p *v1alpha1.SyncPipeline, givenUp map[string]bool) Why {
	var found []Why
	for _, sink := range p.Status.Sinks {
		if why := of(sink, givenUp[sink.Name]); !why.ok() {
			found = append(found, why)
		}
	}
	if len(found) == 0 {
		return Why{}
	}
	slices.SortStableFunc(found, func(a, b Why) int { return cmp.Compare(rank(a.Reason), rank(b.Reason)) })
	messages := make([]string, len(found))
	for i, why := range found {
		messages[i] = why.Message
	}
	return Why{found[0].Reason, strings.Join(messages, "; ")}
}

// rank orders reasons, the worst first.
func rank(reason string) int {
	return slices.Index([]string{
		v1alpha1.ReasonDeliveryGivenUp, v1alpha1.ReasonDeliveryFailed, v1alpha1.ReasonDeliveryRejected, v1alpha1.ReasonDeliveryRetrying,
	}, reason)
}

// of returns why a sink does not accept what it is sent.
func of(sink v1alpha1.PipelineSinkStatus, givenUp bool) Why {
	why := cmp.Or(lastMessage(sink), "no reason is known")
	switch {
	case givenUp:
		return Why{v1alpha1.ReasonDeliveryGivenUp, fmt.Sprintf("Sink %s failed %s and rests; ask for a sync when it is well again: %s",
			sink.Name, times(sink.Failures), why)}
	case sink.Failures >= failed:
		return Why{v1alpha1.ReasonDeliveryFailed, fmt.Sprintf("Sink %s fails and is tried again by itself: %s", sink.Name, why)}
	case sink.Failures > 0:
		return Why{v1alpha1.ReasonDeliveryRetrying, fmt.Sprintf("Sink %s is tried again: %s", sink.Name, why)}
	case sink.Rejected > 0:
		return Why{v1alpha1.ReasonDeliveryRejected, fmt.Sprintf(
			"Sink %s refuses %d of the objects; put right what it says and ask for a sync: %s",
			sink.Name, sink.Rejected, why)}
	}
	return Why{}
}

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
