// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// escaped is an error with the messages of the server on one line each.
type escaped struct {
	error
	text string
}

// Error returns the escaped text.
func (e *escaped) Error() string { return e.text }

// Unwrap returns the error as it was.
func (e *escaped) Unwrap() error { return e.error }

// escape returns an error in which no message of the server has lines of its own, which would look like those of the plugin.
func escape(err error) error {
	before := err.Error()
	text := before
	for _, message := range messagesIn(err) {
		text = strings.ReplaceAll(text, message, printable.Line(message))
	}
	if text == before {
		return err
	}
	return &escaped{err, text}
}

// messagesIn returns the messages of the server in an error.
func messagesIn(err error) (messages []string) {
	if answered, ok := err.(apierrors.APIStatus); ok {
		if message := answered.Status().Message; message != "" {
			messages = append(messages, message)
		}
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, each := range several.Unwrap() {
			messages = append(messages, messagesIn(each)...)
		}
	} else if inner := errors.Unwrap(err); inner != nil {
		messages = append(messages, messagesIn(inner)...)
	}
	return messages
}
