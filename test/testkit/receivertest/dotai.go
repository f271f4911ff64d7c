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
	return endpoint{}, []string{"there is nothing at " + path}
}

func readDotAIInstances(body []byte) (told telling, err error) {
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
	told.answer = func(int) reply {
		return replyJSON(http.StatusOK, map[string]any{
			"success": true, "data": map[string]any{"upserted": len(payload.Upserts), "deleted": len(payload.Deletes)},
		})
	}
	return told, nil
}

// toolCall is a scan, or a deletion.
type toolCall struct{ Operation, ResourceList, ID, Collection string }

// dotAITool reads what is meant before it knows what may be in it.
func dotAITool(body []byte) endpoint {
	fields := map[string]shape{"dataType": exactly("capabilities"), "operation": text, "collection": text}
	var call toolCall
	// What cannot be read has not the shape either.
	_ = json.Unmarshal(body, &call)
	if call.Operation == "delete" {
		fields["id"] = text
		return endpoint{shape: object(fields), read: readDeletion}
	}
	fields["operation"], fields["resourceList"] = exactly("scan"), text
	return endpoint{shape: object(fields), read: readScan, most: 200}
}

func readScan(body []byte) (told telling, err error) {
	var call toolCall
	if err := json.Unmarshal(body, &call); err != nil {
		return telling{}, err
	}
	names := strings.Split(call.ResourceList, ",")
	for _, name := range names {
		if kind, group, found := strings.Cut(name, "."); !found || kind == "" || group == "" || strings.TrimSpace(name) != name {
			return telling{}, fmt.Errorf("%q in resourceList must be Kind.group", name)
		}
		if err := told.add(capability(name), entry{name: name}); err != nil {
			return telling{}, err
		}
	}
	told.answer = func(int) reply {
		return toolReply(map[string]any{
			"success": true, "operation": "scan", "status": "started",
			"message": fmt.Sprintf("Scan initiated for %d resource(s). Scan runs in background.", len(names)),
		})
	}
	return told, nil
}

// readDeletion answers that what is not known is not found, and not 404.
func readDeletion(body []byte) (telling, error) {
	var call toolCall
	if err := json.Unmarshal(body, &call); err != nil {
		return telling{}, err
	}
	return telling{deletes: []string{call.ID}, answer: func(known int) reply {
		if known == 0 {
			return toolReply(map[string]any{
				"success": false, "operation": "delete", "error": map[string]any{"message": "Capability not found for ID: " + call.ID},
			})
		}
		return toolReply(map[string]any{"success": true, "operation": "delete", "message": "Capability deleted: " + call.ID})
	}}, nil
}

// toolReply is a result of a tool. The answer is a success whatever the result is.
func toolReply(result map[string]any) reply {
	return replyJSON(http.StatusOK, map[string]any{"success": true, "data": map[string]any{"result": result, "tool": "manageOrgData"}})
}

// capability is under what dot-ai keeps what it has found out.
func capability(name string) string {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("capability-"+name)))
	return fmt.Sprintf("%s-%s-%s-%s-%s", sum[:8], sum[8:12], sum[12:16], sum[16:20], sum[20:32])
}
