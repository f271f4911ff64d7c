// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// invalidField describes what is wrong with one field of a patch.
type invalidField struct {
	field   string
	problem func(path *field.Path) *field.Error
}

func (r *invalidField) below(path *field.Path) *field.Error { return r.problem(path.Child(r.field)) }

// invalidText describes what is wrong with the text of a patch.
func invalidText(err error) *invalidField {
	return &invalidField{"patch", func(path *field.Path) *field.Error { return field.Invalid(path, field.OmitValueType{}, err.Error()) }}
}

// read parses a patch by its type.
func read(p Patch) (change, *invalidField) {
	var reader func(document any) (change, error)
	switch p.Type {
	case StrategicMerge:
		reader = func(document any) (change, error) { return readStrategic(document, p.Target) }
	case JSON6902:
		reader = readOperations
	case Merge:
		reader = readMerge
	case "":
		return nil, &invalidField{"type", func(path *field.Path) *field.Error {
			return field.Required(path, "must be StrategicMerge, JSON6902 or Merge")
		}}
	default:
		return nil, &invalidField{"type", func(path *field.Path) *field.Error {
			return field.NotSupported(path, p.Type, []Type{StrategicMerge, JSON6902, Merge})
		}}
	}
	if strings.TrimSpace(p.Patch) == "" {
		return nil, &invalidField{"patch", func(path *field.Path) *field.Error { return field.Required(path, "the patch, as YAML or JSON") }}
	}
	if len(p.Patch) > maxPatchBytes {
		return nil, &invalidField{"patch", func(path *field.Path) *field.Error { return field.TooLong(path, "", maxPatchBytes) }}
	}
	document, err := parse([]byte(p.Patch))
	if err != nil {
		return nil, invalidText(err)
	}
	change, err := reader(document)
	if err != nil {
		return nil, invalidText(err)
	}
	return change, nil
}

// parse parses one YAML or JSON document as kubectl does, with whole numbers as int64.
func parse(text []byte) (any, error) {
	if !json.Valid(text) {
		if err := checkYAML(text); err != nil {
			return nil, err
		}
		converted, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, errText(err)
		}
		text = converted
	}
	var document any
	repeated, err := kjson.UnmarshalStrict(text, &document)
	if err != nil {
		return nil, errText(err)
	}
	if len(repeated) > 0 {
		return nil, errText(repeated[0])
	}
	return document, nil
}

func errText(err error) error { return fmt.Errorf("must be YAML or JSON: %s", summarize(err)) }

// summarize shortens an error to its beginning, on one line: a library may report every line of a text.
func summarize(err error) string {
	lines := strings.SplitN(err.Error(), "\n", 3)
	text := strings.Join(lines[:min(2, len(lines))], "")
	return strings.ToValidUTF8(text[:min(200, len(text))], "")
}

// checkYAML rejects aliases and anything other than one document: a few lines of aliases can expand to gigabytes.
func checkYAML(text []byte) error {
	decoder := yamlv3.NewDecoder(strings.NewReader(string(text)))
	var document, second yamlv3.Node
	if err := decoder.Decode(&document); err != nil {
		return errText(err)
	}
	if hasAlias(&document) {
		return errors.New("must not use YAML aliases (*name): write out what they stand for")
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return errors.New("must be one document: what comes after a line of --- belongs into a patch of its own")
	}
	return nil
}

func hasAlias(node *yamlv3.Node) bool {
	if node.Kind == yamlv3.AliasNode {
		return true
	}
	for _, child := range node.Content {
		if hasAlias(child) {
			return true
		}
	}
	return false
}
