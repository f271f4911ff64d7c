// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command openapischema prints the OpenAPI v2 document of the group's kinds, without paths. The generator of apply
// configurations reads it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/configbutler/slipstream/pkg/generated/openapi"
)

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(document()); err != nil {
		fmt.Fprintf(os.Stderr, "failed to print the OpenAPI document: %v\n", err)
		os.Exit(1)
	}
}

func document() *spec.Swagger {
	definitions := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + name)
	})
	schemas := make(spec.Definitions, len(definitions))
	for name, definition := range definitions {
		schemas[name] = v2Schema(definition)
	}
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "Slipstream", Version: "unversioned"}},
		Definitions: schemas,
	}}
}

// v2Schema returns the schema that a type embeds for v2 when its v3 schema cannot be expressed there.
func v2Schema(definition common.OpenAPIDefinition) spec.Schema {
	if schema, ok := definition.Schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
		return schema
	}
	return definition.Schema
}
