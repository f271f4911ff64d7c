// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/format"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// about returns a message about notifications.
func about(notifications ...message.Notification) *message.Message {
	return &message.Message{
		ID: "7c0b6f9a-0000-4000-8000-000000000001", Time: noon, Cluster: "prod-eu", Notifications: notifications,
		Counts: message.CountsOf(notifications),
	}
}

func sample(event v1alpha1.NotificationEvent) message.Notification {
	return message.Sample(event, false, noon)
}

// messages returns a message of every kind, by the name of its golden files.
func messages() map[string]*message.Message {
	all := map[string]*message.Message{}
	for _, event := range message.Events() {
		all[strings.ToLower(string(event))] = about(sample(event))
	}
	for _, event := range []v1alpha1.NotificationEvent{
		v1alpha1.NotifyFailed, v1alpha1.NotifyConflicted, v1alpha1.NotifyDestinationFailing, v1alpha1.NotifyOwnershipConflict,
		v1alpha1.NotifyCatalogFailing, v1alpha1.NotifyPipelineFailing,
	} {
		all[strings.ToLower(string(event))+"-recovered"] = about(message.Sample(event, true, noon))
	}
	reminder, repeated := sample(v1alpha1.NotifyPrompted), sample(v1alpha1.NotifyFailed)
	reminder.Reminder, repeated.Repeated = 2, 11
	all["reminder"], all["repeated"] = about(reminder), about(repeated)
	all["test"], all["template"] = about(sample(v1alpha1.NotifyPrompted)), about(sample(v1alpha1.NotifyFailed))
	all["test"].Test = true
	all["template"].Title, all["template"].Text = "[teams] alice failed", "Ask in #platform if you need help.\n\n- limits are required\n- see <b>the guide</b>"
	all["digest"], all["digest-thread"], all["digest-10000"] = digest(), thread(), large()
	return all
}

// digest returns a message about several subjects.
func digest() *message.Message {
	failed, ended := sample(v1alpha1.NotifyFailed), message.Sample(v1alpha1.NotifyCatalogFailing, true, noon.Add(-time.Minute))
	return about(
		message.Sample(v1alpha1.NotifyPrompted, false, noon.Add(-2*time.Minute)), ended, failed, sample(v1alpha1.NotifyBypass),
		sample(v1alpha1.NotifyDestinationFailing), sample(v1alpha1.NotifyChange),
	)
}

// thread returns a message about one subject.
func thread() *message.Message {
	m := about(sample(v1alpha1.NotifyPrompted), message.Sample(v1alpha1.NotifyFailed, false, noon.Add(time.Minute)))
	m.Thread = "0b5c0f3e-0d5a-4f0c-8f3b-6d2f8a1f9c10"
	return m
}

// large returns a message about 10000 notifications, of which it lists 100.
func large() *message.Message {
	var listed []message.Notification
	for i := range message.MaxNotifications {
		n := message.Sample(v1alpha1.NotifyChange, false, noon.Add(time.Duration(i)*time.Second))
		n.ID, n.Sequence, n.Subject.Name = fmt.Sprintf("%s-%d", n.ID, i), int64(i), fmt.Sprintf("web-%d", i%40)
		n.Headline = fmt.Sprintf("Deployment shop/%s: 6 fields changed by jane@example.com", n.Subject.Name)
		listed = append(listed, n)
	}
	listed[99] = sample(v1alpha1.NotifyConflicted)
	m := about(listed...)
	m.Counts = []message.Count{{Event: v1alpha1.NotifyConflicted, Count: 1}, {Event: v1alpha1.NotifyChange, Count: 9999}}
	return m
}

// document is what a format makes of a message.
type document struct {
	extension string
	content   []byte
}

// documents returns a message in every format.
func documents(t testing.TB, m *message.Message) map[string]document {
	t.Helper()
	slack, err := format.Slack(m, "C024BE91L", "1767355200.000100")
	if err != nil {
		t.Fatal(err)
	}
	teams, err := format.Teams(m)
	if err != nil {
		t.Fatal(err)
	}
	header, body, err := format.CloudEvent(m, "/apis/configbutler.ai/v1alpha1/namespaces/teams/notificationsinks/chat")
	if err != nil {
		t.Fatal(err)
	}
	title, text := format.Text(m)
	subject, mail, html := format.Mail(m)
	if len(m.Notifications) <= 50 && mail != text {
		t.Errorf("the text of the mail is not the plain text:\n%s", mail)
	}
	return map[string]document{
		"slack": {"json", indent(t, slack)}, "teams": {"json", indent(t, teams)}, "cloudevent": {"txt", append(headerText(header), indent(t, body)...)},
		"text": {"txt", []byte(title + "\n\n" + text)}, "mail": {"html", []byte("<!-- " + strings.ReplaceAll(subject, "--", "- -") + " -->\n" + html)},
		"event": {"txt", eventText(m)},
	}
}

func indent(t testing.TB, document []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, document, "", "  "); err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	return append(out.Bytes(), '\n')
}

func headerText(header map[string][]string) []byte {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(&out, "%s: %s\n", name, strings.Join(header[name], ", "))
	}
	return append(out.Bytes(), '\n')
}

func eventText(m *message.Message) []byte {
	var out bytes.Buffer
	for _, event := range format.Events(m) {
		fmt.Fprintf(&out, "%s %s %s %s/%s: %s\n", event.Type, event.Reason, event.Subject.Kind, event.Subject.Namespace, event.Subject.Name, event.Message)
	}
	return out.Bytes()
}

func TestGoldenFiles(t *testing.T) {
	files := map[string]bool{}
	for name, m := range messages() {
		for kind, document := range documents(t, m) {
			file := filepath.Join("testdata", kind, name+"."+document.extension)
			files[file] = true
			t.Run(kind+"/"+name, func(t *testing.T) { compare(t, file, document.content) })
		}
	}
	found, err := filepath.Glob("testdata/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		if !files[file] {
			t.Errorf("%s belongs to no message", file)
		}
	}
}

// compare compares a document with its golden file, or writes it.
func compare(t *testing.T, file string, content []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if !bytes.Equal(content, want) {
		t.Errorf("%s differs; run the test with -update to write it. Got\n%s", file, content)
	}
}
