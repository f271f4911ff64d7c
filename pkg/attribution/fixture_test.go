// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

const maxWait = 2 * time.Second

// fixture is a running Joiner in a synctest bubble.
type fixture struct {
	*Joiner
	t *testing.T

	mutex     sync.Mutex
	delivered []delivery
}

type delivery struct {
	event         Event
	author        Author
	submitted, at time.Time
}

// inBubble runs a test in a synctest bubble with a Joiner that runs until the end of the test.
func inBubble(t *testing.T, config Config, test func(t *testing.T, s *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if config.MaxWait == 0 {
			config.MaxWait = maxWait
		}
		s := &fixture{Joiner: NewJoiner(config), t: t}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		test(t, s)
		cancel()
		running.Wait()
	})
}

// submit submits an event as the router does.
func (s *fixture) submit(event Event) {
	s.t.Helper()
	s.Observe(event)
	submitted := time.Now()
	err := s.Submit(s.t.Context(), event, func(_ context.Context, author Author) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.delivered = append(s.delivered, delivery{event, author, submitted, time.Now()})
	})
	if err != nil {
		s.t.Error(err)
	}
}

// deliveries returns what has been delivered once all goroutines are blocked.
func (s *fixture) deliveries() []delivery {
	synctest.Wait()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.delivered
}

// pass advances the bubble's clock.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of a bubble
	synctest.Wait()
}

// wake makes sources active, with facts of the given lag.
func (s *fixture) wake(lag time.Duration, signals ...Signal) {
	for i := range minMeasurements {
		object := configMap("warm", fmt.Sprintf("warm-%d", i), strconv.Itoa(i+1))
		event := object.event(v1alpha1.OperationCreate, "warm")
		for _, signal := range signals {
			s.Add([]Fact{{ID: fmt.Sprintf("first-%d",
				i), Signal: signal, Operation: v1alpha1.OperationUpdate, Resource: "configmaps", Namespace: "warm", Name: "x"}}, false)
		}
		s.submit(event)
		pass(lag)
		for _, signal := range signals {
			fact := factOf("warm", signal, v1alpha1.OperationCreate, event)
			fact.Content = "warm"
			s.Add([]Fact{fact}, false)
		}
		pass(maxWait)
	}
	s.resetDeliveries()
}

// resetDeliveries drops the recorded deliveries.
func (s *fixture) resetDeliveries() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.delivered = nil
}

// built is an object under construction.
type built struct{ Object *unstructured.Unstructured }

func configMap(name, uid, version string) built {
	return built{&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"namespace": "shop", "name": name, "uid": uid, "resourceVersion": version,
			"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update", "time": time.Now().UTC().Format(time.RFC3339)}},
		},
	}}}
}

func (b built) writtenAt(at time.Time) built {
	entry := b.Object.Object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
	entry["time"] = at.UTC().Format(time.RFC3339)
	return b
}

func (b built) deletedAt(at time.Time, grace int64) built {
	metadata := b.Object.Object["metadata"].(map[string]any)
	metadata["deletionTimestamp"] = at.Add(time.Duration(grace) * time.Second).UTC().Format(time.RFC3339)
	metadata["deletionGracePeriodSeconds"] = grace
	return b
}

func (b built) with(value any, path ...string) built {
	if err := unstructured.SetNestedField(b.Object.Object, value, path...); err != nil {
		panic(err)
	}
	return b
}

func (b built) event(operation v1alpha1.Operation, content string) Event {
	return Event{Operation: operation, Resource: configMaps, Object: b.Object, Content: func() string { return content }}
}

// factOf returns a fact about a request at the current time that matches the event.
func factOf(user string, signal Signal, operation v1alpha1.Operation, event Event) Fact {
	fact := Fact{
		ID: fmt.Sprintf("%s %s %s %d", user, operation, event.Object.GetUID(), time.Now().UnixNano()), Signal: signal, Operation: operation,
		Group: event.Resource.Group, Resource: event.Resource.Resource,
		Namespace: event.Object.GetNamespace(), Name: event.Object.GetName(), UID: event.Object.GetUID(),
		Begun: time.Now(), Actor: Actor{Username: user},
	}
	if signal == Audit {
		fact.Ended = fact.Begun.Add(5 * time.Millisecond)
		if operation != v1alpha1.OperationDelete {
			fact.After = event.Object.GetResourceVersion()
		}
	}
	return fact
}
