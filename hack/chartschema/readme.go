// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The table of values in the README is between these lines.
const (
	tableBegins = "<!-- The values, from values.yaml, by make manifests. -->\n"
	tableEnds   = "<!-- The end of the values. -->\n"
)

// printReadme prints the README of the chart in a folder, with the table of the current values.
func printReadme(chart string) error {
	text, err := readme(chart)
	if err != nil {
		return err
	}
	_, err = fmt.Print(text)
	return err
}

func readme(chart string) (string, error) {
	current, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		return "", err
	}
	values, err := readValues(chart)
	if err != nil {
		return "", err
	}
	before, rest, found := strings.Cut(string(current), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !found || !ends {
		return "", errors.New("README.md has no place for the values")
	}
	var table strings.Builder
	err = addRows(&table, "", values)
	return before + tableBegins + "| value | default | description |\n|---|---|---|\n" + table.String() + tableEnds + after, err
}

// addRows adds a row for each key of a map of values: its default, or the rows of its own keys.
func addRows(table *strings.Builder, prefix string, values *yaml.Node) error {
	for at := 0; at < len(values.Content); at += 2 {
		key, value := values.Content[at], values.Content[at+1]
		name, isMap := prefix+key.Value, value.Kind == yaml.MappingNode && value.Style != yaml.FlowStyle && len(value.Content) > 0
		text, err := defaultOf(value, isMap)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if about := comment(key.HeadComment); !isMap || about != "" {
			_, _ = fmt.Fprintf(table, "| `%s` | %s | %s |\n", name, text, strings.ReplaceAll(about, "|", `\|`)) // A Builder has no errors.
		}
		if isMap {
			if err := addRows(table, name+".", value); err != nil {
				return err
			}
		}
	}
	return nil
}

// defaultOf returns a value as JSON, or nothing for a map whose keys have rows.
func defaultOf(value *yaml.Node, isMap bool) (string, error) {
	if isMap {
		return "", nil
	}
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return "", err
	}
	var encoded bytes.Buffer
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(decoded); err != nil {
		return "", err
	}
	return "`" + strings.TrimSpace(encoded.String()) + "`", nil
}
