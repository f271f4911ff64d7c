// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// Notifications send test messages.
type Notifications interface {
	// Test sends a test message to the receiver of a sink, with the Secret of the sink, and writes the result into the
	// status of test. A dry run sends nothing. The caller must be allowed to read that Secret.
	Test(ctx context.Context, sink *v1alpha1.NotificationSink, test *v1alpha1.NotificationTest, dryRun bool) error
}

// testTimeout limits the time for a test: less than the aggregator's request timeout of 34 s.
const testTimeout = 25 * time.Second

// notificationTest is the subresource test of a NotificationSink. Admission checks the permissions of the caller for what
// the sink sends and for its Secret.
type notificationTest struct {
	sinks rest.Getter
	// sender sends test messages. It is nil if this server cannot.
	sender Notifications
}

func (t *notificationTest) endpoint() *requestREST[*configbutler.NotificationTest] {
	return &requestREST[*configbutler.NotificationTest]{
		newRequest: func() *configbutler.NotificationTest { return &configbutler.NotificationTest{} },
		validate: func(_ context.Context, name string, request *configbutler.NotificationTest) error {
			return invalid("NotificationTest", name, validation.ValidateNotificationTest(request, name))
		},
		execute: t.execute,
	}
}

// execute sends a message and writes the result into the request.
func (t *notificationTest) execute(ctx context.Context, name string, request *configbutler.NotificationTest, dryRun []string) error {
	if t.sender == nil {
		return apierrors.NewServiceUnavailable("this server does not send notifications")
	}
	stored, err := read[*configbutler.NotificationSink](ctx, t.sinks, name)
	if err != nil {
		return err
	}
	sink, err := versionedSink(stored)
	if err != nil {
		return err
	}
	request.Status = configbutler.NotificationTestStatus{}
	test := &v1alpha1.NotificationTest{}
	if err := v1alpha1.Convert_configbutler_NotificationTest_To_v1alpha1_NotificationTest(request, test, nil); err != nil {
		return fmt.Errorf("converting a test: %w", err)
	}
	if err := t.send(ctx, sink.DeepCopy(), test, dryrun.IsDryRun(dryRun)); err != nil {
		return err
	}
	return v1alpha1.Convert_v1alpha1_NotificationTestStatus_To_configbutler_NotificationTestStatus(&test.Status, &request.Status, nil)
}

// send sends a message within the time for a test.
func (t *notificationTest) send(ctx context.Context, sink *v1alpha1.NotificationSink, test *v1alpha1.NotificationTest, dryRun bool) error {
	sending, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	err := t.sender.Test(sending, sink, test, dryRun)
	switch status := apierrors.APIStatus(nil); {
	case err == nil, errors.As(err, &status):
		return err
	case errors.Is(sending.Err(), context.DeadlineExceeded):
		return apierrors.NewTimeoutError(fmt.Sprintf("the receiver did not answer within %s", testTimeout), requestRetrySeconds)
	}
	return apierrors.NewInternalError(fmt.Errorf("sending a test: %w", err))
}
