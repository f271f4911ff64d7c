// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxURLLength = 2048
	// shaPlaceholder stands for the commit in a webURLTemplate.
	shaPlaceholder = "{sha}"
	urlsAllowed    = "must be https://host/path, ssh://user@host:port/path or user@host:path"
)

// shortSSH is the form user@host:path. Neither host nor path can be mistaken for a flag.
var shortSSH = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^-\s:][^\s]*$`)

func validateRepoURL(raw string, options Options, path *field.Path) field.ErrorList {
	refuse := func(detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(path, withoutCredentials(raw), detail)}
	}
	switch {
	case raw == "":
		return field.ErrorList{field.Required(path, urlsAllowed)}
	case len(raw) > maxURLLength:
		return field.ErrorList{field.TooLong(path, "", maxURLLength)}
	case strings.ContainsFunc(raw, isSpaceOrControl):
		return refuse("must not contain spaces or control characters")
	case !strings.Contains(raw, "://") && shortSSH.MatchString(raw):
		return nil
	case !strings.Contains(raw, "://"):
		return refuse(urlsAllowed)
	}
	parsed, err := url.Parse(raw)
	if err != nil {
		return refuse(urlsAllowed)
	}
	if detail := refusedScheme(parsed, options); detail != "" {
		return refuse(detail)
	}
	if detail := refusedParts(parsed); detail != "" {
		return refuse(detail)
	}
	return nil
}

func refusedScheme(u *url.URL, options Options) string {
	switch u.Scheme {
	case "https", "ssh":
		return ""
	case "http", "file":
		if options.AllowInsecureURLs {
			return ""
		}
		return "the server refuses http and file URLs unless it is started with --git-allow-insecure; " + urlsAllowed
	default:
		return urlsAllowed
	}
}

func refusedParts(u *url.URL) string {
	_, hasPassword := u.User.Password()
	isFile := u.Scheme == "file"
	switch {
	case u.User != nil && u.Scheme != "ssh", hasPassword:
		return "must not contain credentials, which belong into the Secret that secretRef names"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "must not contain a query or a fragment"
	case isFile && u.Host != "":
		return "must be of the form file:///path, without a host"
	case !isFile && (u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-")):
		return "must name a host"
	case strings.HasPrefix(u.User.Username(), "-"):
		return "must not have a user that begins with -"
	case strings.Trim(u.Path, "/") == "" || strings.HasPrefix(u.Path, "/-"):
		return "must name a repository after the host"
	}
	return ""
}

func validateWebURLTemplate(template string, path *field.Path) field.ErrorList {
	if template == "" {
		return nil
	}
	const allowed = "must be an http or https URL without credentials in which {sha} stands for the commit"
	parsed, err := url.Parse(strings.ReplaceAll(template, shaPlaceholder, "0"))
	switch {
	case len(template) > maxURLLength:
		return field.ErrorList{field.TooLong(path, "", maxURLLength)}
	case err != nil, parsed.Scheme != "http" && parsed.Scheme != "https", parsed.Hostname() == "", parsed.User != nil,
		!strings.Contains(template, shaPlaceholder), strings.ContainsFunc(template, isSpaceOrControl),
		strings.ContainsAny(strings.ReplaceAll(template, shaPlaceholder, ""), "{}"):
		return field.ErrorList{field.Invalid(path, withoutCredentials(template), allowed)}
	}
	return nil
}

// withoutCredentials returns the printable part of a URL, well-formed or not: without anything between the scheme and
// the last @, and without query and fragment.
func withoutCredentials(raw string) string {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	} else {
		scheme += "://"
	}
	if end := strings.LastIndex(rest, "@"); end >= 0 {
		rest = "***" + rest[end:]
	}
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + rest
}

func isSpaceOrControl(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r)
}
