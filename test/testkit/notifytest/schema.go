// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"
)

// kind describes a JSON object by the value of its field type.
type kind struct {
	// fields are the allowed fields beside type, and what they must have.
	fields map[string]rule
	// required are the fields that must be set.
	required []string
}

// rule returns the faults of a value. The path is its position.
type rule func(path string, value any) []string

// decode decodes a body that must be a single JSON object.
func decode(request Request) (map[string]any, []string) {
	if kind, _, err := mime.ParseMediaType(request.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, []string{fmt.Sprintf("the content type is %q, must be application/json", request.Header.Get("Content-Type"))}
	}
	var value map[string]any
	decoder := json.NewDecoder(bytes.NewReader(request.Body))
	if err := decoder.Decode(&value); err != nil || decoder.More() {
		return nil, []string{fmt.Sprintf("the body is not one JSON object: %v", err)}
	}
	return value, nil
}

// of is an object of one of some kinds.
func of(kinds map[string]kind) rule {
	return func(path string, value any) []string {
		object, ok := value.(map[string]any)
		if !ok {
			return []string{path + " must be an object"}
		}
		name, _ := object["type"].(string)
		kind, ok := kinds[name]
		if !ok {
			return []string{fmt.Sprintf("%s has the type %q, must be one of %v", path, name, slices.Sorted(maps.Keys(kinds)))}
		}
		return kind.check(path+"("+name+")", object)
	}
}

func (k kind) check(path string, object map[string]any) (faults []string) {
	for _, name := range k.required {
		if object[name] == nil {
			faults = append(faults, fmt.Sprintf("%s.%s is missing", path, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		rule, known := k.fields[name]
		switch {
		case name == "type":
		case !known:
			faults = append(faults, fmt.Sprintf("%s.%s is unknown", path, name))
		default:
			faults = append(faults, rule(path+"."+name, object[name])...)
		}
	}
	return faults
}

// list is a list of 1 to most values.
func list(most int, element rule) rule {
	return func(path string, value any) (faults []string) {
		values, ok := value.([]any)
		if !ok || len(values) == 0 || len(values) > most {
			return []string{fmt.Sprintf("%s must be a list of 1 to %d", path, most)}
		}
		for i, value := range values {
			faults = append(faults, element(fmt.Sprintf("%s[%d]", path, i), value)...)
		}
		return faults
	}
}

// text is a string of 1 to most characters.
func text(most int) rule {
	return func(path string, value any) []string {
		if text, ok := value.(string); !ok || text == "" || utf8.RuneCountInString(text) > most {
			return []string{fmt.Sprintf("%s must be text of 1 to %d characters: %.100v", path, most, value)}
		}
		return nil
	}
}

// link is an absolute URL with http or https.
func link(most int) rule {
	return func(path string, value any) []string {
		if url, _ := value.(string); !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			return []string{fmt.Sprintf("%s must be a URL: %v", path, value)}
		}
		return text(most)(path, value)
	}
}

// oneOf is one of some values.
func oneOf(allowed ...any) rule {
	return func(path string, value any) []string {
		if !slices.Contains(allowed, value) {
			return []string{fmt.Sprintf("%s is %v, must be one of %v", path, value, allowed)}
		}
		return nil
	}
}

// anything accepts all values.
func anything(string, any) []string { return nil }
