// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package summary returns the state of objects on one line for users. Tables, the plugin, the web page and notifications show the same
// text.
package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// Count returns a number with its noun, as in 2 ConfigMaps, 2 Gateways, 2 NetworkPolicies or 1 Ingress.
func Count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay") && !strings.HasSuffix(noun, "ey"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Counts returns numbers with their nouns, sorted by noun, as in 2 ConfigMaps, 1 Secret.
func Counts(numbers map[string]int) string {
	var counts []string
	for _, noun := range slices.Sorted(maps.Keys(numbers)) {
		counts = append(counts, Count(numbers[noun], noun))
	}
	return strings.Join(counts, ", ")
}

// maxNamed is the maximum number of names in a list.
const maxNamed = 20

// List returns names, sorted, and the number of those beyond maxNamed.
func List(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// With adds a message to a state, if it is not empty, as in Failed: the namespace production does not exist.
func With(state, message string) string {
	if message = Line(message); message == "" {
		return state
	}
	return state + ": " + message
}

// Line returns a text on one line, with invisible characters escaped.
func Line(text string) string {
	return printable.Line(strings.Join(strings.Fields(text), " "))
}

// Cut truncates a text to a number of bytes.
func Cut(text string, most int) string {
	const dots = "..."
	if len(text) <= most {
		return text
	}
	end := most - len(dots)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
