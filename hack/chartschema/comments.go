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

// describe gives the properties of schema the comments in values.yaml as their descriptions. It fails when one of the two
// has a value that the other does not have.
func describe(chart string, schema object) error {
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	var values yaml.Node
	if err := yaml.Unmarshal(content, &values); err != nil {
		return fmt.Errorf("reading values.yaml: %w", err)
	}
	definitions, _ := schema["definitions"].(object)
	return describeProperties("", values.Content[0], schema, definitions)
}

// describeProperties does so for the keys of one map of values.yaml. One that is empty there says nothing of its keys.
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
		properties[key.Value] = described(property, definitions, key.HeadComment)
		if err := describeProperties(prefix+key.Value+".", value, property, definitions); err != nil {
			return err
		}
	}
	return checkDocumented(prefix, properties, documented)
}

// described is the schema of a property with a description. It takes the place of a reference, beside which nothing counts.
func described(property, definitions object, comment string) object {
	if comment == "" {
		return property
	}
	if name, ok := property["$ref"].(string); ok {
		definition, _ := definitions[path.Base(name)].(object)
		property = maps.Clone(definition)
	}
	lines := strings.Split(comment, "\n")
	for number, line := range lines {
		lines[number] = strings.TrimPrefix(strings.TrimPrefix(line, "#"), " ")
	}
	property["description"] = strings.Join(lines, " ")
	return property
}

// checkDocumented wants every property in values.yaml, unless schema.yaml itself says what it is for.
func checkDocumented(prefix string, properties object, documented map[string]bool) error {
	for name, property := range properties {
		if _, ok := property.(object)["description"]; !ok && !documented[name] {
			return fmt.Errorf("schema.yaml has %s%s, and values.yaml does not", prefix, name)
		}
	}
	return nil
}
