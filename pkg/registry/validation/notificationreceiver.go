// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

const (
	maxMailRecipients = 50
	// maxAddressLength is the length of a mail address with its name in bytes. Addresses alone have at most 254.
	maxAddressLength = 512
	maxPort          = 1<<16 - 1
)

// slackChannel is the syntax of the IDs and names of channels. Names may have letters of any script.
var slackChannel = regexp.MustCompile(`^#?[\p{L}\p{N}\p{M}_-]{1,80}$`)

// validateReceiver checks that a sink has exactly one receiver, which is valid.
func validateReceiver(spec *configbutler.NotificationSinkSpec, path *field.Path) field.ErrorList {
	receivers := []struct {
		name     string
		isSet    bool
		validate func(*field.Path) field.ErrorList
	}{
		{"slack", spec.Slack != nil, func(path *field.Path) field.ErrorList { return validateSlackSink(spec.Slack, path) }},
		{"teams", spec.Teams != nil, func(path *field.Path) field.ErrorList { return validateTeamsSink(spec.Teams, path) }},
		{"email", spec.Email != nil, func(path *field.Path) field.ErrorList { return validateEmailSink(spec.Email, path) }},
		{"webhook", spec.Webhook != nil, func(path *field.Path) field.ErrorList { return validateWebhookSink(spec.Webhook, path) }},
		{"event", spec.Event != nil, func(*field.Path) field.ErrorList { return nil }},
	}
	var errs field.ErrorList
	var first string
	for _, receiver := range receivers {
		switch {
		case !receiver.isSet:
			continue
		case first != "":
			errs = append(errs, field.Forbidden(path.Child(receiver.name),
				fmt.Sprintf("must be absent if %s is set: a sink has one receiver", first)))
			continue
		}
		first = receiver.name
		errs = append(errs, receiver.validate(path.Child(receiver.name))...)
	}
	if first == "" {
		errs = append(errs, field.Required(path, "must have one of slack, teams, email, webhook and event: the receiver"))
	}
	return errs
}

func validateSlackSink(sink *configbutler.SlackSink, path *field.Path) field.ErrorList {
	errs := validateSecretReference(sink.SecretRef, path.Child("secretRef"))
	errs = append(errs, validateProxyReference(sink.ProxySecretRef, path)...)
	if sink.Channel != "" && !slackChannel.MatchString(sink.Channel) {
		errs = append(errs, field.Invalid(path.Child("channel"), sink.Channel,
			"must be the ID of a channel such as C024BE91L, or its name: letters, digits, _ and -, at most 80 characters"))
	}
	if sink.APIURL == "" {
		return append(errs, validateCertificates(sink.CABundle, path.Child("caBundle"))...)
	}
	errs = append(errs, validateServerURL(sink.APIURL, path.Child("apiURL"), func(*url.URL) string {
		if strings.ContainsAny(sink.APIURL, "?#") {
			return "must not contain a query or a fragment: the names of methods come after it"
		}
		return ""
	})...)
	if len(sink.CABundle) > 0 && strings.HasPrefix(strings.ToLower(sink.APIURL), "http://") {
		return append(errs, field.Forbidden(path.Child("caBundle"), "must be absent unless apiURL is an https URL"))
	}
	return append(errs, validateCertificates(sink.CABundle, path.Child("caBundle"))...)
}

func validateTeamsSink(sink *configbutler.TeamsSink, path *field.Path) field.ErrorList {
	errs := validateSecretReference(sink.SecretRef, path.Child("secretRef"))
	errs = append(errs, validateProxyReference(sink.ProxySecretRef, path)...)
	return append(errs, validateCertificates(sink.CABundle, path.Child("caBundle"))...)
}

