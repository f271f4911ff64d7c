// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

func sample(event v1alpha1.NotificationEvent) message.Notification {
	return message.Sample(event, false, noon)
}

func TestTitles(t *testing.T) {
	repeated, reminded, unnamed := sample(v1alpha1.NotifyFailed), sample(v1alpha1.NotifyPrompted), sample(v1alpha1.NotifyConflicted)
	repeated.Repeated, reminded.Reminder, unnamed.Headline = 3, 2, " \n"
	long := sample(v1alpha1.NotifyFailed)
	long.Headline = strings.Repeat("é", 400)
	test, thread, titled := about(repeated), about(repeated, unnamed), about(repeated)
	test.Test, thread.Thread, titled.Title = true, "alice", "by a template"
	unknown := sample("Later")
	ended := message.Sample(v1alpha1.NotifyConflicted, true, noon)
	for name, c := range map[string]struct {
		message *message.Message
		want    string
	}{
		"a headline":          {about(sample(v1alpha1.NotifyPrompted)), "Environment teams/alice: 3 workloads, 1 ConfigMap changed"},
		"a repetition":        {about(repeated), "Environment teams/alice: Sync failed and needs a decision (3 more times)"},
		"a reminder":          {about(reminded), "Reminder 2: Environment teams/alice: 3 workloads, 1 ConfigMap changed"},
		"no headline":         {about(unnamed), "Environment teams/alice: Conflict"},
		"a test":              {test, "Test: Environment teams/alice: Sync failed and needs a decision (3 more times)"},
		"a template's":        {titled, "by a template"},
		"too long":            {about(long), strings.Repeat("é", 126) + "..."},
		"different events":    {about(sample(v1alpha1.NotifyChange), repeated, ended), "3 notifications: 1 failure, 1 change, 1 resolved conflict"},
		"the same event":      {about(sample(v1alpha1.NotifyBypass), sample(v1alpha1.NotifyBypass)), "2 bypasses"},
		"the same subject":    {thread, "Environment teams/alice: 1 failure, 1 conflict"},
		"an unknown event":    {about(unknown), "Environment teams/alice: 3 workloads, 1 ConfigMap changed"},
		"several unknown":     {&message.Message{Counts: []message.Count{{Event: "A", Count: 1}, {Event: "B", Count: 2}}}, "3 notifications"},
		"nothing but a count": {&message.Message{Counts: []message.Count{{Event: v1alpha1.NotifyPrompted, Count: 1}}}, "1 prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := message.Title(c.message); got != c.want {
				t.Errorf("title = %q, want %q", got, c.want)
			}
		})
	}
}

