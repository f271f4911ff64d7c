// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"html"
	"strings"
)

// markup is HTML. Only constants and the functions below make it, so that a text cannot get into a page unescaped.
type markup string

// escaped returns a text as HTML.
func escaped(text string) markup { return markup(html.EscapeString(text)) }

// join returns HTML one after the other.
func join(parts ...markup) markup {
	var out strings.Builder
	for _, part := range parts {
		out.WriteString(string(part))
	}
	return markup(out.String())
}

// element returns an element of a class. Many mail programs ignore classes, so it also has the style of its class.
func element(name markup, class string, children ...markup) markup {
	return join("<", name, attributesOf(class), ">", join(children...), "</", name, ">\n")
}

// inline is element for texts: without a line end, which would be a space.
func inline(name markup, class string, children ...markup) markup {
	return join("<", name, attributesOf(class), ">", join(children...), "</", name, ">")
}

// anchor returns a link. The URL must have been checked.
func anchor(class, link string, children ...markup) markup {
	return join("<a", attributesOf(class), ` href="`, escaped(link), `">`, join(children...), "</a>")
}

// table returns a table for layout, which screen readers do not announce.
func table(class string, rows ...markup) markup {
	return join(
		`<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"`, attributesOf(class), ">\n", join(rows...), "</table>\n",
	)
}

// row returns a row of cells.
func row(cells ...markup) markup { return join("<tr>\n", join(cells...), "</tr>\n") }

// cell returns a cell of a table.
func cell(class string, children ...markup) markup { return element("td", class, children...) }

// attributesOf returns the attributes of a class.
func attributesOf(class string) markup {
	if class == "" {
		return ""
	}
	return join(` class="`, markup(class), `" style="`, markup(styles[class]), `"`)
}
