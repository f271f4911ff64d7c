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

// format reads calls: it finds the endpoint that is meant.
type format func(request *http.Request, path string, body []byte) (endpoint, []string)

// endpoint takes one kind of call.
type endpoint struct {
	shape shape
	// read reads a body of that shape.
	read func(body []byte) (telling, error)
	// most is how many a call may name; 0 is no limit.
	most int
}

var formats = map[v1alpha1.PipelineFormat]format{
	v1alpha1.PipelineFormatClusterWhisperer: clusterWhisperer,
	v1alpha1.PipelineFormatDotAI:            dotAI,
	v1alpha1.PipelineFormatCloudEvents:      cloudEvents,
}

// check reads a call, or says all that is wrong with it.
func (r *Receiver) check(request *http.Request, body []byte) (telling, []string) {
	if faults := checkRequest(request); len(faults) > 0 {
		return telling{}, faults
	}
	path, below := strings.CutPrefix(request.URL.Path, r.prefix)
	if !below || request.URL.RawQuery != "" {
		return telling{}, []string{"there is nothing at " + request.URL.RequestURI()}
	}
	endpoint, faults := r.format(request, path, body)
	if len(faults) > 0 {
		return telling{}, faults
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

func (e endpoint) check(body []byte) (telling, []string) {
	value, err := parse(body)
	if err != nil {
		return telling{}, []string{"the body is not JSON: " + err.Error()}
	}
	if faults := e.shape("body", value); len(faults) > 0 {
		return telling{}, faults
	}
	told, err := e.read(body)
	if err != nil {
		return telling{}, []string{err.Error()}
	}
	return told, e.count(told)
}

// parse reads one value of JSON, after which nothing comes.
func parse(body []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, fmt.Errorf("something comes after the value")
	}
	return value, nil
}

func (e endpoint) count(told telling) (faults []string) {
	count := len(told.upserts) + len(told.deletes)
	if count == 0 {
		faults = append(faults, "nothing is told")
	}
	if e.most > 0 && count > e.most {
		faults = append(faults, fmt.Sprintf("%d names are told, must be at most %d", count, e.most))
	}
	sorted := slices.Sorted(slices.Values(told.deletes))
	for at, id := range sorted {
		if _, found := told.upserts[id]; found || at > 0 && sorted[at-1] == id {
			faults = append(faults, id+" is told of twice")
		}
	}
	return faults
}

// add notes an upsert, unless there is one already.
func (t *telling) add(id string, object entry) error {
	if _, found := t.upserts[id]; found {
		return fmt.Errorf("%s is told of twice", object.name)
	}
	if t.upserts == nil {
		t.upserts = map[string]entry{}
	}
	t.upserts[id] = object
	return nil
}
