// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/controller/events"
)

func TestEventsAreWrittenToTheCluster(t *testing.T) {
	for name, test := range map[string]struct{ message, want string }{
		"as it is":          {"two workloads changed", "two workloads changed"},
		"nothing hidden":    {"Conflict with \u202eeve\u200b", `Conflict with \u202eeve\u200b`},
		"cut where it fits": {strings.Repeat("x", 1023) + "ü", strings.Repeat("x", 1023)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			written := make(chan *corev1.Event, 1)
			cluster := fake.NewClientset()
			cluster.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
				event := action.(clienttesting.CreateAction).GetObject().(*corev1.Event)
				written <- event
				return true, event, nil
			})
			events.NewRecorder(ctx, cluster).Event(destination("a"), corev1.EventTypeNormal, "Changed", test.message)
			select {
			case event := <-written:
				if event.Message != test.want || event.InvolvedObject.Kind != "GitDestination" || event.Namespace != "teams" ||
					event.Source.Component != "slipstream" {
					t.Errorf("got %+v", event)
				}
			case <-ctx.Done():
				t.Fatal("no Event is written")
			}
		})
	}
}
