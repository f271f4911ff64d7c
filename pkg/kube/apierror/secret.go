// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apierror

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// safeMessages match the parts of messages that cannot quote a Secret. What policies and webhooks add after them can.
var safeMessages = []*regexp.Regexp{
	regexp.MustCompile(`exceeded quota: [a-z0-9.-]+, requested: [\w./=,-]+, used: [\w./=,-]+, limited: [\w./=,-]+`),
	regexp.MustCompile(`ValidatingAdmissionPolicy '[a-z0-9.-]+' with binding '[a-z0-9.-]+' denied request`),
	regexp.MustCompile(`admission webhook "[a-z0-9.-]+" denied the request`),
	regexp.MustCompile(`User "[^"]+" cannot [a-z]+ resource "secrets" in API group "" in the namespace "[a-z0-9-]+"`),
	regexp.MustCompile(`^namespace [a-z0-9-]+ is being terminated$`),
	regexp.MustCompile(`^namespaces "[a-z0-9-]+" not found$`),
}

// causeMessages describe an invalid field without its value.
var causeMessages = map[metav1.CauseType]string{
	metav1.CauseTypeFieldValueDuplicate:    "is there twice",
	metav1.CauseTypeFieldValueInvalid:      "is not valid, or cannot be changed",
	metav1.CauseTypeFieldValueNotFound:     "does not exist",
	metav1.CauseTypeFieldValueNotSupported: "is none of the values that are supported",
	metav1.CauseTypeFieldValueRequired:     "is required",
	metav1.CauseTypeForbidden:              "is not allowed, or cannot be changed",
	metav1.CauseTypeTooLong:                "is too long",
	metav1.CauseTypeTooMany:                "has too many items",
	metav1.CauseTypeTypeInvalid:            "does not fit the schema",
}

// SecretMessage returns what users may read of the API server's message about a Secret.
func SecretMessage(cause metav1.CauseType, message string) string {
	if safe := safeMessage(cause, message); safe != "" {
		return safe
	}
	return "the API server rejects the request; its message may quote the Secret and is left out"
}

// RedactSecret returns the error of a request for a Secret without what may quote the Secret. Its code and reason are unchanged.
func RedactSecret(err error) error {
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) {
		return err
	}
	status := answered.Status()
	message := safeMessage("", status.Message)
	if message == "" {
		message = fmt.Sprintf("the API server returns %d %s; its message may quote the Secret and is left out",
			status.Code, http.StatusText(int(status.Code)))
	}
	redacted := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: status.Status, Code: status.Code, Reason: status.Reason, Message: message,
	}}
	if status.Details != nil {
		redacted.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: status.Details.RetryAfterSeconds}
	}
	return redacted
}

// safeMessage returns the part of a message that cannot quote a Secret, empty if none is known.
func safeMessage(cause metav1.CauseType, message string) string {
	for _, part := range safeMessages {
		if found := part.FindString(message); found != "" {
			return found
		}
	}
	return causeMessages[cause]
}
