// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
)

// recorder collects Events.
type recorder []string

func (r *recorder) Event(object runtime.Object, eventType, reason, message string) {
	of := object.(*corev1.ObjectReference)
	*r = append(*r, fmt.Sprintf("%s %s %s %s/%s: %s", eventType, reason, of.Kind, of.Namespace, of.Name, message))
}

// Each notification is an Event of its subject.
func TestEvents(t *testing.T) {
	f := newFixture(t)
	var recorded recorder
	f.events, f.sink.Spec.Event = &recorded, &v1alpha1.EventSink{}
	f.expect("", delivery.Result{Outcome: delivery.Delivered, Message: "recorded 1 Event"})
	m := about(v1alpha1.NotifyFailed, v1alpha1.NotifyBypass)
	if got := f.deliver(m, ""); got.Outcome != delivery.Delivered || len(recorded) != 3 {
		t.Fatalf("got %+v, %q", got, recorded)
	}
	for i, event := range recorded[1:] {
		n := m.Notifications[i]
		want := fmt.Sprintf("Warning %s %s %s/%s: ", n.Event, n.Subject.Kind, n.Subject.Namespace, n.Subject.Name)
		if !strings.HasPrefix(event, want) {
			t.Errorf("event = %q, want %q", event, want)
		}
	}
}

// What is rendered is what is sent.
func TestRender(t *testing.T) {
	m := about(v1alpha1.NotifyConflicted)
	for name, start := range fixtures() {
		t.Run(name, func(t *testing.T) {
			f, receiver := start(t)
			rendered, err := delivery.Render(&f.sink.Spec, m)
			if err != nil {
				t.Fatal(err)
			}
			f.deliver(m, "")
			if sent := string(receiver.Requests()[0].Body); rendered.Body != sent || rendered.ContentType != "application/json" {
				t.Errorf("rendered %s: %s\nsent %s", rendered.ContentType, rendered.Body, sent)
			}
			if rendered.Title == "" || rendered.Text == "" {
				t.Errorf("title = %q, text = %q", rendered.Title, rendered.Text)
			}
		})
	}
	for want, spec := range map[string]v1alpha1.NotificationSinkSpec{
		"text/html": {Email: &v1alpha1.EmailSink{}}, "text/plain": {Event: &v1alpha1.EventSink{}},
	} {
		rendered, err := delivery.Render(&spec, m)
		if err != nil || rendered.ContentType != want || rendered.Body == "" || rendered.Title == "" {
			t.Errorf("rendered %+v, %v", rendered, err)
		}
	}
	if _, err := delivery.Render(&v1alpha1.NotificationSinkSpec{}, m); err == nil {
		t.Error("a sink without a receiver was rendered")
	}
}
