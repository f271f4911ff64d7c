// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ingresshost answers which host an Ingress has in an environment, by the host that it has in the source and a
// template.
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

// Template makes hosts.
type Template struct{ text string }

// Parse reads a template: a host name in which {host} stands for the host in the source, {label} for what is before that
// host's first dot, {environment} and {namespace} for the name and the target namespace of an environment.
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

// Place is where a host is made for.
type Place struct {
	// Environment is the name of the environment.
	Environment string
	// Namespace is the one that is built.
	Namespace string
}

// Host makes the host of a rule from the one that it has in the source, which may begin with a wildcard. The error says why
// that is no host name: a part of it may be too long, or a wildcard not at its beginning.
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
