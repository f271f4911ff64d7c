// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

const (
	maxSinks       = 16
	minSinkTimeout = time.Second
	maxSinkTimeout = 5 * time.Minute
	minSinkBackoff = 100 * time.Millisecond
	// maxCABundle is several times the size of a system's default bundle.
	maxCABundle    = 1 << 20
	sinkURLAllowed = "must be http://host/path or https://host/path"
)

// collectionName is the syntax of DotAI's collection names.
var collectionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

func validatePipelineSinks(sinks []configbutler.PipelineSink, path *field.Path) field.ErrorList {
	switch n := len(sinks); {
	case n == 0:
		return field.ErrorList{field.Required(path, "at least one sink is needed")}
	case n > maxSinks:
		return field.ErrorList{field.TooMany(path, n, maxSinks)}
	}
	var errs field.ErrorList
	names := make([]string, len(sinks))
	for i := range sinks {
		names[i] = sinks[i].Name
		errs = append(errs, validatePipelineSink(&sinks[i], path.Index(i))...)
	}
	return append(errs, validateNamesOfSinks(names, path)...)
}

func validatePipelineSink(sink *configbutler.PipelineSink, path *field.Path) field.ErrorList {
	errs := validatePipelineRetry(&sink.Retry, path.Child("retry"))
	switch {
	case sink.HTTP != nil && sink.Job != nil:
		return append(errs, field.Forbidden(path.Child("job"), "must be absent when http is there: a sink has one of the two"))
	case sink.HTTP != nil:
		return append(errs, validateHTTPSink(sink.HTTP, path.Child("http"))...)
	case sink.Job != nil:
		return append(errs, validateJobSink(sink.Job, path.Child("job"))...)
	}
	return append(errs, field.Required(path.Child("http"), "a sink has http or job"))
}

func validatePipelineRetry(retry *configbutler.PipelineRetry, path *field.Path) field.ErrorList {
	errs := validateRange(retry.MaxAttempts, 0, maxAttempts, path.Child("maxAttempts"))
	backoff := validateDuration(retry.Backoff, minSinkBackoff, time.Hour, path.Child("backoff"))
	if len(backoff) > 0 || retry.Backoff == nil {
		return append(errs, backoff...)
	}
	return append(errs, validateDuration(retry.MaxBackoff, retry.Backoff.Duration, time.Hour, path.Child("maxBackoff"))...)
}

func validateHTTPSink(sink *configbutler.HTTPSink, path *field.Path) field.ErrorList {
	errs := validateSinkURL(sink.URL, path.Child("url"))
	errs = append(errs, validateFormat(sink, path)...)
	if sink.SecretRef != nil {
		errs = append(errs, validateNamespacedObjectReference(*sink.SecretRef, path.Child("secretRef"))...)
	}
	if sink.ProxySecretRef != nil {
		errs = append(errs, validateNamespacedObjectReference(*sink.ProxySecretRef, path.Child("proxySecretRef"))...)
	}
	errs = append(errs, validateCABundle(sink.CABundle, sink.URL, path)...)
	return append(errs, validateDuration(sink.Timeout, minSinkTimeout, maxSinkTimeout, path.Child("timeout"))...)
}

func validateFormat(sink *configbutler.HTTPSink, path *field.Path) field.ErrorList {
	if sink.Format == "" {
		return field.ErrorList{
			field.Required(path.Child("format"), "must be ClusterWhisperer, DotAI or CloudEvents: what the server understands"),
		}
	}
	errs := validateOneOf(sink.Format, path.Child("format"),
		configbutler.PipelineFormatClusterWhisperer, configbutler.PipelineFormatDotAI, configbutler.PipelineFormatCloudEvents)
	path = path.Child("collection")
	switch isDotAI := sink.Format == configbutler.PipelineFormatDotAI; {
	case len(errs) > 0:
	case !isDotAI && sink.Collection != "":
		errs = append(errs, field.Forbidden(path, "must be absent unless format is DotAI"))
	case isDotAI && !collectionName.MatchString(sink.Collection):
		errs = append(errs, field.Invalid(path, sink.Collection,
			"must be letters, digits, _, - and ., the first a letter or digit, at most 128 characters"))
	}
	return errs
}

