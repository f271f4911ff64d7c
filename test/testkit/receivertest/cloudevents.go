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

// cloudEvents decodes the event with the SDK. Its type determines the endpoint.
func cloudEvents(request *http.Request, path string, body []byte) (endpoint, []string) {
	if path != "" && path != "/" {
		return endpoint{}, []string{"unknown path " + path}
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

func readEventInstances(body []byte) (received changes, err error) {
	var payload struct{ Upserts, Deletes []instance }
	if err := json.Unmarshal(body, &payload); err != nil {
		return changes{}, err
	}
	for _, upsert := range payload.Upserts {
		if err := received.add(upsert.name(), entry{upsert.name(), upsert.Object}); err != nil {
			return changes{}, err
		}
	}
	for _, deleted := range payload.Deletes {
		received.deletes = append(received.deletes, deleted.name())
	}
	received.answer = acknowledge
	return received, nil
}

// readEventDefinitions treats definitions with the same name and different kinds as different.
func readEventDefinitions(body []byte) (received changes, err error) {
	var payload struct{ Upserts, Deletes []struct{ Name, Kind string } }
	if err := json.Unmarshal(body, &payload); err != nil {
		return changes{}, err
	}
	for _, upsert := range payload.Upserts {
		if err := received.add(upsert.Kind+" "+upsert.Name, entry{name: upsert.Name}); err != nil {
			return changes{}, err
		}
	}
	for _, deleted := range payload.Deletes {
		received.deletes = append(received.deletes, deleted.Kind+" "+deleted.Name)
	}
	received.answer = acknowledge
	return received, nil
}

func acknowledge(int) reply { return reply{code: http.StatusNoContent} }
