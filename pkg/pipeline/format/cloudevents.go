// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"net/http"
	"time"

	"github.com/configbutler/slipstream/pkg/kube/cloudevent"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// cloudEvents is CloudEvents 1.0 over HTTP in binary mode: a batch is one event, with attributes as headers and data as the body.
type cloudEvents struct{}

var _ Format = cloudEvents{}

func (cloudEvents) Calls(batch item.Batch, source Source) ([]Call, error) {
	if len(batch.Upserts)+len(batch.Deletes) == 0 {
		return nil, nil
	}
	call, err := newCall("", changesOf(batch), batch.Keys())
	if err != nil {
		return nil, err
	}
	cloudevent.SetAttributes(call.Header, attributes(batch, source))
	return []Call{call}, nil
}

func (cloudEvents) Interpret(_ Call, status int, header http.Header, body []byte) Result {
	return resultOf(status, header, body)
}

// attributes returns the attributes of the event. The sequence extension orders the events of a source lexicographically, so its numbers
// have a fixed length.
func attributes(batch item.Batch, source Source) map[string]string {
	all := map[string]string{
		"specversion": "1.0",
		"id":          batch.ID,
		"source":      "/apis/configbutler.ai/v1alpha1/syncpipelines/" + source.Pipeline + "/sinks/" + source.Sink,
		"subject":     source.Pipeline,
		"type":        "ai.configbutler.instances.changed",
		"sequence":    fmt.Sprintf("%020d", batch.Sequence),
	}
	if batch.Kind == item.CustomResourceDefinition {
		all["type"] = "ai.configbutler.crd.changed"
	}
	if !batch.At.IsZero() {
		all["time"] = batch.At.UTC().Format(time.RFC3339Nano)
	}
	return all
}
