// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ingresshost renders the hosts of Ingresses, Gateways and routes in an environment from their hosts in the source
// and a template.
package ingresshost

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// The variables of templates.
const (
	host        = "{host}"
	label       = "{label}"
	environment = "{environment}"
	namespace   = "{namespace}"
)

var variable = regexp.MustCompile(`\{[^{}]*\}`)

// Template renders hosts.
type Template struct{ text string }

// Parse parses a template: a host name with the variables {host} for the host in the source, {label} for its first label,
// and {environment} and {namespace} for the name and the target namespace of the environment.
func Parse(text string) (Template, error) {
	known := []string{host, label, environment, namespace}
	for _, name := range variable.FindAllString(text, -1) {
		if !slices.Contains(known, name) {
			return Template{}, fmt.Errorf("must have no other variables than %s, not %s", strings.Join(known, ", "), name)
		}
	}
	template := Template{text: text}
	if _, err := template.Host("a.b", Place{Environment: "c", Namespace: "d"}); err != nil {
		return Template{}, fmt.Errorf("must be a host name with variables, such as {label}.{environment}.dev.example.com: %w", err)
	}
	return template, nil
}

// Place identifies the environment that a host is rendered for.
type Place struct {
	// Environment is the name of the environment.
	Environment string
	// Namespace is the target namespace.
	Namespace string
}

// Host renders a host of the source, which may start with a wildcard. It returns an error if the result is not a valid host
// name: a label may be too long, or a wildcard not at the start.
func (t Template) Host(source string, place Place) (string, error) {
	first, _, _ := strings.Cut(source, ".")
	made := strings.NewReplacer(host, source, label, first, environment, place.Environment, namespace, place.Namespace).Replace(t.text)
	problems := utilvalidation.IsDNS1123Subdomain(made)
	if strings.HasPrefix(made, "*") {
		problems = utilvalidation.IsWildcardDNS1123Subdomain(made)
	}
	for part := range strings.SplitSeq(made, ".") {
		if len(part) > utilvalidation.DNS1123LabelMaxLength {
			problems = append(problems, fmt.Sprintf("%s has more than %d characters", part, utilvalidation.DNS1123LabelMaxLength))
		}
	}
	if len(problems) > 0 {
		return "", fmt.Errorf("%s is no host name: %s", made, strings.Join(problems, ", "))
	}
	return made, nil
}
