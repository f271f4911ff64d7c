// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/kube/apierror"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// refusalsOf returns why the API server refuses an object, none if the error is not a refusal.
func refusalsOf(o Object, err error) []Refusal {
	status := statusOf(err)
	if status == nil || !isRefusal(status) {
		return nil
	}
	if details := status.Details; details != nil && len(details.Causes) > 0 {
		refusals := make([]Refusal, len(details.Causes))
		for i, cause := range details.Causes {
			refusals[i] = Refusal{Object: o, Field: cause.Field, Message: o.message(cause.Type, cause.Message)}
		}
		return refusals
	}
	if match := schemaError.FindStringSubmatch(status.Message); match != nil {
		return o.schemaRefusals(match[1])
	}
	refusal := Refusal{Object: o, Message: o.message("", status.Message)}
	if match := unknownField.FindStringSubmatch(status.Message); match != nil {
		refusal.Field = match[1]
	}
	return []Refusal{refusal}
}

// statusOf returns the API server's response, nil if an error is something else.
func statusOf(err error) *metav1.Status {
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) {
		return nil
	}
	status := answered.Status()
	return &status
}

// isRefusal reports whether a retry of the request fails in the same way until a user changes something.
func isRefusal(status *metav1.Status) bool {
	switch status.Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return schemaError.MatchString(status.Message)
}

var (
	// objectPrefix matches the beginning of messages that repeat the object.
	objectPrefix = regexp.MustCompile(`^\S+ "[^"]*" is (?:forbidden|invalid): `)
	// schemaError matches a message about an applied object that does not match its schema, which API servers return as an
	// internal error.
	schemaError = regexp.MustCompile(
		`(?s)^failed to (?:create typed patch|convert new|convert new typed) object \([^)]*\)(?: to object| to proper version)?: (.*)$`)
	// unknownField matches the field in a message of strict validation.
	unknownField = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]+)"`)
	// schemaErrorLine matches a line of a schemaError: a field and what is wrong.
	schemaErrorLine = regexp.MustCompile(`^\.?([^\s:]+): (.*)$`)
)

// schemaRefusals returns a refusal for each line of a schemaError.
func (o Object) schemaRefusals(text string) []Refusal {
	var refusals []Refusal
	for line := range strings.Lines(strings.TrimPrefix(text, "errors:")) {
		line = strings.TrimSpace(line)
		if match := schemaErrorLine.FindStringSubmatch(line); match != nil {
			refusals = append(refusals, Refusal{Object: o, Field: match[1], Message: o.message(metav1.CauseTypeTypeInvalid, match[2])})
		} else if line != "" {
			refusals = append(refusals, Refusal{Object: o, Message: o.message("", line)})
		}
	}
	return refusals
}

// message returns a message of the API server for users.
func (o Object) message(cause metav1.CauseType, message string) string {
	if o.isSecret() {
		return apierror.SecretMessage(cause, message)
	}
	return summary.Line(objectPrefix.ReplaceAllString(message, ""))
}

func exceedsQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}
