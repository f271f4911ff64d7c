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

// fit returns the largest document of at most limit bytes that write returns for a number of items up to most. The size must grow
// with the number. Without any item, the document may be larger: the other parts have limits of their own.
func fit(most, limit int, write func(items int) ([]byte, error)) ([]byte, error) {
	var failed error
	items := sort.Search(most, func(items int) bool {
		body, err := write(items + 1)
		if err != nil {
			failed = err
		}
		return len(body) > limit
	})
	if failed != nil {
		return nil, failed
	}
	return write(items)
}

// isDigest reports whether a message is shown as a digest.
func isDigest(m *message.Message) bool { return m.IsDigest() || len(m.Notifications) > 1 }

// limited returns a view with at most that many differences.
func limited(v message.View, differences int) message.View {
	shown := min(len(v.Differences), differences)
	v.MoreDifferences += len(v.Differences) - shown
	v.Differences = v.Differences[:shown]
	return v
}
