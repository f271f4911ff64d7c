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

// dotAIAnswer is what dot-ai answers. What a tool says is within, and the tool may have failed although the answer is a success.
type dotAIAnswer struct {
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

// dotAIError is an object, or a code alone with the message beside it.
type dotAIError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details"`
}

// UnmarshalJSON reads either form.
func (e *dotAIError) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &e.Code) == nil {
		return nil
	}
	type object dotAIError
	return json.Unmarshal(text, (*object)(e))
}

// Judge looks into the answer whatever its status is: dot-ai answers 200 when a tool could not do what it was told, and 400 both to what
// it will never take and to what it has done in part because something that it needs is down.
func (dotAI) Judge(call Call, status int, header http.Header, body []byte) Verdict {
	verdict := byStatus(status, header, body)
	if verdict.Outcome != Delivered {
		// It names all that has failed after that, which may be more than was read.
		if bytes.Contains(body, []byte(`"SYNC_PARTIAL_FAILURE"`)) {
			verdict.Outcome = Retry
		}
		return verdict
	}
	var answer dotAIAnswer
	switch err := json.Unmarshal(body, &answer); {
	case err != nil:
		return Verdict{Outcome: Retry, Text: "not an answer of dot-ai: " + verdict.Text}
	case !answer.Success:
		return Verdict{Outcome: Retry, Text: verdict.Text}
	case call.Path == dotAIToolPath:
		return judgeTool(status, answer.Data.Result)
	}
	return verdict
}

// judgeTool says what a tool's result means. What was to be forgotten and is not known is forgotten already.
func judgeTool(status int, result *dotAIResult) Verdict {
	if result == nil {
		return Verdict{Outcome: Retry, Text: statusText(status) + ": the answer of dot-ai has no result"}
	}
	text := fmt.Sprintf("%s: %s", statusText(status), result.Message)
	switch failure := result.Error; {
	case result.Success:
		return Verdict{Outcome: Delivered, Text: text}
	case failure == nil:
		return Verdict{Outcome: Retry, Text: text}
	case failure.Code == "FORBIDDEN":
		return Verdict{Outcome: Rejected, Text: text}
	case result.Operation == "delete" && strings.HasPrefix(failure.Message, "Capability not found"):
		return Verdict{Outcome: Delivered, Text: statusText(status) + ": " + failure.Message}
	default:
		return Verdict{Outcome: Retry, Text: fmt.Sprintf("%s: %s: %s", statusText(status), failure.Message, failure.Details)}
	}
}
