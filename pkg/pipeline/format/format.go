// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// Format is the API of a consumer.
type Format interface {
	// Calls encodes a batch as calls, in the order in which they must be made. An empty batch makes none.
	Calls(batch item.Batch, source Source) ([]Call, error)
	// Interpret returns the result of a call from its response. The first 64 KiB of the body are enough.
	Interpret(call Call, status int, header http.Header, body []byte) Result
}

// Call is a POST request.
type Call struct {
	// Path begins with a slash and is appended to the path of the sink's URL. It is empty when the request is for that URL.
	Path   string
	Header http.Header
	Body   []byte
	// Keys are the changes that the call contains.
	Keys []item.Key
}

// ByName returns the format of a name.
func ByName(name v1alpha1.PipelineFormat) (Format, error) {
	switch name {
	case v1alpha1.PipelineFormatClusterWhisperer:
		return clusterWhisperer{}, nil
	case v1alpha1.PipelineFormatDotAI:
		return dotAI{}, nil
	case v1alpha1.PipelineFormatCloudEvents:
		return cloudEvents{}, nil
	}
	return nil, fmt.Errorf("format %q is not known", name)
}

// newCall returns a call with the payload as JSON.
func newCall(path string, payload any, keys []item.Key) (Call, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return Call{}, fmt.Errorf("write a call to %q: %w", path, err)
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json")
	return Call{Path: path, Header: header, Body: body, Keys: keys}, nil
}

// one returns a list of one call.
func one(call Call, err error) ([]Call, error) {
	if err != nil {
		return nil, err
	}
	return []Call{call}, nil
}
