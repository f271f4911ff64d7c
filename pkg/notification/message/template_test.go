// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// about returns a message about notifications.
func about(notifications ...message.Notification) *message.Message {
	return &message.Message{
		ID: "m-1", Time: noon, Cluster: "prod-eu", Notifications: notifications, Counts: message.CountsOf(notifications),
	}
}

func TestTemplatesAreChecked(t *testing.T) {
	const all = "{{.ID}}{{.Event}}{{.Severity}}{{.Cluster}}{{.Recovered}}{{.Reminder}}{{.Repeated}}{{.Time}}{{.Kind}}{{.APIVersion}}" +
		"{{.Namespace}}{{.Name}}{{.State}}{{.Headline}}{{.Actor}}{{.Reason}}{{.Error}}{{.ManagedBy}}{{.Command}}{{.Link}}{{.MoreFields}}" +
		"{{range .Summary}}{{.Type}}{{.Added}}{{.Changed}}{{.Removed}}{{end}}{{range .Names}}{{.}}{{end}}" +
		"{{range .Authors}}{{.Name}}{{.Signal}}{{end}}{{range .Commits}}{{.SHA}}{{.URL}}{{end}}" +
		"{{range .Fields}}{{.Path}}{{.Type}}{{.Before}}{{.After}}{{.Hidden}}{{end}}"
	for name, test := range map[string]struct{ title, text, field, says string }{
		"none":                                  {},
		"all fields":                            {title: all, text: all},
		"a condition":                           {title: `{{if eq .Event "Failed"}}Help: {{end}}{{.Headline}}`},
		"an unknown field":                      {title: "{{.Headline}}", text: "\n{{.Subject}}", field: "text", says: "line 2: must not use .Subject; known here are"},
		"a function":                            {title: `{{printf "%s" .Name}}`, field: "title", says: "must not use the function printf"},
		"too long":                              {text: strings.Repeat("a", 4097), field: "text", says: "at most 4096 bytes"},
		"an item that is not always there":      {text: "{{(index .Fields 0).Path}}", field: "text", says: "index out of range"},
		"a text that is not always there":       {title: "{{slice .Namespace 0 1}}", field: "title", says: "PipelineFailing: line 1"},
		"an author of what nothing is known of": {title: `{{slice .Name 0 1}}`, field: "title", says: "of which little is known"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := message.ParseTemplate(test.title, test.text)
			var parse *message.ParseError
			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says != "" && (!errors.As(err, &parse) || parse.Field != test.field || !strings.Contains(err.Error(), test.says)):
				t.Errorf("error = %v, want %q in %s", err, test.says, test.field)
			}
		})
	}
}

func TestTemplatesReplaceTitleAndText(t *testing.T) {
	failed := message.Sample(v1alpha1.NotifyFailed, false, noon)
	hostile := message.Sample(v1alpha1.NotifyFailed, false, noon)
	hostile.Headline, hostile.Error = "a\nb\u202ec", "x\r\ny\u200bz"
	for name, test := range map[string]struct {
		title, text         string
		message             *message.Message
		wantTitle, wantText string
	}{
		"both":       {"[{{.Cluster}}] {{.Name}}", "{{.Kind}}\n{{.Actor}}", about(failed), "[example] alice", "Environment\nalice@example.com"},
		"title only": {"{{.Severity}}", "", about(failed), "Error", ""},
		"empty":      {"{{if .Recovered}}x{{end}}", " {{/* */}}\n", about(failed), "", ""},
		"lines and invisible characters of names": {
			"{{.Headline}}", "{{.Error}}\nend", about(hostile), `a b\u202ec`, "x y\\u200bz\nend",
		},
		"lines of the template": {"a\nb", "a\r\n\tb\x00", about(failed), "a b", "a\n\tb\\u0000"},
		"a digest":              {"{{.Name}}", "{{.Name}}", about(failed, failed), "", ""},
		"fails later":           {`{{if gt .Reminder 5}}{{index .Names 7}}{{end}}{{.Name}}`, "", about(reminder(failed)), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			template, err := message.ParseTemplate(test.title, test.text)
			if err != nil {
				t.Fatal(err)
			}
			if template.Apply(test.message); test.message.Title != test.wantTitle || test.message.Text != test.wantText {
				t.Errorf("title %q, text %q, want %q, %q", test.message.Title, test.message.Text, test.wantTitle, test.wantText)
			}
		})
	}
}

func reminder(n message.Notification) message.Notification {
	n.Reminder = 6
	return n
}

// FuzzTemplates applies templates that are accepted: what they write must be bounded and visible.
func FuzzTemplates(f *testing.F) {
	f.Add("{{.Headline}}", "x\n")
	f.Add("{{range .Fields}}{{range $.Names}}{{end}}{{end}}", "a\u202e")
	f.Add("{{range .Fields}}{{.Path}} {{.Before}}{{$.Error}}{{$.Error}}{{$.Error}}{{end}}", strings.Repeat("é", 3000))
	f.Fuzz(func(t *testing.T, written, content string) {
		template, err := message.ParseTemplate(written, written)
		if err != nil {
			return
		}
		n := message.Sample(v1alpha1.NotifyBypass, false, noon)
		n.Headline, n.Error, n.Names = content, content, []string{content, content}
		n.Fields = []message.Field{{Path: content, Before: &content}, {Path: content}}
		m := about(n)
		template.Apply(m)
		if len(m.Title) > 256 || strings.ContainsAny(m.Title, "\n\r\t\u202e") || !utf8.ValidString(m.Title) {
			t.Errorf("title = %q", m.Title)
		}
		if len(m.Text) > 4096 || strings.ContainsAny(m.Text, "\r\u202e\x00") || !utf8.ValidString(m.Text) {
			t.Errorf("text = %q", m.Text)
		}
	})
}
