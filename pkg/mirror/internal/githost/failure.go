// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/access/egress/outbound"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const (
	// maxShown bounds what is shown of a host's text, in bytes.
	maxShown = 512
	// maxDepth bounds how deep a host's error is searched for its messages, and maxMessages how many are used.
	maxDepth    = 4
	maxMessages = 8
)

// failure returns the error that a response is, nil if it is a success.
func (c *client) failure(call call, received reply, redactor outbound.Redactor) error {
	if received.status/100 == 2 && !c.isLoginPage(received) {
		return nil
	}
	said := hostMessage(received)
	failed := &Error{Op: call.op}
	if wait, limited := c.rateLimit(received, said); limited {
		failed.Kind, failed.RetryAfter = RateLimited, wait
		failed.Message = show(redactor, fmt.Sprintf("%s limits requests; the next one is made at %s%s", c.base.Host,
			c.clock.Now().Add(wait).UTC().Format(time.RFC3339), quote(said)))
		return failed
	}
	failed.Kind, failed.Message = c.explain(call, received, said)
	failed.Message = show(redactor, failed.Message+quote(said))
	if failed.Kind == Unreachable {
		failed.RetryAfter = outbound.RetryAfter(received.header, c.clock.Now())
	}
	return failed
}

// explain returns the kind of a failure, and what to do about it.
func (c *client) explain(call call, received reply, said string) (ErrorKind, string) {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", received.status, http.StatusText(received.status)))
	host := c.base.Host
	switch {
	case c.isLoginPage(received), received.status == http.StatusUnauthorized:
		return Unauthorized, host + " does not accept the token: it is wrong, revoked or expired; replace it in the Secret"
	case received.status/100 == 3:
		return Refused, fmt.Sprintf("%s redirects (%s) to %s, which is not followed: if the repository was renamed, put its new URL into repoUrl",
			host, status, target(received.header))
	case received.status == http.StatusForbidden:
		return c.forbidden(received, said)
	case received.status == http.StatusNotFound, received.status == http.StatusGone:
		about := call.about
		if about == "" {
			about = "the repository"
		}
		kind := NotFound
		if call.isReference {
			kind = Invalid
		}
		return kind, fmt.Sprintf("%s does not know %s, or the token may not see it", host, about)
	case received.status/100 == 5, received.status == http.StatusRequestTimeout, received.status == http.StatusTooEarly:
		return Unreachable, fmt.Sprintf("%s failed (%s)", host, status)
	case received.status == http.StatusBadRequest, received.status == http.StatusUnprocessableEntity,
		received.status == http.StatusRequestEntityTooLarge:
		return Invalid, fmt.Sprintf("%s does not accept the request (%s)", host, status)
	case received.status/100 == 4:
		return Refused, fmt.Sprintf("%s refuses the request (%s)", host, status)
	}
	return Protocol, fmt.Sprintf("%s responds with the unexpected status %s", host, status)
}

// forbidden explains a status 403, which is about the token or about the state of the repository.
func (c *client) forbidden(received reply, said string) (ErrorKind, string) {
	if strings.Contains(strings.ToLower(said), "archived") {
		return Refused, "the repository is archived: unarchive it, or use another one"
	}
	if needed := received.header.Get("X-Accepted-Github-Permissions"); c.kind == GitHub && needed != "" {
		return Unauthorized, "the token lacks the permission " + permissions(needed) + ": grant it to the token or to the GitHub App"
	}
	if needed := received.header.Get("X-Accepted-Oauth-Scopes"); c.kind == GitHub && needed != "" {
		return Unauthorized, "the token lacks one of the scopes " + needed
	}
	needs := map[Kind]string{
		GitHub:      "the permission pull_requests: write",
		GitLab:      "the scope api, or its user the role Developer",
		Gitea:       "one of the scopes write:repository and write:issue, or its user the right to write to the repository",
		AzureDevOps: "the scope Code (Read & write), or its user the permission Contribute to pull requests",
	}[c.kind]
	return Unauthorized, "the token lacks " + needs
}

// permissions rewrites GitHub's list (pull_requests=write; contents=read, ...) as its documentation writes permissions.
func permissions(list string) string {
	return strings.NewReplacer("=", ": ", ";", " or").Replace(list)
}

// isLoginPage reports whether Azure DevOps sent its login page, which it does for invalid tokens instead of a status 401.
func (c *client) isLoginPage(received reply) bool {
	if c.kind != AzureDevOps {
		return false
	}
	isRedirect := received.status == http.StatusFound && strings.Contains(received.header.Get("Location"), "_signin")
	return received.status == http.StatusNonAuthoritativeInfo || isRedirect
}

// hostMessage returns the messages in the body of a failure. Hosts send a text, a list, or an object by field, in message, error, errors
// and error_description.
func hostMessage(received reply) string {
	var decoded any
	if received.tooLarge || !received.isJSON() || json.Unmarshal(received.body, &decoded) != nil {
		return ""
	}
	var found []string
	collect(decoded, maxDepth, func(text string) {
		text = strings.TrimSpace(text)
		if text != "" && len(found) < maxMessages && !slices.Contains(found, text) {
			found = append(found, text)
		}
	})
	return strings.Join(found, "; ")
}

// collect adds the messages of a value.
func collect(value any, depth int, add func(string)) {
	if depth == 0 {
		return
	}
	switch value := value.(type) {
	case string:
		add(value)
	case []any:
		for _, item := range value[:min(len(value), maxMessages)] {
			collect(item, depth-1, add)
		}
	case map[string]any:
		known := false
		for _, key := range []string{"message", "error", "error_description", "errors"} {
			if inner, ok := value[key]; ok {
				known = true
				collect(inner, depth-1, add)
			}
		}
		if !known {
			collectFields(value, depth, add)
		}
	}
}

// collectFields adds the messages of an object whose keys are the fields in question. GitHub has objects with field and code.
func collectFields(fields map[string]any, depth int, add func(string)) {
	if code, ok := fields["code"].(string); ok {
		field, _ := fields["field"].(string) // A missing field is an empty one.
		add(strings.TrimSpace(field + " " + code))
		return
	}
	keys := make([]string, 0, len(fields))
	for key := range fields {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys[:min(len(keys), maxMessages)] {
		collect(fields[key], depth-1, func(text string) { add(key + ": " + text) })
	}
}

func quote(said string) string {
	if said == "" {
		return ""
	}
	return ": " + said
}

// target returns the host and path of a redirect, without a query, which can contain secrets.
func target(header http.Header) string {
	location, err := url.Parse(header.Get("Location"))
	if err != nil {
		return "an invalid URL"
	}
	return (&url.URL{Scheme: location.Scheme, Host: location.Host, Path: location.Path}).String()
}

// show returns the start of a text, printable and without secrets.
func show(redactor outbound.Redactor, text string) string {
	return truncate(printable.Line(strings.Join(strings.Fields(redactor.Redact(text)), " ")), maxShown)
}

// truncate returns the start of a text of at most limit bytes, with an ellipsis if something was cut.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
