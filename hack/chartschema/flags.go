// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/cmd/slipstream/app"
)

// flagsSchema returns the schema of the value flags: all flags of the server. It includes those that the chart sets from
// other values, so that the chart itself can reject them with a better error.
func flagsSchema(chart string) (object, error) {
	elsewhere, err := flagsOfValues(chart)
	if err != nil {
		return nil, err
	}
	properties := object{}
	app.NewCommand(context.Background()).Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" {
			return
		}
		if instead, ok := elsewhere[flag.Name]; ok {
			properties[flag.Name] = object{"description": "Not allowed: the chart sets it from " + instead + "."}
			return
		}
		properties[flag.Name] = flagSchema(flag)
	})
	return object{"properties": properties}, nil
}

// flagsOfValues returns the flags that the chart sets from values other than flags, with the names of these values.
func flagsOfValues(chart string) (map[string]string, error) {
	templates, err := template.ParseFiles(filepath.Join(chart, "templates", "_flags.tpl"))
	if err != nil {
		return nil, fmt.Errorf("read the flags of values: %w", err)
	}
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, "slipstream.flagsOfValues", nil); err != nil {
		return nil, fmt.Errorf("read the flags of values: %w", err)
	}
	var flags map[string]string
	return flags, yaml.UnmarshalStrict([]byte(text.String()), &flags)
}

// duration matches the durations that time.ParseDuration accepts.
const duration = `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`

// flagSchema returns the schema of the value of a flag.
func flagSchema(flag *pflag.Flag) object {
	schema := typeSchema(flag.Value.Type())
	schema["description"] = strings.TrimSpace(flag.Usage)
	if known := knownDefault(flag); known != nil {
		schema["default"] = known
	}
	return schema
}

// typeSchema returns the schema for a type of flags, by its name in the usage.
func typeSchema(name string) object {
	switch name {
	case "bool":
		return object{"type": "boolean"}
	case "int", "int64", "Level":
		return object{"type": "integer"}
	case "float32", "float64":
		return object{"type": "number"}
	case "duration":
		return object{"type": "string", "pattern": duration}
	case "stringSlice", "namedCertKey", "colonSeparatedMultimapStringString":
		return object{"type": []string{"string", "array"}, "items": object{"type": "string"}}
	case "int32Slice":
		return object{"type": []string{"integer", "array"}, "items": object{"type": "integer"}}
	case "quantity":
		return object{"type": []string{"string", "integer"}}
	}
	return object{"type": "string"}
}

// knownDefault returns the default of a numeric or boolean flag, or of a string or duration flag if it is not empty.
func knownDefault(flag *pflag.Flag) any {
	switch flag.Value.Type() {
	case "bool", "int", "int64", "Level", "float32", "float64":
		return json.RawMessage(flag.DefValue)
	case "string", "duration":
		if flag.DefValue != "" {
			return flag.DefValue
		}
	}
	return nil
}
