// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestNotificationDefaults(t *testing.T) {
	sink := func(do func(*v1alpha1.NotificationSinkSpec)) *v1alpha1.NotificationSink {
		sink := &v1alpha1.NotificationSink{}
		do(&sink.Spec)
		return sink
	}
	defaulted := func(do func(*v1alpha1.NotificationSinkSpec)) *v1alpha1.NotificationSink {
		return sink(func(spec *v1alpha1.NotificationSinkSpec) {
			spec.Events = []v1alpha1.NotificationEvent{
				v1alpha1.NotifyPrompted, v1alpha1.NotifyFailed, v1alpha1.NotifyConflicted, v1alpha1.NotifyBypass,
				v1alpha1.NotifyDestinationFailing, v1alpha1.NotifyOwnershipConflict, v1alpha1.NotifyCatalogFailing, v1alpha1.NotifyPipelineFailing,
			}
			spec.MinSeverity, spec.Content = v1alpha1.SeverityInfo, v1alpha1.NotificationContentDiff
			spec.DigestWindow, spec.MaxPerMinute = &metav1.Duration{Duration: 30 * time.Second}, ptr.To(int32(10))
			do(spec)
		})
	}
	email := func(port int32, tls v1alpha1.EmailTLS) func(*v1alpha1.NotificationSinkSpec) {
		return func(spec *v1alpha1.NotificationSinkSpec) {
			spec.Email = &v1alpha1.EmailSink{TLS: tls}
			if port != 0 {
				spec.Email.Port = &port
			}
		}
	}
	slack := func(url string) func(*v1alpha1.NotificationSinkSpec) {
		return func(spec *v1alpha1.NotificationSinkSpec) { spec.Slack = &v1alpha1.SlackSink{APIURL: url} }
	}
	var empty v1alpha1.NotificationSink
	const written = `{"spec":{"event":{},"events":[],"digestWindow":"0s","maxPerMinute":0,"minSeverity":"Error","content":"Full"}}`
	if err := json.Unmarshal([]byte(written), &empty); err != nil {
		t.Fatal(err)
	}
	checkDefaults(t, []defaultsTest{
		{name: "Slack", in: sink(slack("")), want: defaulted(slack("https://slack.com/api"))},
		{name: "mail", in: sink(email(0, "")), want: defaulted(email(587, v1alpha1.EmailStartTLS))},
		{name: "mail with TLS from the beginning", in: sink(email(0, v1alpha1.EmailImplicitTLS)), want: defaulted(email(465, v1alpha1.EmailImplicitTLS))},
		{name: "mail at a port", in: sink(email(25, v1alpha1.EmailPlain)), want: defaulted(email(25, v1alpha1.EmailPlain))},
		{name: "explicitly empty values", in: &empty, want: empty.DeepCopy()},
		{
			name: "a test", in: &v1alpha1.NotificationTest{},
			want: &v1alpha1.NotificationTest{Spec: v1alpha1.NotificationTestSpec{Event: v1alpha1.NotifyPrompted}},
		},
	})
}
