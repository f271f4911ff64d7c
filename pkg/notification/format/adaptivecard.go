// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

// cardElement is an element of an Adaptive Card: a Container, a ColumnSet or a RichTextBlock.
type cardElement struct {
	Type    string        `json:"type"`
	Style   string        `json:"style,omitempty"`
	Bleed   bool          `json:"bleed,omitempty"`
	Spacing string        `json:"spacing,omitempty"`
	Items   []cardElement `json:"items,omitempty"`
	Columns []cardColumn  `json:"columns,omitempty"`
	Inlines []cardRun     `json:"inlines,omitempty"`
}

// cardColumn is a column of a ColumnSet.
type cardColumn struct {
	Type  string        `json:"type"`
	Width string        `json:"width"`
	Items []cardElement `json:"items"`
}

// cardRun is a text in a RichTextBlock. Markdown in it is not read.
type cardRun struct {
	Type         string      `json:"type"`
	Text         string      `json:"text"`
	Size         string      `json:"size,omitempty"`
	Weight       string      `json:"weight,omitempty"`
	Color        string      `json:"color,omitempty"`
	FontType     string      `json:"fontType,omitempty"`
	IsSubtle     bool        `json:"isSubtle,omitempty"`
	Italic       bool        `json:"italic,omitempty"`
	SelectAction *cardAction `json:"selectAction,omitempty"`
}

// cardAction opens a URL.
type cardAction struct {
	Type  string `json:"type"`
	Title string `json:"title,omitempty"`
	URL   string `json:"url"`
}

func openURL(title, link string) cardAction {
	return cardAction{Type: "Action.OpenUrl", Title: title, URL: link}
}

// richText returns texts that follow each other.
func richText(runs ...cardRun) cardElement {
	for i := range runs {
		runs[i].Type = "TextRun"
	}
	return cardElement{Type: "RichTextBlock", Inlines: runs}
}

// tight returns an element without space above it.
func (e cardElement) tight() cardElement {
	e.Spacing = "None"
	return e
}

// code returns a text in a font with a fixed width.
func code(text string) cardRun { return cardRun{Text: text, FontType: "Monospace"} }

func (r cardRun) coloured(color string) cardRun {
	r.Color = color
	return r
}

// linked returns a text that opens a URL, if there is one.
func linked(text, link string) cardRun {
	run := cardRun{Text: text}
	if link != "" {
		action := openURL("", link)
		run.SelectAction, run.Color = &action, "Accent"
	}
	return run
}
