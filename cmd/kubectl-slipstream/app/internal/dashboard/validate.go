// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// maxName and maxText are the numbers of bytes of the name of an object and of another text that becomes an argument of a command.
const maxName, maxText = 253, 1024

// checkName refuses a name that no object has, or that a command could take for something else.
func checkName(what, name string) error {
	if name == "" {
		return &refusal{http.StatusBadRequest, "The " + what + " is missing", ""}
	}
	if strings.Contains(name, "/") || strings.Contains(name, "%") || len(name) > maxName {
		return wrongText(what, name)
	}
	return checkText(what, name)
}

// checkText refuses a text that a command could take for a flag, or that a terminal would not show as it is.
func checkText(what, text string) error {
	if text == "" || len(text) > maxText || strings.HasPrefix(text, "-") || printable.Line(text) != text || strings.TrimSpace(text) != text {
		return wrongText(what, text)
	}
	return nil
}

func wrongText(what, text string) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf("%q cannot be the %s", printable.Line(text[:min(len(text), maxName)]), what), ""}
}
