// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package texttemplate

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"text/template/parse"
)

// functions returns the allowed functions: those whose output is no longer than their input.
func functions() []string {
	return []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice"}
}

// function calls a function with the values of nodes and, if valid, piped. call is its call in the template.
func (e *evaluation) function(
	call parse.Node, name string, nodes []parse.Node, dot, piped reflect.Value,
) (reflect.Value, error) {
	values := make([]reflect.Value, 0, len(nodes)+1)
	for i, node := range nodes {
		value, err := e.argument(node, dot)
		if err != nil {
			return reflect.Value{}, err
		}
		// "and" and "or" do not evaluate what follows the argument that decides.
		last := i == len(nodes)-1 && !piped.IsValid()
		if !last && (name == "and" && !isTrue(value) || name == "or" && isTrue(value)) {
			return value, nil
		}
		values = append(values, value)
	}
	if piped.IsValid() {
		values = append(values, piped)
	}
	result, err := apply(name, values)
	if err != nil {
		return reflect.Value{}, e.errorAt(call, fmt.Errorf("error calling %s: %w", name, err))
	}
	return result, nil
}

// apply returns the result of a function for all its arguments.
func apply(name string, arguments []reflect.Value) (result reflect.Value, err error) {
	least, most := arity(name)
	if len(arguments) < least || len(arguments) > most {
		return result, fmt.Errorf("wrong number of arguments: %d", len(arguments))
	}
	var truth bool
	switch name {
	case "and", "or":
		return arguments[len(arguments)-1], nil
	case "index":
		return index(arguments[0], arguments[1:])
	case "slice":
		return slice(arguments[0], arguments[1:])
	case "len":
		if kind := arguments[0].Kind(); kind != reflect.String && kind != reflect.Slice {
			return result, fmt.Errorf("len of type %s", arguments[0].Type())
		}
		return reflect.ValueOf(arguments[0].Len()), nil
	case "not":
		truth = !isTrue(arguments[0])
	case "eq":
		truth, err = equalsAny(arguments[0], arguments[1:])
	default:
		truth, err = compare(name, arguments[0], arguments[1])
	}
	return reflect.ValueOf(truth), err
}

// arity returns the least and largest number of arguments of a function.
func arity(name string) (least, most int) {
	const many = 1 << 10 // more than a template has room for
	switch name {
	case "and", "or", "index":
		return 1, many
	case "slice":
		return 1, 4
	case "not", "len":
		return 1, 1
	case "eq":
		return 2, many
	}
	return 2, 2
}

// equalsAny reports whether a value equals one of others.
func equalsAny(value reflect.Value, others []reflect.Value) (bool, error) {
	for _, other := range others {
		equal, err := compare("eq", value, other)
		if equal || err != nil {
			return equal, err
		}
	}
	return false, nil
}

var errIncomparable = errors.New("incompatible types for comparison")

// compare compares two strings or numbers. For eq and ne it also compares booleans, and other values of comparable types.
func compare(name string, a, b reflect.Value) (bool, error) {
	order := 0
	switch equality := name == "eq" || name == "ne"; {
	case a.Kind() == reflect.String && b.Kind() == reflect.String:
		order = cmp.Compare(a.String(), b.String())
	case isNumber(a) && isNumber(b):
		order = cmp.Compare(number(a), number(b))
	case !equality || isBasic(a) != isBasic(b) || isBasic(a) && a.Kind() != b.Kind() || !b.Comparable():
		return false, errIncomparable
	case a.Interface() != b.Interface():
		order = 1
	}
	switch name {
	case "eq":
		return order == 0, nil
	case "ne":
		return order != 0, nil
	case "lt":
		return order < 0, nil
	case "le":
		return order <= 0, nil
	case "gt":
		return order > 0, nil
	}
	return order >= 0, nil
}

// isBasic reports whether a value is a string, a number or a boolean.
func isBasic(value reflect.Value) bool {
	return value.Kind() == reflect.String || value.Kind() == reflect.Bool || isNumber(value)
}

// isNumber reports whether a value is an int, or the byte of a string.
func isNumber(value reflect.Value) bool { return value.CanInt() || value.CanUint() }

func number(value reflect.Value) int {
	if value.CanUint() {
		return int(value.Uint())
	}
	return int(value.Int())
}

// index returns the item of a list, the byte of a string, or what further positions select in it.
func index(value reflect.Value, positions []reflect.Value) (reflect.Value, error) {
	for _, position := range positions {
		if kind := value.Kind(); kind != reflect.String && kind != reflect.Slice {
			return reflect.Value{}, fmt.Errorf("can't index item of type %s", value.Type())
		}
		i, err := positionIn(position, value.Len()-1)
		if err != nil {
			return reflect.Value{}, err
		}
		value = value.Index(i)
	}
	return value, nil
}

// slice returns a part of a list or string, from the first position to before the second.
func slice(value reflect.Value, positions []reflect.Value) (reflect.Value, error) {
	if kind := value.Kind(); kind != reflect.String && kind != reflect.Slice {
		return reflect.Value{}, fmt.Errorf("can't slice item of type %s", value.Type())
	}
	if len(positions) == 3 {
		return reflect.Value{}, errors.New("can't slice with three positions")
	}
	bounds := [2]int{0, value.Len()}
	for i, position := range positions {
		at, err := positionIn(position, value.Len())
		if err != nil {
			return reflect.Value{}, err
		}
		bounds[i] = at
	}
	if bounds[0] > bounds[1] {
		return reflect.Value{}, fmt.Errorf("invalid slice index: %d > %d", bounds[0], bounds[1])
	}
	return value.Slice(bounds[0], bounds[1]), nil
}

// positionIn returns a position, which is at most last.
func positionIn(position reflect.Value, last int) (int, error) {
	if !isNumber(position) {
		return 0, fmt.Errorf("can't index with type %s", position.Type())
	}
	if i := number(position); i >= 0 && i <= last {
		return i, nil
	}
	return 0, fmt.Errorf("index out of range: %d", number(position))
}
