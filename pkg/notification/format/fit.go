// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"sort"

	"github.com/configbutler/slipstream/pkg/notification/message"
)

// encode returns a value as JSON in UTF-8, in which < and & are not escaped: receivers count characters.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// largest returns the largest number of items up to most that fit, where fewer items need less space. It is 0 if not even one
// fits: the other parts of a message have limits of their own, and always fit.
func largest(most int, fits func(items int) bool) int {
	return sort.Search(most, func(items int) bool { return !fits(items + 1) })
}

// fit returns the largest document of at most limit bytes that write returns for a number of items up to most.
func fit(most, limit int, write func(items int) ([]byte, error)) ([]byte, error) {
	return write(largest(most, func(items int) bool {
		document, err := write(items)
		return err == nil && len(document) <= limit
	}))
}

// items returns the number of items of a message that a format may leave out: notifications of a digest, or changed fields.
func items(m *message.Message, notifications int) int {
	if isDigest(m) {
		return min(len(m.Notifications), notifications)
	}
	return message.MaxFields
}

// isDigest reports whether a message is shown as a digest.
func isDigest(m *message.Message) bool { return m.IsDigest() || len(m.Notifications) > 1 }

// runs returns the values of a fact with commas between them, with as few texts as possible.
func runs(fact message.Fact) []message.Value {
	var texts []message.Value
	for i, value := range fact.Values {
		if i > 0 {
			texts = appendRun(texts, message.Value{Text: ", "})
		}
		texts = appendRun(texts, value)
	}
	return texts
}

// appendRun appends a text, to the last one if neither is a link.
func appendRun(texts []message.Value, next message.Value) []message.Value {
	if last := len(texts) - 1; last >= 0 && texts[last].URL == "" && next.URL == "" {
		texts[last].Text += next.Text
		return texts
	}
	return append(texts, next)
}

// limited returns a view with at most that many differences.
func limited(v message.View, differences int) message.View {
	shown := min(len(v.Differences), differences)
	v.MoreDifferences += len(v.Differences) - shown
	v.Differences = v.Differences[:shown]
	return v
}
