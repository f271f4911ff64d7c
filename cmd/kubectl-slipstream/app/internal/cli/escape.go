// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// escaped is an error with the messages of the server indented.
type escaped struct {
	error
	text string
}

// Error returns the indented text.
func (e *escaped) Error() string { return e.text }

// Unwrap returns the error as it was.
func (e *escaped) Unwrap() error { return e.error }

// escape returns an error in which further lines of a message of the server are indented, so that none looks like a hint of the plugin.
func escape(err error) error {
	before := err.Error()
	text := before
	for _, message := range messagesIn(err) {
		text = strings.ReplaceAll(text, message, indented(message))
	}
	if text == before {
		return err
	}
	return &escaped{err, text}
}

// indented returns a printable text whose lines after the first are indented.
func indented(message string) string {
	const indent = "  "
	lines := strings.Split(printable.Text(message), "\n")
	for i := 1; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], indent) {
			lines[i] = indent + lines[i]
		}
	}
	return strings.Join(lines, "\n")
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
