// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net/url"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

const (
	// maxNotificationNames is the number of entries of each list of names in a NotificationSink.
	maxNotificationNames = 100
	maxMessagesPerMinute = 60
	// maxAuthorLength is the length of the name of an author, with globs, in bytes.
	maxAuthorLength = 512
	maxTitleLength  = 256
)

// notificationEvents are the kinds of notifications.
var notificationEvents = []configbutler.NotificationEvent{
	configbutler.NotifyPrompted, configbutler.NotifyCompleted, configbutler.NotifyFailed, configbutler.NotifyConflicted,
	configbutler.NotifyDismissed, configbutler.NotifyChange, configbutler.NotifyBypass, configbutler.NotifyDestinationFailing,
	configbutler.NotifyOwnershipConflict, configbutler.NotifyCatalogFailing, configbutler.NotifyPipelineFailing,
}

// ValidateNotificationSink validates a new NotificationSink.
func ValidateNotificationSink(sink *configbutler.NotificationSink, options Options) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&sink.ObjectMeta, true, apivalidation.NameIsDNSLabel, metadataPath)
	return append(errs, validateNotificationSinkSpec(sink, options)...)
}

// ValidateNotificationSinkUpdate validates a changed NotificationSink. Every field of the spec may change.
func ValidateNotificationSinkUpdate(sink, old *configbutler.NotificationSink, options Options) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&sink.ObjectMeta, &old.ObjectMeta, metadataPath)
	return append(errs, validateNotificationSinkSpec(sink, options)...)
}

// ValidateNotificationSinkStatusUpdate validates a changed status.
func ValidateNotificationSinkStatusUpdate(sink, old *configbutler.NotificationSink) field.ErrorList {
	errs := apivalidation.ValidateObjectMetaUpdate(&sink.ObjectMeta, &old.ObjectMeta, metadataPath)
	status := &sink.Status
	errs = append(errs, validateObserved(status.ObservedGeneration, status.Conditions)...)
	if by := status.EditedBy; by != nil && by.Username == "" {
		errs = append(errs, field.Required(statusPath.Child("editedBy", "username"), "must be the user who had the sink send more"))
	}
	if len(status.LastMessage) > maxTitleLength {
		errs = append(errs, field.TooLong(statusPath.Child("lastMessage"), "", maxTitleLength))
	}
	return append(errs, nonnegative(statusPath, counts{
		{"pending", status.Pending}, {"messages", status.Messages}, {"notifications", status.Notifications},
		{"rejected", status.Rejected}, {"failures", int64(status.Failures)},
	})...)
}

// ValidateNotificationSinkStatusRequest also validates a status update from a client. The user in editedBy is recorded by
// the server for the authenticated user.
func ValidateNotificationSinkStatusRequest(sink, old *configbutler.NotificationSink) field.ErrorList {
	return validateEditedBy(sink.Status.EditedBy, old.Status.EditedBy)
}

// ValidateNotificationTest validates a request to the named sink.
func ValidateNotificationTest(request *configbutler.NotificationTest, name string) field.ErrorList {
	errs := validateNameInPath(request.Name, name)
	errs = append(errs, validateOneOf(request.Spec.Event, specPath.Child("event"), notificationEvents...)...)
	if template := request.Spec.Template; template != nil {
		errs = append(errs, validateNotificationTemplate(template, specPath.Child("template"))...)
	}
	return errs
}

func validateNotificationSinkSpec(sink *configbutler.NotificationSink, options Options) field.ErrorList {
	spec, path := &sink.Spec, specPath
	errs := validateReceiver(spec, path)
	errs = append(errs, validateNotificationEvents(spec.Events, path.Child("events"))...)
	errs = append(errs, validateNotificationNamespaces(sink, options, path.Child("namespaces"))...)
	errs = append(errs, validateSelector(spec.Subjects, path.Child("subjects"))...)
	errs = append(errs, validateBoundedSet(spec.Resources, maxNotificationNames, refusedTypes, path.Child("resources"))...)
	errs = append(errs, validateAuthorNames(spec.Authors.Include, path.Child("authors", "include"))...)
	errs = append(errs, validateAuthorNames(spec.Authors.Exclude, path.Child("authors", "exclude"))...)
	errs = append(errs, validateOneOf(spec.MinSeverity, path.Child("minSeverity"),
		configbutler.SeverityInfo, configbutler.SeverityWarning, configbutler.SeverityError)...)
	errs = append(errs, validateOneOf(spec.Content, path.Child("content"),
		configbutler.NotificationContentFields, configbutler.NotificationContentDiff, configbutler.NotificationContentFull)...)
	errs = append(errs, validateNotificationTemplate(&spec.Template, path.Child("template"))...)
	errs = append(errs, validateLinkTemplate(spec.LinkTemplate, path.Child("linkTemplate"))...)
	errs = append(errs, validateDuration(spec.DigestWindow, 0, day, path.Child("digestWindow"))...)
	errs = append(errs, validateRange(spec.MaxPerMinute, 1, maxMessagesPerMinute, path.Child("maxPerMinute"))...)
	return append(errs, validateSyncWindows(spec.Windows, path.Child("windows"))...)
}

