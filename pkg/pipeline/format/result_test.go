// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	pipelineformat "github.com/configbutler/slipstream/pkg/pipeline/format"
)

func judge(t *testing.T, format v1alpha1.PipelineFormat, path string, status int, header http.Header, body string) pipelineformat.Result {
	t.Helper()
	f, err := pipelineformat.ByName(format)
	if err != nil {
		t.Fatal(err)
	}
	return f.Interpret(pipelineformat.Call{Path: path}, status, header, []byte(body))
}

func TestStatuses(t *testing.T) {
	for status, want := range map[int]pipelineformat.Outcome{
		200: pipelineformat.Delivered, 201: pipelineformat.Delivered, 202: pipelineformat.Delivered, 204: pipelineformat.Delivered,
		301: pipelineformat.Rejected, 302: pipelineformat.Rejected, 304: pipelineformat.Rejected, 307: pipelineformat.Rejected,
		400: pipelineformat.Rejected, 401: pipelineformat.Rejected, 403: pipelineformat.Rejected,
		404: pipelineformat.Rejected, 405: pipelineformat.Rejected, 409: pipelineformat.Rejected,
		413: pipelineformat.Rejected, 415: pipelineformat.Rejected, 422: pipelineformat.Rejected,
		408: pipelineformat.Retry, 425: pipelineformat.Retry, 429: pipelineformat.Retry,
		500: pipelineformat.Retry, 501: pipelineformat.Retry, 502: pipelineformat.Retry,
		503: pipelineformat.Retry, 504: pipelineformat.Retry, 599: pipelineformat.Retry,
	} {
		for _, format := range formats {
			body := "because"
			if format == v1alpha1.PipelineFormatDotAI {
				body = `{"success":` + map[bool]string{true: "true", false: "false"}[status < 300] + `}`
			}
			got := judge(t, format, "", status, nil, body)
			if got.Outcome != want || !strings.Contains(got.Message, http.StatusText(status)) || !strings.Contains(got.Message, body) {
				t.Errorf("%s: %d: outcome = %s, message = %q; want %s with the status and the body", format, status, got.Outcome, got.Message, want)
			}
		}
	}
}

func TestRedirectsNameTheirTarget(t *testing.T) {
	header := http.Header{"Location": {"https://login.example.com/"}}
	for _, format := range formats {
		got := judge(t, format, "", http.StatusFound, header, "<html>moved</html>")
		if got.Outcome != pipelineformat.Rejected || !strings.Contains(got.Message, "https://login.example.com/") {
			t.Errorf("%s: redirect: outcome = %s, message = %q; want it rejected with its target", format, got.Outcome, got.Message)
		}
	}
}

