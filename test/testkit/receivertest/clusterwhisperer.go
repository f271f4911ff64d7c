// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// instance has the fields of all formats.
type instance struct {
	Object
	ID, Namespace, Name, Kind, APIVersion, APIGroup string
}

// name returns the name by which tests identify the instance.
func (i instance) name() string {
	namespace := i.Namespace
	if namespace == "" {
		namespace = "_cluster"
	}
	return strings.Join([]string{namespace, i.APIVersion, i.Kind, i.Name}, "/")
}

func clusterWhisperer(_ *http.Request, path string, _ []byte) (endpoint, []string) {
	switch path {
	case "/api/v1/instances/sync":
		return endpoint{read: readWhispererInstances, shape: object(map[string]shape{
			"upserts": list(object(map[string]shape{
				"id": text, "namespace": text, "name": text, "kind": text, "apiVersion": text, "apiGroup": anyText,
				"labels": labels, "annotations": annotations, "createdAt": moment,
			})),
			"deletes": list(text),
		})}, nil
	case "/api/v1/capabilities/scan":
		return endpoint{read: readWhispererNames, most: 200, shape: object(map[string]shape{
			"upserts": list(text), "deletes": list(text),
		})}, nil
	}
	return endpoint{}, []string{"unknown path " + path}
}

func readWhispererInstances(body []byte) (received changes, err error) {
	var payload struct {
		Upserts []instance
		Deletes []string
	}
	if err := json.Unmarshal(body, &payload); err != nil {
		return changes{}, err
	}
	for _, upsert := range payload.Upserts {
		if upsert.ID != upsert.name() {
			return changes{}, fmt.Errorf("the id of %s is %s", upsert.name(), upsert.ID)
		}
		if group, _, found := strings.Cut(upsert.APIVersion, "/"); found && group != upsert.APIGroup || !found && upsert.APIGroup != "" {
			return changes{}, fmt.Errorf("the group of %s is %q", upsert.ID, upsert.APIGroup)
		}
		if err := received.add(upsert.ID, entry{upsert.ID, upsert.Object}); err != nil {
			return changes{}, err
		}
	}
	received.deletes = payload.Deletes
	received.answer = func(int) reply {
		return replyJSON(http.StatusOK, map[string]any{"status": "ok", "upserted": len(payload.Upserts), "deleted": len(payload.Deletes)})
	}
	return received, nil
}

func readWhispererNames(body []byte) (received changes, err error) {
	var payload struct{ Upserts, Deletes []string }
	if err := json.Unmarshal(body, &payload); err != nil {
		return changes{}, err
	}
	for _, name := range payload.Upserts {
		if err := received.add(name, entry{name: name}); err != nil {
			return changes{}, err
		}
	}
	received.deletes = payload.Deletes
	received.answer = func(int) reply {
		return replyJSON(http.StatusAccepted, map[string]any{
			"status": "accepted", "upserts": len(payload.Upserts), "deletes": len(payload.Deletes),
		})
	}
	return received, nil
}
