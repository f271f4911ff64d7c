// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

func dotAI(_ *http.Request, path string, body []byte) (endpoint, []string) {
	switch path {
	case "/api/v1/resources/sync":
		return endpoint{read: readDotAIInstances, shape: object(map[string]shape{
			"upserts": list(object(map[string]shape{
				"namespace": text, "name": text, "kind": text, "apiVersion": text,
				"labels": labels, "annotations": annotations, "createdAt": moment, "updatedAt": moment,
			})),
			"deletes":  list(object(map[string]shape{"namespace": text, "name": text, "kind": text, "apiVersion": text})),
			"isResync": exactly(false),
		})}, nil
	case "/api/v1/tools/manageOrgData":
		return dotAITool(body), nil
	}
	return endpoint{}, []string{"unknown path " + path}
}

func readDotAIInstances(body []byte) (received changes, err error) {
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
	received.answer = func(int) reply {
		return replyJSON(http.StatusOK, map[string]any{
			"success": true, "data": map[string]any{"upserted": len(payload.Upserts), "deleted": len(payload.Deletes)},
		})
	}
	return received, nil
}

// toolCall is a scan or a deletion.
type toolCall struct{ Operation, ResourceList, ID, Collection string }

// dotAITool decodes the operation first, because the allowed fields depend on it.
func dotAITool(body []byte) endpoint {
	fields := map[string]shape{"dataType": exactly("capabilities"), "operation": text, "collection": text}
	var call toolCall
	// A call that cannot be decoded does not have the shape, either.
	_ = json.Unmarshal(body, &call)
	if call.Operation == "delete" {
		fields["id"] = text
		return endpoint{shape: object(fields), read: readDeletion}
	}
	fields["operation"], fields["resourceList"] = exactly("scan"), text
	return endpoint{shape: object(fields), read: readScan, most: 200}
}

func readScan(body []byte) (received changes, err error) {
	var call toolCall
	if err := json.Unmarshal(body, &call); err != nil {
		return changes{}, err
	}
	names := strings.Split(call.ResourceList, ",")
	for _, name := range names {
		if kind, group, found := strings.Cut(name, "."); !found || kind == "" || group == "" || strings.TrimSpace(name) != name {
			return changes{}, fmt.Errorf("%q in resourceList must be Kind.group", name)
		}
		if err := received.add(capability(name), entry{name: name}); err != nil {
			return changes{}, err
		}
	}
	received.answer = func(int) reply {
		return toolReply(map[string]any{
			"success": true, "operation": "scan", "status": "started",
			"message": fmt.Sprintf("Scan initiated for %d resource(s). Scan runs in background.", len(names)),
		})
	}
	return received, nil
}

// readDeletion responds to the deletion of an unknown object with an error in the result, and not with 404.
func readDeletion(body []byte) (changes, error) {
	var call toolCall
	if err := json.Unmarshal(body, &call); err != nil {
		return changes{}, err
	}
	return changes{deletes: []string{call.ID}, answer: func(known int) reply {
		if known == 0 {
			return toolReply(map[string]any{
				"success": false, "operation": "delete", "error": map[string]any{"message": "Capability not found for ID: " + call.ID},
			})
		}
		return toolReply(map[string]any{"success": true, "operation": "delete", "message": "Capability deleted: " + call.ID})
	}}, nil
}

// toolReply returns the response with the result of a tool. Its status is a success, whatever the result is.
func toolReply(result map[string]any) reply {
	return replyJSON(http.StatusOK, map[string]any{"success": true, "data": map[string]any{"result": result, "tool": "manageOrgData"}})
}

// capability returns the id under which dot-ai stores the result of a scan.
func capability(name string) string {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("capability-"+name)))
	return fmt.Sprintf("%s-%s-%s-%s-%s", sum[:8], sum[8:12], sum[12:16], sum[16:20], sum[20:32])
}
