// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzzer

import (
	"sigs.k8s.io/randfill"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

func fillReminders(reminders *configbutler.Reminders, c randfill.Continue) {
	c.FillNoCustom(reminders)
	fillMissing(&reminders.Every, c)
	if reminders.After == nil {
		reminders.After = []metav1.Duration{}
	}
}

func fillNotificationSinkSpec(spec *configbutler.NotificationSinkSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	if len(spec.Events) == 0 {
		spec.Events = []configbutler.NotificationEvent{configbutler.NotifyChange}
	}
	spec.MinSeverity = oneOf(c, configbutler.SeverityInfo, configbutler.SeverityWarning, configbutler.SeverityError)
	spec.Content = oneOf(c, configbutler.NotificationContentFields, configbutler.NotificationContentDiff,
		configbutler.NotificationContentFull)
	fillMissing(&spec.DigestWindow, c)
	fillMissing(&spec.MaxPerMinute, c)
}

func fillSlackSink(sink *configbutler.SlackSink, c randfill.Continue) {
	c.FillNoCustom(sink)
	sink.APIURL = "x" + c.String(10)
}

func fillEmailSink(sink *configbutler.EmailSink, c randfill.Continue) {
	c.FillNoCustom(sink)
	fillMissing(&sink.Port, c)
	sink.TLS = oneOf(c, configbutler.EmailStartTLS, configbutler.EmailImplicitTLS, configbutler.EmailPlain)
}

func fillNotificationTestSpec(spec *configbutler.NotificationTestSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	spec.Event = oneOf(c, configbutler.NotifyPrompted, configbutler.NotifyBypass)
}