func validateEmailSink(sink *configbutler.EmailSink, path *field.Path) field.ErrorList {
	errs := validateHost(sink.Host, path.Child("host"))
	errs = append(errs, validateRange(sink.Port, 1, maxPort, path.Child("port"))...)
	errs = append(errs, validateOneOf(sink.TLS, path.Child("tls"),
		configbutler.EmailStartTLS, configbutler.EmailImplicitTLS, configbutler.EmailPlain)...)
	switch isPlain := sink.TLS == configbutler.EmailPlain; {
	case isPlain && sink.SecretRef != nil:
		errs = append(errs, field.Forbidden(path.Child("secretRef"),
			"must be absent if tls is None: credentials are not sent in plain text"))
	case sink.SecretRef != nil:
		errs = append(errs, validateSecretReference(*sink.SecretRef, path.Child("secretRef"))...)
	}
	if sink.TLS == configbutler.EmailPlain && len(sink.CABundle) > 0 {
		errs = append(errs, field.Forbidden(path.Child("caBundle"), "must be absent if tls is None"))
	} else {
		errs = append(errs, validateCertificates(sink.CABundle, path.Child("caBundle"))...)
	}
	errs = append(errs, validateAddress(sink.From, path.Child("from"))...)
	return append(errs, validateRecipients(sink.To, path.Child("to"))...)
}

// validateHost accepts names, and addresses of IPv4 and IPv6.
func validateHost(host string, path *field.Path) field.ErrorList {
	const allowed = "must be the name or the IP address of a server, such as smtp.example.com, without a port"
	switch {
	case host == "":
		return field.ErrorList{field.Required(path, allowed)}
	case net.ParseIP(host) == nil && len(utilvalidation.IsDNS1123Subdomain(strings.ToLower(host))) > 0:
		return field.ErrorList{field.Invalid(path, withoutCredentials(host), allowed)}
	}
	return nil
}

func validateRecipients(to []string, path *field.Path) field.ErrorList {
	switch n := len(to); {
	case n == 0:
		return field.ErrorList{field.Required(path, "at least one recipient is needed, such as jane@example.com")}
	case n > maxMailRecipients:
		return field.ErrorList{field.TooMany(path, n, maxMailRecipients)}
	}
	errs := validateUnique(to, path)
	for i, address := range to {
		errs = append(errs, validateAddress(address, path.Index(i))...)
	}
	return errs
}

// validateAddress validates a mail address with or without a name. The address itself is ASCII, because not every server
// takes another one.
func validateAddress(text string, path *field.Path) field.ErrorList {
	const allowed = "must be an address such as jane@example.com or Jane <jane@example.com>"
	switch {
	case text == "":
		return field.ErrorList{field.Required(path, allowed)}
	case len(text) > maxAddressLength:
		return field.ErrorList{field.TooLong(path, "", maxAddressLength)}
	case strings.ContainsFunc(text, unicode.IsControl):
		return field.ErrorList{field.Invalid(path, text, "must not contain control characters")}
	}
	address, err := mail.ParseAddress(text)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, text, allowed)}
	case slices.ContainsFunc([]rune(address.Address), func(r rune) bool { return r <= ' ' || r > unicode.MaxASCII }):
		return field.ErrorList{field.Invalid(path, text, allowed+", without spaces and with ASCII characters only in the address")}
	}
	return nil
}

func validateWebhookSink(sink *configbutler.WebhookSink, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case sink.URL != "":
		errs = append(errs, validateServerURL(sink.URL, path.Child("url"), func(*url.URL) string {
			if strings.Contains(sink.URL, "#") {
				return "must not contain a fragment"
			}
			return ""
		})...)
	case sink.SecretRef == nil:
		errs = append(errs, field.Required(path.Child("url"), sinkURLAllowed+", unless secretRef names a Secret with the key url"))
	}
	if sink.SecretRef != nil {
		errs = append(errs, validateSecretReference(*sink.SecretRef, path.Child("secretRef"))...)
	}
	errs = append(errs, validateProxyReference(sink.ProxySecretRef, path)...)
	return append(errs, validateCABundle(sink.CABundle, sink.URL, path)...)
}
