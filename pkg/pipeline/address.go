// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// addressOf returns a hash of the parts of a sink's spec that determine the receiver and the format. A sink with another address starts
// with an empty ledger. It is a hash because keys of rows cannot contain the characters of a URL.
func addressOf(sink *v1alpha1.PipelineSink) string {
	var text []byte
	switch {
	case sink.HTTP != nil:
		text = fmt.Appendf(nil, "http %q %q %q", sink.HTTP.URL, sink.HTTP.Format, sink.HTTP.Collection)
	case sink.Job != nil:
		text = fmt.Appendf(nil, "job %q", sink.Job.Namespace)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// prefixOf returns the prefix of the rows of a sink's ledger.
func prefixOf(pipeline *v1alpha1.SyncPipeline, sink *v1alpha1.PipelineSink) string {
	return ledgerPrefix(string(pipeline.UID), sink.Name, addressOf(sink))
}
