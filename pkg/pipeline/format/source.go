// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

// Source identifies the pipeline and the sink of a batch.
type Source struct {
	Pipeline, Sink string
	// Collection is where DotAI stores the capabilities of definitions.
	Collection string
}

// notNil returns the map, or an empty one: consumers get {} and never null.
func notNil(texts map[string]string) map[string]string {
	if texts == nil {
		return map[string]string{}
	}
	return texts
}
