// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// page returns a whole document. tone selects the colour of the bar above body.
func page(title, preview, tone string, body markup, footer string) markup {
	card := table("card", row(cell("bar-"+tone, "&nbsp;")), row(cell("body", body)))
	return join(
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
		"<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"supported-color-schemes\" content=\"light dark\">\n",
		"<title>", escaped(title), "</title>\n", styleSheet, "</head>\n<body", attributesOf("page"), ">\n",
		element("div", "hidden", escaped(preview)),
		table("page", row("<td align=\"center\"", attributesOf("outer"), ">\n", forOutlook(card), signature(footer), "</td>\n")),
		"</body>\n</html>\n",
	)
}

// forOutlook limits the width of a table in Outlook for Windows, which knows no max-width.
func forOutlook(card markup) markup {
	return join("<!--[if mso]><table role=\"presentation\" width=\"600\"><tr><td><![endif]-->\n", card, "<!--[if mso]></td></tr></table><![endif]-->\n")
}

// signature returns what is below the card: where the mail comes from, and why.
func signature(footer string) markup {
	return element("div", "footer", escaped(footer), "<br>Slipstream sends this mail because a NotificationSink of the cluster selects it.")
}

func mailView(v message.View) markup {
	body := join(
		badge(v.Symbol, v.Label, tone(v.Severity, v.Recovered)), inline("span", "cluster", escaped(clusterName(v.Cluster))),
		element("h1", "title", escaped(v.Title)), mailNote(v.Note),
	)
	if v.Text != "" {
		body = join(body, element("div", "text", escaped(v.Text)))
	}
	return join(body, mailFacts(v.Facts), mailDifferences(v), mailCommand(v.Command), mailButton(v.Link))
}

// badge returns a coloured label.
func badge(symbol, label, tone string) markup {
	return inline("span", "pill-"+tone, escaped(symbol), "&nbsp;", escaped(label))
}

func mailNote(note string) markup {
	if note == "" {
		return ""
	}
	return element("div", "note", escaped(note))
}

func mailFacts(facts []message.Fact) markup {
	if len(facts) == 0 {
		return ""
	}
	var rows []markup
	for _, fact := range facts {
		rows = append(rows, row(cell("label", escaped(fact.Label)), cell("value", mailValues(fact.Values))))
	}
	return table("facts", rows...)
}

func mailValues(values []message.Value) markup {
	var out markup
	for i, value := range values {
		if i > 0 {
			out = join(out, ", ")
		}
		if value.URL != "" {
			out = join(out, anchor("sha", value.URL, escaped(value.Text)))
		} else {
			out = join(out, escaped(value.Text))
		}
	}
	return out
}

func mailDifferences(v message.View) markup {
	var rows []markup
	for _, d := range v.Differences {
		rows = append(rows, row(cell("path", escaped(d.Path), mailRemark(d.Note))))
		if d.Before != "" {
			rows = append(rows, row(cell("before", "-&nbsp;", escaped(d.Before))))
		}
		if d.After != "" {
			rows = append(rows, row(cell("after", "+&nbsp;", escaped(d.After))))
		}
	}
	if more := moreFields(v); more != "" {
		rows = append(rows, row(cell("path", inline("span", "muted", escaped(more)))))
	}
	if len(rows) == 0 {
		return ""
	}
	return join(element("div", "section", "Changed fields"), table("box", rows...))
}

// mailRemark returns what follows a path. It can be empty.
func mailRemark(note string) markup {
	if note == "" {
		return ""
	}
	return join(" ", inline("span", "muted", escaped(note)))
}

func mailCommand(command string) markup {
	if command == "" {
		return ""
	}
	return join(element("div", "section", "Command"), table("box", row(cell("code", escaped(command)))))
}

func mailButton(link string) markup {
	if link == "" {
		return ""
	}
	return element("div", "action", anchor("button", link, escaped(openText(link))))
}

func mailDigest(d message.Digest) markup {
	body := join(element("div", "detail", escaped(clusterName(d.Cluster))), element("h1", "title", escaped(d.Heading)))
	body = join(body, mailNote(d.Note), mailCounts(d.Counted))
	for _, group := range d.Groups {
		body = join(body, mailGroup(group))
	}
	if d.More != "" {
		body = join(body, element("div", "more", escaped(d.More)))
	}
	return body
}

// mailCounts returns the numbers of notifications as a row of labels.
func mailCounts(counted []message.Counted) markup {
	var badges []markup
	for _, c := range counted {
		badges = append(badges, badge(message.Symbol(c.Severity, c.Recovered), c.Text, tone(c.Severity, c.Recovered)), " ")
	}
	return element("div", "chips", badges...)
}

func mailGroup(group message.Group) markup {
	subject := escaped(group.Subject)
	if group.Link != "" {
		subject = anchor("link", group.Link, subject)
	}
	var rows []markup
	for _, entry := range group.Entries {
		rows = append(rows, mailEntry(entry))
	}
	return join(element("div", "subject", subject), table("", rows...))
}

func mailEntry(e message.Entry) markup {
	return row(
		cell("mark-"+tone(e.Severity, e.Recovered), escaped(e.Symbol)),
		cell("entry", inline("b", "", escaped(e.Label)), escaped(colon(e.Title)),
			element("div", "detail", escaped(joinNonEmpty(" · ", e.Detail, message.Moment(e.Time))))),
	)
}

// colon returns a text after a colon. It is empty if the text is.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
