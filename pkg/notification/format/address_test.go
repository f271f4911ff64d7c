// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// TestSlackAddresses checks that a message has the channel and the thread that it is sent to, and only those.
func TestSlackAddresses(t *testing.T) {
	for want, address := range map[string][2]string{"": {}, "channel": {"C1", ""}, "channel,thread_ts": {"C1", "1.2"}} {
		body, err := format.Slack(about(sample(v1alpha1.NotifyFailed)), address[0], address[1])
		if err != nil {
			t.Fatal(err)
		}
		var sent map[string]any
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(sent, func(key string, value any) bool { return !slices.Contains(address[:], asText(value)) })
		if got := strings.Join(slices.Sorted(maps.Keys(sent)), ","); got != want {
			t.Errorf("message to %q has %s", address, got)
		}
	}
}

func asText(value any) string {
	text, ok := value.(string)
	if !ok {
		return "no text"
	}
	return text
}

func TestMailSubjects(t *testing.T) {
	failed, titled, nameless, lines := about(sample(v1alpha1.NotifyFailed)), digest(), digest(), about(sample(v1alpha1.NotifyFailed))
	titled.Title, nameless.Cluster, lines.Cluster = "by a template", "", "a\r\nBcc: b"
	for want, m := range map[string]*message.Message{
		"[prod-eu] Environment teams/alice: Sync failed and needs a decision": failed,
		"by a template": titled,
		"6 notifications: 1 failing destination, 1 failure, 1 bypass, 1 prompt, 1 change, 1 recovered catalog": nameless,
		`[a\u000d\u000aBcc: b] Environment teams/alice: Sync failed and needs a decision`:                      lines,
	} {
		if got, _, _ := format.Mail(m); got != want {
			t.Errorf("subject = %q, want %q", got, want)
		}
	}
}

func TestEventReasons(t *testing.T) {
	test := about(sample(v1alpha1.NotifyFailed))
	test.Test = true
	for want, m := range map[string]*message.Message{
		"Warning Failed":   about(sample(v1alpha1.NotifyFailed)),
		"Normal Prompted":  about(sample(v1alpha1.NotifyPrompted)),
		"Normal Recovered": about(message.Sample(v1alpha1.NotifyFailed, true, noon)),
		"Warning Test":     test,
	} {
		events := format.Events(m)
		if len(events) != 1 || events[0].Type+" "+events[0].Reason != want {
			t.Errorf("events = %v, want %s", events, want)
		}
	}
}
