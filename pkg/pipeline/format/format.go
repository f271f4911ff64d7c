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

// Format is what a consumer understands.
type Format interface {
	// Calls are the requests that tell a consumer of the batch, in the order in which they are to be made. A batch in which nothing is
	// makes none.
	Calls(batch Batch, source Source) ([]Call, error)
	// Judge says what an answer to a call means, whatever its status. Of the body, the first 64 KiB are enough.
	Judge(call Call, status int, header http.Header, body []byte) Verdict
}

// Call is a POST request.
type Call struct {
	// Path begins with a slash and comes after that of the sink's URL; when it is empty the request is for that URL.
	Path   string
	Header http.Header
	Body   []byte
	// Keys are what the call tells of.
	Keys []item.Key
}

// ByName finds a format.
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

// newCall is a request whose body is the payload as JSON.
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

// one is the call alone, as a list.
func one(call Call, err error) ([]Call, error) {
	if err != nil {
		return nil, err
	}
	return []Call{call}, nil
}