func validateNotificationEvents(events []configbutler.NotificationEvent, path *field.Path) field.ErrorList {
	if len(events) == 0 {
		return field.ErrorList{field.Required(path, "at least one kind of notifications is needed, such as Failed; suspend stops a sink")}
	}
	errs := validateUnique(events, path)
	for i, event := range events {
		errs = append(errs, validateOneOf(event, path.Index(i), notificationEvents...)...)
	}
	return errs
}

// validateNotificationNamespaces rejects namespaces of a sink that only sends notifications of its own.
func validateNotificationNamespaces(sink *configbutler.NotificationSink, options Options, path *field.Path) field.ErrorList {
	namespaces, server := sink.Spec.Namespaces, options.ServerNamespace
	if len(namespaces) > 0 && server != "" && sink.Namespace != server {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf(
			"must be absent unless the sink is in the namespace of the server, %s: others send notifications of their own namespace", server))}
	}
	return validateBoundedSet(namespaces, maxNotificationNames, refusedNamespaces, path)
}

// refusedNamespaces returns why an entry is neither the name of a namespace nor a glob, or an empty string.
func refusedNamespaces(glob string) string {
	if len(utilvalidation.IsDNS1123Label(strings.ReplaceAll(glob, all, "a"))) == 0 {
		return ""
	}
	return "must be the name of a namespace such as team-a, in which * stands for any characters, as in team-*"
}

func validateAuthorNames(names []string, path *field.Path) field.ErrorList {
	if n := len(names); n > maxNotificationNames {
		return field.ErrorList{field.TooMany(path, n, maxNotificationNames)}
	}
	errs := validateUnique(names, path)
	for i, name := range names {
		switch {
		case name == "":
			errs = append(errs, field.Required(path.Index(i), "must be the name of a user, in which * stands for any characters, as in *@example.com"))
		case len(name) > maxAuthorLength:
			errs = append(errs, field.TooLong(path.Index(i), "", maxAuthorLength))
		}
	}
	return errs
}

// linkPlaceholders stand for the subject of a notification in a linkTemplate.
var linkPlaceholders = []string{"{kind}", "{namespace}", "{name}"}

func validateLinkTemplate(template string, path *field.Path) field.ErrorList {
	refuse := func(detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(path, withoutCredentials(template), detail)}
	}
	sample := template
	for _, placeholder := range linkPlaceholders {
		sample = strings.ReplaceAll(sample, placeholder, "a")
	}
	parsed, err := url.Parse(sample)
	_, rest, _ := strings.Cut(template, "://")
	authority := rest[:max(0, strings.IndexAny(rest+"/", "/?#"))]
	switch {
	case template == "":
		return nil
	case len(template) > maxURLLength:
		return field.ErrorList{field.TooLong(path, "", maxURLLength)}
	case strings.ContainsFunc(template, isSpaceOrControl):
		return refuse("must not contain spaces or control characters")
	case strings.ContainsAny(sample, "{}"):
		return refuse("must have no other placeholders than {kind}, {namespace} and {name}")
	case strings.Contains(authority, "{"):
		return refuse("must have placeholders only after the host")
	case err != nil:
		return refuse(sinkURLAllowed)
	case parsed.User != nil:
		return refuse("must not contain credentials: all recipients of notifications see it")
	}
	if detail := refusedServerURL(parsed); detail != "" {
		return refuse(detail)
	}
	return nil
}
