// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

const (
	// maxMailBody is where Gmail cuts HTML off (102 KB).
	maxMailBody = 100 << 10
	// maxMailEntries is the number of notifications in a mail. Readers do not scroll through more.
	maxMailEntries = 50
)

// Mail returns a message as a mail: its subject, which is one line, a text part and an HTML part. The HTML loads nothing.
func Mail(m *message.Message) (subject, text, html string) {
	title, text := textOf(m, maxMailEntries)
	body, _ := fit(items(m, maxMailEntries), maxMailBody, func(items int) ([]byte, error) { return []byte(mailHTML(m, items)), nil })
	return mailSubject(m, title), text, string(body) // writing HTML cannot fail
}

// mailSubject puts the name of the cluster before the title, unless a template wrote it.
func mailSubject(m *message.Message, title string) string {
	cluster := m.View().Cluster
	if m.Title != "" || cluster == "" {
		return title
	}
	return fmt.Sprintf("[%s] %s", cluster, title)
}

// mailHTML returns the HTML part, with at most that many notifications or changed fields.
func mailHTML(m *message.Message, items int) markup {
	if isDigest(m) {
		d := m.Digest(items)
		return page(d.Title, d.More, tone(d.Severity, false), mailDigest(d), joinNonEmpty(" · ", clusterName(d.Cluster), message.Moment(d.Time)))
	}
	v := limited(m.View(), items)
	return page(v.Title, preview(v), tone(v.Severity, v.Recovered), mailView(v), joinNonEmpty(" · ", clusterName(v.Cluster), message.Moment(v.Time)))
}

// tone is the part of the names of classes that selects a colour.
func tone(severity v1alpha1.NotificationSeverity, recovered bool) string {
	switch {
	case recovered:
		return "good"
	case severity == v1alpha1.SeverityError:
		return "error"
	case severity == v1alpha1.SeverityWarning:
		return "warning"
	}
	return "info"
}

// preview is what a list of mails shows beside the subject.
func preview(v message.View) string {
	if v.Text != "" || len(v.Facts) == 0 {
		return v.Text
	}
	return v.Facts[0].Label + ": " + v.Facts[0].Text()
}
