// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// describe sets the descriptions of the schema's properties to the comments in values.yaml. It returns an error if either
// has a value that the other lacks.
func describe(chart string, schema object) error {
	values, err := readValues(chart)
	if err != nil {
		return err
	}
	definitions, _ := schema["definitions"].(object)
	return describeProperties("", values, schema, definitions)
}

// readValues returns the map in values.yaml, with its comments.
func readValues(chart string) (*yaml.Node, error) {
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	var values yaml.Node
	if err := yaml.Unmarshal(content, &values); err != nil {
		return nil, fmt.Errorf("read values.yaml: %w", err)
	}
	return values.Content[0], nil
}

// describeProperties does this for the keys of one map of values.yaml. An empty map has no comments for its keys.
func describeProperties(prefix string, values *yaml.Node, schema, definitions object) error {
	properties, ok := schema["properties"].(object)
	if !ok || len(values.Content) == 0 {
		return nil
	}
	documented := map[string]bool{}
	for at := 0; at < len(values.Content); at += 2 {
		key, value := values.Content[at], values.Content[at+1]
		property, ok := properties[key.Value].(object)
		if !ok {
			return fmt.Errorf("values.yaml has %s%s, and schema.yaml does not", prefix, key.Value)
		}
		documented[key.Value] = true
		properties[key.Value] = described(property, definitions, comment(key.HeadComment))
		if err := describeProperties(prefix+key.Value+".", value, property, definitions); err != nil {
			return err
		}
	}
	return checkDocumented(prefix, properties, documented)
}

// described returns the schema of a property with a description. A reference is inlined, since other keywords next to it
// are ignored.
func described(property, definitions object, description string) object {
	if description == "" {
		return property
	}
	if name, ok := property["$ref"].(string); ok {
		definition, _ := definitions[path.Base(name)].(object)
		property = maps.Clone(definition)
	}
	property["description"] = description
	return property
}

// comment returns the text of a comment in one line.
func comment(text string) string {
	lines := strings.Split(text, "\n")
	for number, line := range lines {
		lines[number] = strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
	}
	return strings.Join(lines, " ")
}

// checkDocumented returns an error for a property that is not in values.yaml, unless schema.yaml describes it.
func checkDocumented(prefix string, properties object, documented map[string]bool) error {
	for name, property := range properties {
		if _, ok := property.(object)["description"]; !ok && !documented[name] {
			return fmt.Errorf("schema.yaml has %s%s, and values.yaml does not", prefix, name)
		}
	}
	return nil
}