func TestAnswersOfDotAI(t *testing.T) {
	const sync, tool = "/api/v1/resources/sync", "/api/v1/tools/manageOrgData"
	for name, c := range map[string]struct {
		path   string
		status int
		body   string
		want   pipelineformat.Outcome
		says   string
	}{
		"synced": {
			sync, 200, `{"success":true,"data":{"upserted":2,"deleted":1}}`, pipelineformat.Delivered, `"upserted":2`,
		},
		"in part": {
			sync, 400, `{"success":false,"error":{"code":"SYNC_PARTIAL_FAILURE","message":"Failed to process 1 resource(s)",
			"details":{"upserted":1,"deleted":0,"failures":[{"id":"circuit-breaker","error":"open"}]}}}`,
			pipelineformat.Retry, "Failed to process 1",
		},
		"in part, and cut off": {
			sync, 400, `{"success":false,"error":{"code":"SYNC_PARTIAL_FAILURE","message":"Failed to process 900 resource(s)","details":{"fail`,
			pipelineformat.Retry, "Failed to process 900",
		},
		"never to be taken": {
			sync, 400, `{"success":false,"error":{"code":"VALIDATION_ERROR","message":"Invalid request body","details":[
			{"path":"upserts[0].namespace","message":"required string field"}]}}`, pipelineformat.Rejected, "upserts[0].namespace",
		},
		"its database is down": {
			sync, 503, `{"success":false,"error":{"code":"VECTOR_DB_UNAVAILABLE","message":"no"}}`, pipelineformat.Retry, "VECTOR_DB",
		},
		"no success with 200": {
			sync, 200, `{"success":false,"error":{"code":"X","message":"not now"}}`, pipelineformat.Retry, "not now",
		},
		"a page of a proxy": {
			sync, 200, `<html>Please log in</html>`, pipelineformat.Retry, "not an answer of dot-ai",
		},
		"a proxy that is down": {
			sync, 502, `<html>Bad gateway</html>`, pipelineformat.Retry, "Bad gateway",
		},
		"nothing": {
			sync, 200, ``, pipelineformat.Retry, "not an answer of dot-ai",
		},
		"another JSON": {
			sync, 200, `["ok"]`, pipelineformat.Retry, "not an answer of dot-ai",
		},
		"not authorized": {
			sync, 401, `{"success":false,"error":{"code":"UNAUTHORIZED","message":"token"}}`, pipelineformat.Rejected, "UNAUTHORIZED",
		},
		"no such tool": {
			tool, 404, `{"success":false,"error":{"code":"TOOL_NOT_FOUND","message":"no"}}`, pipelineformat.Rejected, "TOOL_NOT_FOUND",
		},
		"the tool has thrown": {
			tool, 500, `{"success":false,"error":{"code":"EXECUTION_ERROR","message":"no"}}`, pipelineformat.Retry, "EXECUTION_ERROR",
		},
		"a tool without result": {
			tool, 200, `{"success":true,"data":{}}`, pipelineformat.Retry, "no result",
		},
		"a scan has begun": {
			tool, 200, `{"success":true,"data":{"result":{"success":true,"operation":"scan","status":"started",
			"message":"Scan initiated for 2 resource(s). Scan runs in background."},"tool":"manageOrgData"}}`, pipelineformat.Delivered,
			"Scan initiated for 2",
		},
		"a scan that cannot begin": {
			tool, 200, `{"success":true,"data":{"result":{"success":false,"operation":"scan",
			"error":{"message":"Vector DB (Qdrant) connection failed","details":"Cannot establish connection"}}}}`,
			pipelineformat.Retry, "Cannot establish",
		},
		"deleted": {
			tool, 200, `{"success":true,"data":{"result":{"success":true,"operation":"delete","message":"Capability deleted: A.b"}}}`,
			pipelineformat.Delivered, "Capability deleted: A.b",
		},
		"deleted before": {
			tool, 200, `{"success":true,"data":{"result":{"success":false,"operation":"delete",
			"error":{"message":"Capability not found for ID: 1","details":"Cannot delete capability that does not exist"}}}}`,
			pipelineformat.Delivered, "Capability not found",
		},
		"not deleted": {
			tool, 200, `{"success":true,"data":{"result":{"success":false,"operation":"delete",
			"error":{"message":"Failed to delete capability","details":"connection refused"}}}}`, pipelineformat.Retry, "connection refused",
		},
		"not permitted": {
			tool, 200, `{"success":true,"data":{"result":{"error":"FORBIDDEN","message":"Access denied","operation":"delete"}}}`,
			pipelineformat.Rejected, "Access denied",
		},
		"a result of another kind": {
			tool, 200, `{"success":true,"data":{"result":"ok"}}`, pipelineformat.Retry, "not an answer of dot-ai",
		},
	} {
		got := judge(t, v1alpha1.PipelineFormatDotAI, c.path, c.status, nil, c.body)
		if got.Outcome != c.want || !strings.Contains(got.Message, c.says) {
			t.Errorf("%s: outcome = %s, message = %q; want %s and %q", name, got.Outcome, got.Message, c.want, c.says)
		}
	}
}

// FuzzJudge checks that every response has one of three outcomes, and that an error status is never a success.
func FuzzJudge(f *testing.F) {
	f.Add(true, 200, `{"success":true,"data":{"result":{"success":true}}}`)
	f.Add(true, 200, `{"success":true,"data":{"result":{"error":"FORBIDDEN"}}}`)
	f.Add(false, 400, `{"success":false,"error":{"code":"SYNC_PARTIAL_FAILURE","details":{}}}`)
	f.Add(false, 302, `null`)
	f.Fuzz(func(t *testing.T, tool bool, status int, body string) {
		path := "/api/v1/resources/sync"
		if tool {
			path = "/api/v1/tools/manageOrgData"
		}
		for _, format := range formats {
			got := judge(t, format, path, status, nil, body).Outcome
			if got != pipelineformat.Retry && got != pipelineformat.Rejected && (got != pipelineformat.Delivered || status/100 != 2) {
				t.Errorf("%s: %d %q is %q", format, status, body, got)
			}
		}
	})
}
