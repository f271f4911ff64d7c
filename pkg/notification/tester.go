// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// A sink is tested testBurst times at once, and then as often as testRate allows, in messages per second: ten in a minute. A mail server or a
// channel is not to be flooded by the server.
const (
	testRate  = 10.0 / 60
	testBurst = 10
	// limitedSinks is the number of sinks whose last tests are remembered.
	limitedSinks = 10_000
)

// Tester sends test messages to the receivers of sinks. Every replica serves them.
type Tester struct {
	config TesterConfig
	// limits are the rate limits of the sinks that were tested last.
	limits *lru.Cache[types.UID, flowcontrol.PassiveRateLimiter]
}

// TesterConfig configures a Tester.
type TesterConfig struct {
	// Cluster is the name of the cluster in messages.
	Cluster string
	// Connect returns the receiver of a sink.
	Connect func(sink *v1alpha1.NotificationSink) (delivery.Receiver, error)
	Clock   clock.PassiveClock
}

// NewTester returns a Tester.
func NewTester(config TesterConfig) (*Tester, error) {
	limits, err := lru.New[types.UID, flowcontrol.PassiveRateLimiter](limitedSinks)
	if err != nil {
		return nil, fmt.Errorf("make the rate limits of tests: %w", err)
	}
	return &Tester{config: config, limits: limits}, nil
}

// Test sends a message with made-up content, once, and sets the status of the test. A dry run sends nothing. The caller must have checked the
// permissions of the user.
func (t *Tester) Test(ctx context.Context, sink *v1alpha1.NotificationSink, test *v1alpha1.NotificationTest, dryRun bool) error {
	m, err := t.message(sink, test)
	if err != nil {
		return err
	}
	rendered, err := delivery.Render(&sink.Spec, m)
	if err != nil {
		return fmt.Errorf("make the message: %w", err)
	}
	test.Status = v1alpha1.NotificationTestStatus{
		Title: rendered.Title, Text: rendered.Text, Body: rendered.Body, ContentType: rendered.ContentType,
		Message: "Nothing was sent (dry run)",
	}
	if dryRun {
		return nil
	}
	if !t.isAllowed(sink.UID) {
		return apierrors.NewTooManyRequests("this sink was tested too often: at most ten test messages a minute are sent", retrySeconds)
	}
	receiver, err := t.config.Connect(sink)
	if err != nil {
		return fmt.Errorf("use the receiver: %w", err)
	}
	defer receiver.Close()
	result := receiver.Deliver(ctx, m, "")
	if ctx.Err() != nil && result.Outcome != delivery.Delivered {
		return ctx.Err() //nolint:wrapcheck // the caller expects it
	}
	test.Status.Delivered, test.Status.Message = result.Outcome == delivery.Delivered, result.Message
	return nil
}

// retrySeconds is the Retry-After of a test that is refused because of the rate limit: one more is allowed by then.
const retrySeconds = 6

// isAllowed reports whether another test message of a sink may be sent now, which counts.
func (t *Tester) isAllowed(sink types.UID) bool {
	limit := flowcontrol.NewTokenBucketPassiveRateLimiter(testRate, testBurst)
	if known, found, _ := t.limits.PeekOrAdd(sink, limit); found {
		limit = known
	}
	return limit.TryAccept()
}

// message returns the message of a test.
func (t *Tester) message(sink *v1alpha1.NotificationSink, test *v1alpha1.NotificationTest) (*message.Message, error) {
	now := t.config.Clock.Now()
	events := []v1alpha1.NotificationEvent{test.Spec.Event}
	if test.Spec.Digest {
		events = v1alpha1.NotificationEvents()
	}
	m := &message.Message{ID: string(uuid.NewUUID()), Time: now, Cluster: t.config.Cluster, Test: true}
	for _, event := range events {
		n := message.Sample(event, false, now)
		if sink.Spec.Event != nil { // An Event must not be about an object that the user may not create Events for.
			n.Subject = message.Subject{
				Kind: "NotificationSink", APIVersion: v1alpha1.SchemeGroupVersion.String(), Namespace: sink.Namespace, Name: sink.Name, UID: string(sink.UID),
			}
		}
		n.Cluster, n.Link = t.config.Cluster, linkOf(sink.Spec.LinkTemplate, n.Subject)
		m.Notifications = append(m.Notifications, n)
	}
	m.Counts = message.CountsOf(m.Notifications)
	written := sink.Spec.Template
	if test.Spec.Template != nil {
		written = *test.Spec.Template
	}
	template, err := message.ParseTemplate(written.Title, written.Text)
	if err != nil {
		return nil, apierrors.NewBadRequest("spec.template." + err.Error())
	}
	template.Apply(m)
	return m, nil
}
