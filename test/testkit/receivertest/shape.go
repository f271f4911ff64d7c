// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/kube/annotation"
)

// shape returns the faults of a JSON value. The path is its position in the body.
type shape func(path string, value any) []string

// object is an object with exactly these fields.
func object(fields map[string]shape) shape {
	return func(path string, value any) (faults []string) {
		given, ok := value.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v, must be an object", path, value)}
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if fields[name] == nil {
				faults = append(faults, fmt.Sprintf("%s.%s is unknown", path, name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			field, found := given[name]
			if !found {
				faults = append(faults, fmt.Sprintf("%s.%s is missing", path, name))
				continue
			}
			faults = append(faults, fields[name](path+"."+name, field)...)
		}
		return faults
	}
}

// list is a list of elements with a shape.
func list(element shape) shape {
	return func(path string, value any) (faults []string) {
		given, ok := value.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v, must be a list", path, value)}
		}
		for at, value := range given {
			faults = append(faults, element(fmt.Sprintf("%s[%d]", path, at), value)...)
		}
		return faults
	}
}

// anyText is a string.
func anyText(path string, value any) []string {
	if _, ok := value.(string); !ok {
		return []string{fmt.Sprintf("%s is %v, must be text", path, value)}
	}
	return nil
}

// text is a string that is not empty.
func text(path string, value any) []string {
	if given, ok := value.(string); !ok || given == "" {
		return []string{fmt.Sprintf("%s is %q, must be text that is not empty", path, value)}
	}
	return nil
}

// exactly is a fixed value.
func exactly(want any) shape {
	return func(path string, value any) []string {
		if value != want {
			return []string{fmt.Sprintf("%s is %v, must be %v", path, value, want)}
		}
		return nil
	}
}

// labels is an object of strings.
func labels(path string, value any) (faults []string) {
	given, ok := value.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s is %v, must be an object", path, value)}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		faults = append(faults, anyText(path+"."+name, given[name])...)
	}
	return faults
}

// annotations is an object of strings without annotations that contain the configuration of an object.
func annotations(path string, value any) []string {
	faults := labels(path, value)
	given, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if annotation.HoldsConfiguration(name) {
			faults = append(faults, fmt.Sprintf("%s.%s must not leave the cluster", path, name))
		}
	}
	return faults
}

// moment is a time in UTC.
func moment(path string, value any) []string {
	given, _ := value.(string)
	if _, err := time.Parse(time.RFC3339, given); err != nil || !strings.HasSuffix(given, "Z") {
		return []string{fmt.Sprintf("%s is %v, must be a time of RFC 3339 that ends in Z", path, value)}
	}
	return nil
}
