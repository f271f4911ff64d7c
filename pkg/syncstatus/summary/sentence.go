// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package summary answers how things are, on one line, in the words that a person would use. Tables, the plugin, the page
// and notifications show the same ones.
package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// Count is a number of things, as in 2 ConfigMaps or 1 Ingress.
func Count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Counts are numbers of things, in the order of what they are called, as in 2 ConfigMaps, 1 Secret.
func Counts(numbers map[string]int) string {
	var counts []string
	for _, noun := range slices.Sorted(maps.Keys(numbers)) {
		counts = append(counts, Count(numbers[noun], noun))
	}
	return strings.Join(counts, ", ")
}

// maxNamed is how many things a list names.
const maxNamed = 20

// List names things in order, and counts those beyond 20.
func List(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// With adds what it is about to a state, if that is known, as in Failed: the namespace production does not exist.
func With(state, message string) string {
	if message = Line(message); message == "" {
		return state
	}
	return state + ": " + message
}

// Line is a text on one line, in which all is seen.
func Line(text string) string {
	return printable.Line(strings.Join(strings.Fields(text), " "))
}

// Cut leaves so much of a text as fits into a number of bytes.
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
