// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

const maxNotificationTemplate = 4096

func validateNotificationTemplate(template *configbutler.NotificationTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(template.Title) > maxNotificationTemplate {
		errs = append(errs, field.TooLong(path.Child("title"), "", maxNotificationTemplate))
	}
	if len(template.Text) > maxNotificationTemplate {
		errs = append(errs, field.TooLong(path.Child("text"), "", maxNotificationTemplate))
	}
	return errs
}
