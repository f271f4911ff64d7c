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

	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// refusalsOf says why the API server does not take an object; nothing if that is not what the error says.
func refusalsOf(o Object, err error) []Refusal {
	status := statusOf(err)
	if status == nil || !isRefusal(status) {
		return nil
	}
	if details := status.Details; details != nil && len(details.Causes) > 0 {
		refusals := make([]Refusal, len(details.Causes))
		for i, cause := range details.Causes {
			refusals[i] = Refusal{Object: o, Field: cause.Field, Sentence: o.sentence(cause.Type, cause.Message)}
		}
		return refusals
	}
	if match := unfit.FindStringSubmatch(status.Message); match != nil {
		return o.misfits(match[1])
	}
	refusal := Refusal{Object: o, Sentence: o.sentence("", status.Message)}
	if match := unknownField.FindStringSubmatch(status.Message); match != nil {
		refusal.Field = match[1]
	}
	return []Refusal{refusal}
}

// statusOf is what an API server has answered, nil if an error is something else.
func statusOf(err error) *metav1.Status {
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) {
		return nil
	}
	status := answered.Status()
	return &status
}

// isRefusal says whether the same request will be answered in the same way as long as nobody changes anything.
func isRefusal(status *metav1.Status) bool {
	switch status.Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return unfit.MatchString(status.Message)
}

var (
	// aboutObject is the beginning of sentences, which says what they are about.
	aboutObject = regexp.MustCompile(`^\S+ "[^"]*" is (?:forbidden|invalid): `)
	// unfit is how API servers say that what is applied does not fit its type. It is an internal error to them.
	unfit = regexp.MustCompile(
		`(?s)^failed to (?:create typed patch|convert new|convert new typed) object \([^)]*\)(?: to object| to proper version)?: (.*)$`)
	// unknownField is how strict validation names a field.
	unknownField = regexp.MustCompile(`(?:unknown|duplicate) field "([^"]+)"`)
	// misfit is what is wrong with a field by the schema.
	misfit = regexp.MustCompile(`^\.?([^\s:]+): (.*)$`)
)

// misfits are the fields that do not fit the schema.
func (o Object) misfits(text string) []Refusal {
	var refusals []Refusal
	for line := range strings.Lines(strings.TrimPrefix(text, "errors:")) {
		line = strings.TrimSpace(line)
		if match := misfit.FindStringSubmatch(line); match != nil {
			refusals = append(refusals, Refusal{Object: o, Field: match[1], Sentence: o.sentence(metav1.CauseTypeTypeInvalid, match[2])})
		} else if line != "" {
			refusals = append(refusals, Refusal{Object: o, Sentence: o.sentence("", line)})
		}
	}
	return refusals
}

// sentence is what people are told of what the API server says.
func (o Object) sentence(cause metav1.CauseType, message string) string {
	if o.isSecret() {
		return discreet(cause, message)
	}
	return summary.Line(aboutObject.ReplaceAllString(message, ""))
}

func exceedsQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: ")
}
