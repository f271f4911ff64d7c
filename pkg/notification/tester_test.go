// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/test/testkit"
)

func newTester(t *testing.T, to *inbox) *Tester {
	t.Helper()
	tester, err := NewTester(TesterConfig{
		Cluster: "production", Clock: testkit.NewClock(t),
		Connect: func(*v1alpha1.NotificationSink) (delivery.Receiver, error) { return to, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return tester
}

// TestTester checks what a test sends and returns, and that a dry run sends nothing.
func TestTester(t *testing.T) {
	to := &inbox{}
	tester := newTester(t, to)
	test := &v1alpha1.NotificationTest{Spec: v1alpha1.NotificationTestSpec{
		Event: v1alpha1.NotifyBypass, Template: &v1alpha1.NotificationTemplate{Title: "{{.Kind}} by {{range .Authors}}{{.Name}}{{end}}"},
	}}
	for _, dryRun := range []bool{true, false} {
		if err := tester.Test(context.Background(), newSink(), test, dryRun); err != nil {
			t.Fatal(err)
		}
		if test.Status.Title != "Test: Deployment by jane@example.com" || test.Status.Delivered == dryRun || !strings.Contains(test.Status.Body, "Bypass") {
			t.Errorf("dry run %t: %+v", dryRun, test.Status)
		}
	}
	if received := to.received(); len(received) != 1 || !received[0].Test {
		t.Errorf("%d messages", len(received))
	}
}

// TestTesterWithEvents checks that a test records its Event for the sink, and not for an object of others.
func TestTesterWithEvents(t *testing.T) {
	to := &inbox{}
	sink := newSink(func(spec *v1alpha1.NotificationSinkSpec) { spec.Webhook, spec.Event = nil, &v1alpha1.EventSink{} })
	test := &v1alpha1.NotificationTest{Spec: v1alpha1.NotificationTestSpec{Event: v1alpha1.NotifyBypass}}
	if err := newTester(t, to).Test(context.Background(), sink, test, false); err != nil {
		t.Fatal(err)
	}
	if of := to.received()[0].Notifications[0].Subject; of.Kind != "NotificationSink" || of.Namespace != "teams" || of.Name != "chat" {
		t.Errorf("subject = %+v", of)
	}
}

// TestTestsAreLimited checks that a sink is not tested any number of times, and that this does not concern others.
func TestTestsAreLimited(t *testing.T) {
	to := &inbox{}
	tester := newTester(t, to)
	send := func(sink *v1alpha1.NotificationSink) error {
		return tester.Test(context.Background(), sink, &v1alpha1.NotificationTest{Spec: v1alpha1.NotificationTestSpec{Event: v1alpha1.NotifyFailed}}, false)
	}
	for range testBurst {
		if err := send(newSink()); err != nil {
			t.Fatal(err)
		}
	}
	if err := send(newSink()); !apierrors.IsTooManyRequests(err) {
		t.Errorf("error = %v, want TooManyRequests", err)
	}
	other := newSink()
	other.UID = "another"
	if err := send(other); err != nil {
		t.Error(err)
	}
}