// validateSinkURL validates a URL to which the paths of a format are appended.
func validateSinkURL(raw string, path *field.Path) field.ErrorList {
	return validateServerURL(raw, path, func(*url.URL) string {
		if strings.ContainsAny(raw, "?#") {
			return "must not contain a query or a fragment: the paths of the format come after it"
		}
		return ""
	})
}

// validateServerURL validates the URL of a server. refused returns why else a URL is invalid, or an empty string.
func validateServerURL(raw string, path *field.Path, refused func(*url.URL) string) field.ErrorList {
	refuse := func(detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(path, withoutCredentials(raw), detail)}
	}
	switch {
	case raw == "":
		return field.ErrorList{field.Required(path, sinkURLAllowed)}
	case len(raw) > maxURLLength:
		return field.ErrorList{field.TooLong(path, "", maxURLLength)}
	case strings.ContainsFunc(raw, isSpaceOrControl):
		return refuse("must not contain spaces or control characters")
	}
	parsed, err := url.Parse(raw)
	if err != nil {
		return refuse(sinkURLAllowed)
	}
	if detail := cmp.Or(refusedServerURL(parsed), refused(parsed)); detail != "" {
		return refuse(detail)
	}
	return nil
}

// refusedServerURL returns why a URL is not that of an HTTP server, or an empty string.
func refusedServerURL(u *url.URL) string {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return sinkURLAllowed
	case u.User != nil:
		return "must not contain credentials, which belong into the Secret that secretRef names"
	case u.Hostname() == "":
		return "must name a host"
	case !isPort(u.Port()):
		return "must have a port from 1 to 65535, or none"
	}
	return ""
}

// isPort reports whether a URL's port is empty or valid.
func isPort(text string) bool {
	if text == "" {
		return true
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// validateCABundle validates the field caBundle beside the field url.
func validateCABundle(bundle []byte, url string, path *field.Path) field.ErrorList {
	path = path.Child("caBundle")
	if scheme, _, _ := strings.Cut(url, "://"); len(bundle) > 0 && strings.EqualFold(scheme, "http") {
		return field.ErrorList{field.Forbidden(path, "must be absent unless url is an https URL")}
	}
	return validateCertificates(bundle, path)
}

// validateCertificates checks that a bundle only holds certificates. Errors do not quote its content.
func validateCertificates(bundle []byte, path *field.Path) field.ErrorList {
	switch {
	case len(bundle) == 0:
		return nil
	case len(bundle) > maxCABundle:
		return field.ErrorList{field.TooLong(path, "", maxCABundle)}
	}
	if detail := refusedCertificates(bundle); detail != "" {
		return field.ErrorList{field.Invalid(path, "***", detail)}
	}
	return nil
}

// refusedCertificates returns why a bundle is no sequence of PEM certificates, or an empty string.
func refusedCertificates(bundle []byte) string {
	const allowed = "must be certificates in PEM, in base64 once: BEGIN CERTIFICATE ... END CERTIFICATE"
	begins := bytes.Count(bundle, []byte("-----BEGIN "))
	blocks := 0
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		switch _, err := x509.ParseCertificate(block.Bytes); {
		case strings.Contains(block.Type, "PRIVATE KEY"):
			return "holds a private key, which counts as disclosed; it " + allowed
		case block.Type != "CERTIFICATE":
			return allowed
		case err != nil:
			return "the certificate number " + strconv.Itoa(blocks) + " cannot be read; it " + allowed
		}
	}
	if blocks == 0 || blocks != begins {
		return allowed
	}
	return ""
}