func TestFacts(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*message.Notification)
		want string
	}{
		"of the sample": {func(*message.Notification) {}, "Changed: 2 Deployments changed, 1 Deployment added, 1 ConfigMap changed; " +
			"Workloads: api, web, worker; Changed by: jane@example.com (audit log), helm (field manager); Commit: 4f2c9e1"},
		"a state that the headline does not say": {
			func(n *message.Notification) {
				*n = message.Notification{State: "Held: window opens 18:00", Headline: "x"}
			}, "State: Held: window opens 18:00",
		},
		"a state with the error": {
			func(n *message.Notification) { *n = message.Notification{State: "Failed: no\nroom", Error: "no room"} }, "Error: no room",
		},
		"unknown authors": {
			func(n *message.Notification) {
				*n = message.Notification{ChangedBy: []message.Author{{Signal: "Unknown"}, {Name: "a\u202eb", Signal: "Admission"}}}
			}, `Changed by: unknown, a\u202eb (admission)`,
		},
		"a repetition": {func(n *message.Notification) { *n = message.Notification{Repeated: 1} }, "Repeated: 1 more time since the last notification"},
		"removed objects": {
			func(n *message.Notification) {
				*n = message.Notification{Summary: []message.Changed{{Type: "Ingress", Removed: 2}, {Type: "Secret"}}}
			}, "Changed: 2 Ingresses removed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := sample(v1alpha1.NotifyPrompted)
			c.edit(&n)
			var got []string
			for _, fact := range about(n).View().Facts {
				got = append(got, fact.Label+": "+fact.Text())
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("facts = %q, want %q", got, c.want)
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	before, after, empty := `"a"`, "\"b\u202e\"", `""`
	for name, c := range map[string]struct {
		field message.Field
		want  message.Difference
	}{
		"a change":      {message.Field{Path: "/a", Type: "Changed", Before: &before, After: &after}, message.Difference{Path: "/a", Before: `"a"`, After: `"b\u202e"`}},
		"an addition":   {message.Field{Path: "/a", Type: "Added", After: &empty}, message.Difference{Path: "/a", After: `""`}},
		"hidden":        {message.Field{Path: "/a", Type: "Changed", Hidden: true, Before: &before}, message.Difference{Path: "/a", Note: "value hidden"}},
		"no values":     {message.Field{Path: "/a", Type: "Removed"}, message.Difference{Path: "/a", Note: "removed"}},
		"only the path": {message.Field{Path: "/a\n"}, message.Difference{Path: "/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := message.Notification{Fields: []message.Field{c.field}}
			if got := about(n).View().Differences; len(got) != 1 || got[0] != c.want {
				t.Errorf("differences = %+v, want %+v", got, c.want)
			}
		})
	}
	many := about(message.Notification{Fields: make([]message.Field, 25), MoreFields: 3}).View()
	if len(many.Differences) != message.MaxFields || many.MoreDifferences != 8 {
		t.Errorf("%d differences and %d more, want %d and 8", len(many.Differences), many.MoreDifferences, message.MaxFields)
	}
}

func TestLinks(t *testing.T) {
	for link, ok := range map[string]bool{
		"https://example.com/a?b=c#d":                      true,
		"http://[::1]/":                                    false,
		"HTTPS://example.com":                              true,
		"https://example.com:8443/%20":                     true,
		"javascript:alert(1)":                              false,
		"https:///path":                                    false,
		"https://good.example@evil.example":                false,
		"https://example.com/\"onclick=":                   false,
		"https://example.com/<b>":                          false,
		"https://example.com/a b":                          false,
		"https://example.com/é":                            false,
		"https://example.com/|x":                           false,
		"//example.com":                                    false,
		"ftp://example.com":                                false,
		"https://example.com/%zz":                          false,
		"https://example.com/" + strings.Repeat("a", 3000): false,
		"": false,
	} {
		want := ""
		if ok {
			want = link
		}
		if got := about(message.Notification{Link: link}).View().Link; got != want {
			t.Errorf("link of %.60q = %q", link, got)
		}
	}
}

func TestDigests(t *testing.T) {
	older, failed := message.Sample(v1alpha1.NotifyFailed, false, noon.Add(-time.Hour)), sample(v1alpha1.NotifyFailed)
	failed.Subject.Name, failed.Headline = "bob", "Environment teams/bob: élan lost"
	prompted, change := sample(v1alpha1.NotifyPrompted), sample(v1alpha1.NotifyChange)
	m := about(change, older, prompted, failed)
	m.Counts = append(m.Counts, message.Count{Event: v1alpha1.NotifyChange, Count: 9996})
	want := "Environment teams/bob: Élan lost [Deployment]; " +
		"Environment teams/alice: Sync failed and needs a decision [Deployment], 3 workloads, 1 ConfigMap changed [by jane@ex]; " +
		"Deployment shop/web: Updated by jane@example.com [/spec/repl]; and 9996 more: kubectl get changes -A"
	if got := outline(m.Digest(100)); got != want {
		t.Errorf("digest = %s\nwant %s", got, want)
	}
	want = "Environment teams/bob: Élan lost [Deployment]; and 9999 more: kubectl get changes -A"
	if got := outline(m.Digest(1)); got != want {
		t.Errorf("digest of one = %s\nwant %s", got, want)
	}
	m = about(older, failed, prompted)
	if got, want := m.Digest(2).More, "and 1 more: kubectl slipstream status -n teams"; got != want {
		t.Errorf("more = %q, want %q", got, want)
	}
}

// outline writes a digest on one line.
func outline(d message.Digest) string {
	var parts []string
	for _, group := range d.Groups {
		var entries []string
		for _, entry := range group.Entries {
			entries = append(entries, fmt.Sprintf("%s [%.10s]", entry.Title, entry.Detail))
		}
		parts = append(parts, group.Subject+": "+strings.Join(entries, ", "))
	}
	return strings.Join(append(parts, d.More), "; ")
}

// TestSamplesUseAllFields checks that tests with samples cover all fields.
func TestSamplesUseAllFields(t *testing.T) {
	used := map[string]bool{"Reminder": true, "Repeated": true} // set by the tests that need them
	for _, event := range message.Events() {
		for _, recovered := range []bool{false, true} {
			n := message.Sample(event, recovered, noon)
			for i := range reflect.TypeFor[message.Notification]().NumField() {
				if !reflect.ValueOf(n).Field(i).IsZero() {
					used[reflect.TypeFor[message.Notification]().Field(i).Name] = true
				}
			}
			if n.Severity == "" || n.Headline == "" || recovered != n.Recovered || recovered && n.Severity != v1alpha1.SeverityInfo {
				t.Errorf("sample of %s: %+v", event, n)
			}
			if bounded := n.Bounded(); !reflect.DeepEqual(bounded, n) {
				t.Errorf("sample of %s exceeds the limits", event)
			}
		}
	}
	for i := range reflect.TypeFor[message.Notification]().NumField() {
		if name := reflect.TypeFor[message.Notification]().Field(i).Name; !used[name] {
			t.Errorf("no sample has %s", name)
		}
	}
}
