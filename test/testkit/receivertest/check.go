// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// format returns the endpoint of a call in one format, or the faults of the call.
type format func(request *http.Request, path string, body []byte) (endpoint, []string)

// endpoint decodes one kind of call.
type endpoint struct {
	shape shape
	// read decodes a body of that shape.
	read func(body []byte) (changes, error)
	// most is the maximum number of objects in a call; 0 means no limit.
	most int
}

var formats = map[v1alpha1.PipelineFormat]format{
	v1alpha1.PipelineFormatClusterWhisperer: clusterWhisperer,
	v1alpha1.PipelineFormatDotAI:            dotAI,
	v1alpha1.PipelineFormatCloudEvents:      cloudEvents,
}

// check decodes a call, or returns all its faults.
func (r *Receiver) check(request *http.Request, body []byte) (changes, []string) {
	if faults := checkRequest(request); len(faults) > 0 {
		return changes{}, faults
	}
	path, below := strings.CutPrefix(request.URL.Path, r.prefix)
	if !below || request.URL.RawQuery != "" {
		return changes{}, []string{"unknown path " + request.URL.RequestURI()}
	}
	endpoint, faults := r.format(request, path, body)
	if len(faults) > 0 {
		return changes{}, faults
	}
	return endpoint.check(body)
}

func checkRequest(request *http.Request) (faults []string) {
	if request.Method != http.MethodPost {
		faults = append(faults, "the method is "+request.Method+", must be POST")
	}
	if got := request.Header.Get("Content-Type"); got != "application/json" {
		faults = append(faults, fmt.Sprintf("the content type is %q, must be application/json", got))
	}
	return faults
}

func (e endpoint) check(body []byte) (changes, []string) {
	value, err := parse(body)
	if err != nil {
		return changes{}, []string{"the body is not JSON: " + err.Error()}
	}
	if faults := e.shape("body", value); len(faults) > 0 {
		return changes{}, faults
	}
	received, err := e.read(body)
	if err != nil {
		return changes{}, []string{err.Error()}
	}
	return received, e.count(received)
}

// parse decodes a single JSON value.
func parse(body []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, fmt.Errorf("data follows the JSON value")
	}
	return value, nil
}

func (e endpoint) count(received changes) (faults []string) {
	count := len(received.upserts) + len(received.deletes)
	if count == 0 {
		faults = append(faults, "the call has no objects")
	}
	if e.most > 0 && count > e.most {
		faults = append(faults, fmt.Sprintf("%d objects, must be at most %d", count, e.most))
	}
	sorted := slices.Sorted(slices.Values(received.deletes))
	for at, id := range sorted {
		if _, found := received.upserts[id]; found || at > 0 && sorted[at-1] == id {
			faults = append(faults, id+" occurs twice")
		}
	}
	return faults
}

// add adds an upsert, unless the object already has one.
func (c *changes) add(id string, object entry) error {
	if _, found := c.upserts[id]; found {
		return fmt.Errorf("%s occurs twice", object.name)
	}
	if c.upserts == nil {
		c.upserts = map[string]entry{}
	}
	c.upserts[id] = object
	return nil
}
