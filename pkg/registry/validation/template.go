// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/kube/texttemplate"
	"github.com/configbutler/slipstream/pkg/mirror/commitmessage"
)

// validateTemplates parses templates as commits do. Errors name the line.
func validateTemplates(author, message string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, err := commitmessage.ParseAuthor(author); err != nil {
		errs = append(errs, invalidTemplate(author, err, path.Child("authorTemplate")))
	}
	if _, err := commitmessage.ParseMessage(message); err != nil {
		errs = append(errs, invalidTemplate(message, err, path.Child("messageTemplate")))
	}
	return errs
}

func invalidTemplate(text string, err error, path *field.Path) *field.Error {
	if len(text) > texttemplate.MaxLength {
		return field.TooLong(path, "", texttemplate.MaxLength)
	}
	return field.Invalid(path, text, "must be a Go text/template: "+err.Error())
}
