// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// dotAIResponse is a response of dot-ai. It contains the result of a tool, which can be a failure although the response is a success.
type dotAIResponse struct {
	Success bool `json:"success"`
	Data    struct {
		Result *dotAIResult `json:"result"`
	} `json:"data"`
}

type dotAIResult struct {
	Success   bool        `json:"success"`
	Operation string      `json:"operation"`
	Message   string      `json:"message"`
	Error     *dotAIError `json:"error"`
}

// dotAIError is an object, or a string with only the code, whose message is then in the result.
type dotAIError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details"`
}

// UnmarshalJSON decodes either form.
func (e *dotAIError) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &e.Code) == nil {
		return nil
	}
	type object dotAIError
	return json.Unmarshal(text, (*object)(e))
}

// Interpret reads the body whatever the status is: dot-ai responds with 200 when a tool fails, and with 400 both to calls that it will
// never accept and to those that it has processed in part because one of its dependencies is down.
func (dotAI) Interpret(call Call, status int, header http.Header, body []byte) Result {
	result := resultOf(status, header, body)
	if result.Outcome != Delivered {
		// The body is not decoded: it lists all failures, and may be truncated.
		if bytes.Contains(body, []byte(`"SYNC_PARTIAL_FAILURE"`)) {
			result.Outcome = Retry
		}
		return result
	}
	var response dotAIResponse
	switch err := json.Unmarshal(body, &response); {
	case err != nil:
		return Result{Outcome: Retry, Message: "not an answer of dot-ai: " + result.Message}
	case !response.Success:
		return Result{Outcome: Retry, Message: result.Message}
	case call.Path == dotAIToolPath:
		return toolResult(status, response.Data.Result)
	}
	return result
}

// toolResult interprets the result of a tool. The deletion of an unknown capability is a success.
func toolResult(status int, result *dotAIResult) Result {
	if result == nil {
		return Result{Outcome: Retry, Message: statusText(status) + ": the answer of dot-ai has no result"}
	}
	text := fmt.Sprintf("%s: %s", statusText(status), result.Message)
	switch failure := result.Error; {
	case result.Success:
		return Result{Outcome: Delivered, Message: text}
	case failure == nil:
		return Result{Outcome: Retry, Message: text}
	case failure.Code == "FORBIDDEN":
		return Result{Outcome: Rejected, Message: text}
	case result.Operation == "delete" && strings.HasPrefix(failure.Message, "Capability not found"):
		return Result{Outcome: Delivered, Message: statusText(status) + ": " + failure.Message}
	default:
		return Result{Outcome: Retry, Message: fmt.Sprintf("%s: %s: %s", statusText(status), failure.Message, failure.Details)}
	}
}
