// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chartschema prints the JSON schema of the chart's values. Its structure is in schema.yaml, the descriptions are
// the comments of the chart's values.yaml, and the flags are those of the server. With -readme it prints the chart's README instead, with
// a table of the values.
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

//go:embed schema.yaml
var shape []byte

// object is a JSON object.
type object = map[string]any

func main() {
	readme := flag.Bool("readme", false, "print the README")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: chartschema [-readme] CHART")
		os.Exit(2)
	}
	write := printSchema
	if *readme {
		write = printReadme
	}
	if err := write(flag.Arg(0)); err != nil {
		fmt.Fprintf(os.Stderr, "failed to describe the values: %v\n", err)
		os.Exit(1)
	}
}

// printSchema prints the schema for the chart in a folder.
func printSchema(chart string) error {
	var schema object
	if err := yaml.UnmarshalStrict(shape, &schema); err != nil {
		return fmt.Errorf("read schema.yaml: %w", err)
	}
	flags, err := flagsSchema(chart)
	if err != nil {
		return err
	}
	values := schema["properties"].(object)
	values["flags"] = flags
	if err := describe(chart, schema); err != nil {
		return err
	}
	closeObjects(schema)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(schema)
}

// closeObjects disallows additional properties in objects with properties.
func closeObjects(schema any) {
	switch schema := schema.(type) {
	case object:
		if _, ok := schema["properties"].(object); ok {
			schema["type"], schema["additionalProperties"] = "object", false
		}
		for _, each := range schema {
			closeObjects(each)
		}
	case []any:
		for _, each := range schema {
			closeObjects(each)
		}
	}
}
