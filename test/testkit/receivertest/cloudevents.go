// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	cloudhttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// cloudEvents reads a call with the SDK, and goes by the type of the event.
func cloudEvents(request *http.Request, path string, body []byte) (endpoint, []string) {
	if path != "" && path != "/" {
		return endpoint{}, []string{"there is nothing at " + path}
	}
	event := request.Clone(request.Context())
	event.Body = io.NopCloser(bytes.NewReader(body))
	read, err := cloudhttp.NewEventFromHTTPRequest(event)
	if err != nil {
		return endpoint{}, []string{"not an event: " + err.Error()}
	}
	if err := read.Validate(); err != nil {
		return endpoint{}, []string{"not a valid event: " + err.Error()}
	}
	if request.Header.Get("Ce-Datacontenttype") != "" {
		return endpoint{}, []string{"the content type must not be an attribute's header as well"}
	}
	return byType(read.Type())
}

func byType(name string) (endpoint, []string) {
	identity := map[string]shape{"apiVersion": text, "kind": text, "namespace": anyText, "name": text}
	switch name {
	case "ai.configbutler.instances.changed":
		whole := map[string]shape{
			"uid": text, "labels": labels, "annotations": annotations, "createdAt": moment, "updatedAt": moment,
		}
		for field, shape := range identity {
			whole[field] = shape
		}
		return endpoint{read: readEventInstances, shape: object(map[string]shape{
			"upserts": list(object(whole)), "deletes": list(object(identity)),
		})}, nil
	case "ai.configbutler.crd.changed":
		definition := object(map[string]shape{"name": text, "group": text, "kind": text})
		return endpoint{read: readEventDefinitions, shape: object(map[string]shape{
			"upserts": list(definition), "deletes": list(definition),
		})}, nil
	}
	return endpoint{}, []string{fmt.Sprintf("the type of the event is %q", name)}
}

func readEventInstances(body []byte) (told telling, err error) {
	var payload struct{ Upserts, Deletes []instance }
	if err := json.Unmarshal(body, &payload); err != nil {
		return telling{}, err
	}
	for _, upsert := range payload.Upserts {
		if err := told.add(upsert.name(), entry{upsert.name(), upsert.Object}); err != nil {
			return telling{}, err
		}
	}
	for _, gone := range payload.Deletes {
		told.deletes = append(told.deletes, gone.name())
	}
	told.answer = acknowledge
	return told, nil
}

// readEventDefinitions takes a definition of the same name, and of another kind, for another one.
func readEventDefinitions(body []byte) (told telling, err error) {
	var payload struct{ Upserts, Deletes []struct{ Name, Kind string } }
	if err := json.Unmarshal(body, &payload); err != nil {
		return telling{}, err
	}
	for _, upsert := range payload.Upserts {
		if err := told.add(upsert.Kind+" "+upsert.Name, entry{name: upsert.Name}); err != nil {
			return telling{}, err
		}
	}
	for _, gone := range payload.Deletes {
		told.deletes = append(told.deletes, gone.Kind+" "+gone.Name)
	}
	told.answer = acknowledge
	return told, nil
}

func acknowledge(int) reply { return reply{code: http.StatusNoContent} }
