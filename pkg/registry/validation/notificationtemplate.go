// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// validateNotificationTemplate parses templates as messages do. Errors name the line.
func validateNotificationTemplate(template *configbutler.NotificationTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []struct{ name, title, text string }{{"title", template.Title, ""}, {"text", "", template.Text}} {
		if _, err := message.ParseTemplate(part.title, part.text); err != nil {
			errs = append(errs, invalidTemplate(part.title+part.text, withoutField(err), path.Child(part.name)))
		}
	}
	return errs
}

// withoutField returns the error in a template without the name of the template, which the path has.
func withoutField(err error) error {
	if parse := (*message.ParseError)(nil); errors.As(err, &parse) {
		return parse.Err
	}
	return err
}
