// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"net/url"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Limits of what is shown, in bytes except maxTypes. They hold for messages that exceed those of a Message, too.
const (
	// maxTitle and maxTemplateText are the limits of what a template writes.
	maxTitle        = 256
	maxTemplateText = 4096
	// maxName is for names of objects, users and clusters.
	maxName = 253
	// maxPath is for the paths of fields.
	maxPath = 256
	// maxTypes is the number of types in a summary.
	maxTypes = 10
	// maxFact is for all values of a fact together.
	maxFact = MaxText
	// maxLink is for the link of the subject, maxCommitLink for those of commits, of which there can be several. Longer ones are
	// left out: a part of a URL leads elsewhere.
	maxLink       = 2048
	maxCommitLink = 512
)

// Bounded returns the notification within the limits, for receivers that get all of it. Longer texts are truncated, and URLs
// that are no links are left out. Characters are not escaped.
func (n *Notification) Bounded() Notification {
	b := *n
	b.ID, b.Cluster, b.Actor = summary.Cut(n.ID, maxName), summary.Cut(n.Cluster, maxName), summary.Cut(n.Actor, maxName)
	b.Subject = n.Subject.bounded()
	b.DedupeKey = summary.Cut(n.DedupeKey, MaxText)
	b.Event = v1alpha1.NotificationEvent(summary.Cut(string(n.Event), maxName))
	b.Severity = v1alpha1.NotificationSeverity(summary.Cut(string(n.Severity), maxName))
	for _, text := range []*string{&b.State, &b.Headline, &b.Reason, &b.ManagedBy, &b.Error, &b.Command} {
		*text = summary.Cut(*text, MaxText)
	}
	b.Link = safeLink(n.Link, maxLink)
	b.Summary = bounded(n.Summary, maxTypes, func(of Changed) Changed {
		of.Type = summary.Cut(of.Type, maxName)
		return of
	})
	b.Names = bounded(n.Names, MaxNames, func(name string) string { return summary.Cut(name, maxName) })
	b.ChangedBy = bounded(n.ChangedBy, MaxNames, func(of Author) Author {
		return Author{summary.Cut(of.Name, maxName), summary.Cut(of.Signal, maxName)}
	})
	b.Commits = bounded(n.Commits, MaxNames, func(of Commit) Commit {
		return Commit{summary.Cut(of.SHA, maxName), safeLink(of.URL, maxCommitLink)}
	})
	b.Fields = bounded(n.Fields, MaxFields, Field.bounded)
	b.MoreFields += len(n.Fields) - len(b.Fields)
	return b
}

func (s Subject) bounded() Subject {
	return Subject{
		Kind: summary.Cut(s.Kind, maxName), APIVersion: summary.Cut(s.APIVersion, maxName),
		Namespace: summary.Cut(s.Namespace, maxName), Name: summary.Cut(s.Name, maxName), UID: summary.Cut(s.UID, maxName),
	}
}

func (f Field) bounded() Field {
	b := Field{Path: summary.Cut(f.Path, maxPath), Type: summary.Cut(f.Type, maxName), Hidden: f.Hidden}
	if !f.Hidden {
		b.Before, b.After = cutValue(f.Before), cutValue(f.After)
	}
	return b
}

func cutValue(value *string) *string {
	if value == nil {
		return nil
	}
	cut := summary.Cut(*value, MaxValue)
	return &cut
}

// bounded returns the first items of a list, each bounded.
func bounded[T any](of []T, most int, bound func(T) T) []T {
	var items []T
	for _, item := range of[:min(len(of), most)] {
		items = append(items, bound(item))
	}
	return items
}

// line returns a text on one line, with invisible characters escaped.
func line(text string, most int) string {
	return summary.Cut(printable.Line(strings.TrimSpace(beginning(text, 2*most))), most)
}

// beginning returns a beginning of a text that is longer than what is shown of it, so that long texts cost no time.
func beginning(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "")
}

// sentence returns a text of several words on one line, with line ends as spaces.
func sentence(text string) string {
	return summary.Cut(summary.Line(beginning(text, 4*MaxText)), MaxText)
}

// text returns what a template has written. It can have several lines.
func text(written string) string {
	written = strings.ReplaceAll(beginning(written, 4*maxTemplateText), "\r\n", "\n")
	return strings.TrimSpace(summary.Cut(printable.Text(strings.TrimSpace(written)), maxTemplateText))
}

// urlCharacters are the characters of URLs beside letters and digits (RFC 3986), except quotes and brackets of markup.
const urlCharacters = "-._~:/?#@!$&()*+,;=%"

// safeLink returns a URL with http or https. It returns an empty string for anything else, for URLs that a reader could take
// for those of another host, and for those longer than most.
func safeLink(link string, most int) string {
	if len(link) > most || strings.ContainsFunc(link, func(char rune) bool { return !isURLCharacter(char) }) {
		return ""
	}
	parsed, err := url.Parse(link)
	if err != nil || !slices.Contains([]string{"http", "https"}, parsed.Scheme) || parsed.Hostname() == "" || parsed.User != nil {
		return ""
	}
	return link
}

func isURLCharacter(char rune) bool {
	isLetter := char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z'
	return isLetter || char >= '0' && char <= '9' || strings.ContainsRune(urlCharacters, char)
}
