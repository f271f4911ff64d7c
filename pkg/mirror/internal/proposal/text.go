// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// maxRows is the number of changes that the table lists. Reviewers do not read more, and hosts store 64 KiB of text or less.
const maxRows = 200

// Change is one file that a pull request changes.
type Change struct {
	// Operation is added, changed or removed.
	Operation string
	// Object is the object, such as deployments.apps shop/web, or the path of another file.
	Object string
	// Author made the last change, at Time, with Commit (abbreviated). URL links to the commit; it may be empty.
	Author string
	Time   time.Time
	Commit string
	URL    string
}

// About is what the text of a pull request says beside its changes.
type About struct {
	// Destination is the namespace and the name of the GitDestination, Cluster the name or uid of the cluster, Folder the folder in the
	// repository; empty is the root.
	Destination, Cluster, Folder string
	// Title and Body are those of the spec.
	Title, Body string
}

// TitleText returns the title.
func (a About) TitleText() string {
	if a.Title != "" {
		return printable.Line(a.Title)
	}
	return "Changes of GitDestination " + a.Destination
}

// BodyText returns the body: a sentence, a table of the changes, and the text of the spec.
func (a About) BodyText(changes []Change) string {
	var text strings.Builder
	folder := code(a.Folder)
	if a.Folder == "" {
		folder = "the root"
	}
	fmt.Fprintf(&text, "%s of cluster %s in %s, by GitDestination %s:\n\n", count(len(changes)), code(a.Cluster), folder, code(a.Destination))
	text.WriteString("| change | object | by | at | commit |\n| --- | --- | --- | --- | --- |\n")
	// Equal rows stay together in the order of their objects, whatever the host orders.
	for _, change := range changes[:min(len(changes), maxRows)] {
		commit := code(change.Commit)
		if change.URL != "" {
			commit = fmt.Sprintf("[%s](%s)", commit, escapeURL(change.URL))
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", change.Operation, code(change.Object), code(change.Author),
			change.Time.UTC().Format("2006-01-02 15:04:05 UTC"), commit)
	}
	if more := len(changes) - maxRows; more > 0 {
		fmt.Fprintf(&text, "\n%d more %s not listed.\n", more, plural(more, "is", "are"))
	}
	if authors := byAuthor(changes); len(authors) > 1 {
		text.WriteString("\nBy author: " + strings.Join(authors, ", ") + ".\n")
	}
	text.WriteString("\nThe branch is kept up to date with the cluster until this is merged or closed. What is closed without a merge is not\n" +
		"proposed again until the object changes.\n")
	if a.Body != "" { // Below, because unfinished markup in it would hide what follows.
		text.WriteString("\n" + strings.TrimSpace(printable.Text(a.Body)) + "\n")
	}
	return text.String()
}

// maxAuthors is the number of authors that are counted.
const maxAuthors = 20

// byAuthor returns the numbers of changes of the authors with the most, as in: `ada` 3.
func byAuthor(changes []Change) []string {
	counts := map[string]int{}
	var authors []string
	for _, change := range changes {
		if counts[change.Author]++; counts[change.Author] == 1 {
			authors = append(authors, change.Author)
		}
	}
	slices.SortFunc(authors, func(x, y string) int { return cmp.Or(cmp.Compare(counts[y], counts[x]), strings.Compare(x, y)) })
	for i, author := range authors {
		authors[i] = fmt.Sprintf("%s %d", code(author), counts[author])
	}
	return authors[:min(len(authors), maxAuthors)]
}

func count(changes int) string {
	return fmt.Sprintf("%d %s", changes, plural(changes, "change", "changes"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// code returns a text as code in a table: it mentions no user, links nowhere, and has no markup.
func code(text string) string {
	text = strings.NewReplacer("`", "'", "|", "¦").Replace(printable.Line(text))
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "`" + text + "`"
}

// escapeURL escapes the characters that would end a link of Markdown or a cell.
func escapeURL(url string) string {
	return strings.NewReplacer("(", "%28", ")", "%29", "|", "%7C", " ", "%20", "<", "%3C", ">", "%3E", "\n", "").Replace(url)
}

// EqualComment is the comment with which the server closes a pull request that has no difference to its base any more.
const EqualComment = "The branch no longer differs from its base in the folder of the GitDestination, so there is nothing to merge."

// LeftComment is the comment with which the server closes a pull request of an earlier branch, base or folder.
const LeftComment = "The GitDestination has another branch, base or folder now, so this pull request is no longer kept up to date."
