// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxOperations bounds the work of a patch: each operation parses and writes the object.
const maxOperations = 100

// operations is a JSON patch.
type operations []operation

var _ change = operations{}

// operation is a validated operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	steps []jsonpatch.Patch
}

var pointer = regexp.MustCompile(`^(/([^~]|~[01])*)?$`)

func readOperations(document any) (change, error) {
	list, ok := document.([]any)
	if !ok {
		return nil, errors.New("must be a list of operations, such as [{op: replace, path: /spec/replicas, value: 1}]")
	}
	if n := len(list); n == 0 || n > maxOperations {
		return nil, fmt.Errorf("must have 1 to %d operations, has %d", maxOperations, n)
	}
	var out operations
	for i, item := range list {
		fields, _ := item.(map[string]any)
		read, err := readOperation(fields)
		if err != nil {
			return nil, fmt.Errorf("operation [%d] %w", i, err)
		}
		out = append(out, read)
	}
	return out, nil
}

// operands are the fields of an operation other than op.
var operands = map[string][]string{
	"add": {"path", "value"}, "replace": {"path", "value"}, "test": {"path", "value"},
	"remove": {"path"}, "move": {"from", "path"}, "copy": {"from", "path"},
}

func readOperation(fields map[string]any) (operation, error) {
	var o operation
	name, _ := fields["op"].(string)
	wanted, ok := operands[name]
	if !ok {
		return o, errors.New("must have an op: add, remove, replace, move, copy or test")
	}
	for _, operand := range wanted {
		value, ok := fields[operand]
		text, isText := value.(string)
		if !ok || operand != "value" && (!isText || !pointer.MatchString(text)) {
			return o, fmt.Errorf("(%s) must have %s: a path is a JSON pointer such as /spec/replicas, with ~1 for / and ~0 for ~",
				name, strings.Join(wanted, " and "))
		}
	}
	if len(fields) > len(wanted)+1 {
		return o, fmt.Errorf("(%s) must have op, %s and nothing else", name, strings.Join(wanted, " and "))
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return o, err
	}
	return o, errors.Join(o.checkImmutable(), o.plan(text))
}

// checkImmutable rejects an operation on an immutable field.
func (o operation) checkImmutable() error {
	var changed []string
	switch o.Op {
	case "test":
	case "move":
		changed = []string{o.Path, o.From}
	default:
		changed = []string{o.Path}
	}
	for _, path := range changed {
		names := strings.Split(path, "/")[1:]
		switch {
		case len(names) == 0:
			return errImmutable("the object as a whole")
		case slices.Contains(immutableFields, names[0]), names[0] == "metadata" && len(names) == 1:
			return errImmutable(names[0])
		case names[0] == "metadata" && !slices.Contains(mutableMetadata, names[1]):
			return errImmutable("metadata." + names[1])
		}
	}
	return nil
}

// plan translates the operation into steps for the library. The library replaces a missing value and copies it as null,
// so a step removes the required value first, for good or as a check.
func (o *operation) plan(text []byte) error {
	removal := func(path string) jsonpatch.Patch { return jsonpatch.Patch{{"op": raw("remove"), "path": raw(path)}} }
	var whole jsonpatch.Operation
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	switch o.Op {
	case "replace":
		whole["op"] = raw("add")
		o.steps = []jsonpatch.Patch{append(removal(o.Path), whole)}
	case "copy":
		o.steps = []jsonpatch.Patch{removal(o.From), {whole}}
	default:
		o.steps = []jsonpatch.Patch{{whole}}
	}
	return nil
}

func raw(text string) *json.RawMessage {
	quoted, _ := json.Marshal(text) // never fails for a string
	message := json.RawMessage(quoted)
	return &message
}

func (o operations) apply(object *unstructured.Unstructured, done *byteCount) (map[string]any, error) {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("write the object as JSON: %w", err)
	}
	for i, one := range o {
		if text, err = one.apply(text); err == nil {
			err = done.add(text)
		}
		if err != nil {
			return nil, fmt.Errorf("operation [%d] (%s %s): %w", i, one.Op, one.Path, err)
		}
	}
	return decode(text)
}

func (o operation) apply(before []byte) ([]byte, error) {
	var after []byte
	for _, step := range o.steps {
		var err error
		if after, err = step.Apply(before); err != nil {
			return nil, o.explain(err)
		}
	}
	if len(after) > maxObjectBytes {
		return nil, fmt.Errorf("makes the object larger than %d bytes", maxObjectBytes)
	}
	return after, nil
}

func (o operation) explain(err error) error {
	if errors.Is(err, jsonpatch.ErrTestFailed) {
		return errors.New("the object has another value there")
	}
	if o.From != "" {
		return fmt.Errorf("the object does not have %s, or nowhere to put it", o.From)
	}
	return errors.New("the object does not have that path")
}
