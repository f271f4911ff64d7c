// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package texttemplate

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"text/template/parse"
)

// evaluation runs a checked template. It does what text/template does for the templates that check accepts, except that it calls no
// methods: text/template calls methods by names that only a template knows, for which the linker keeps every method of every type in the
// program, a quarter of its size.
type evaluation struct {
	tree *parse.Tree
	out  io.Writer
	// variables are the declared variables, the innermost last. The first is $, the input.
	variables []variable
}

type variable struct {
	name  string
	value reflect.Value
}

var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

// evaluate writes the output of a template for data, a struct.
func evaluate(tree *parse.Tree, out io.Writer, data any) error {
	input := reflect.ValueOf(data)
	e := evaluation{tree: tree, out: out, variables: []variable{{"$", input}}}
	return e.list(tree.Root, input)
}

// errorAt returns an error with the position of a node.
func (e *evaluation) errorAt(node parse.Node, err error) error {
	where, what := e.tree.ErrorContext(node)
	return fmt.Errorf("template: %s: at <%s>: %w", where, what, err)
}

func (e *evaluation) list(list *parse.ListNode, dot reflect.Value) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := e.node(node, dot); err != nil {
			return err
		}
	}
	return nil
}

func (e *evaluation) node(node parse.Node, dot reflect.Value) error {
	switch node := node.(type) {
	case *parse.TextNode:
		_, err := e.out.Write(node.Text)
		return err
	case *parse.ActionNode:
		return e.action(node, dot)
	case *parse.IfNode:
		return e.branch(&node.BranchNode, dot, false)
	case *parse.WithNode:
		return e.branch(&node.BranchNode, dot, true)
	case *parse.RangeNode:
		return e.loop(node, dot)
	case *parse.BreakNode:
		return errBreak
	case *parse.ContinueNode:
		return errContinue
	case *parse.CommentNode:
		return nil
	}
	return e.errorAt(node, fmt.Errorf("must not use %s", node))
}

func (e *evaluation) action(node *parse.ActionNode, dot reflect.Value) error {
	value, err := e.pipe(node.Pipe, dot)
	if err != nil || len(node.Pipe.Decl) > 0 {
		return err
	}
	_, err = fmt.Fprint(e.out, value.Interface())
	return err
}

// branch runs one of two lists. with makes the condition the dot of the first.
func (e *evaluation) branch(node *parse.BranchNode, dot reflect.Value, with bool) error {
	defer e.leave(len(e.variables))
	condition, err := e.pipe(node.Pipe, dot)
	switch {
	case err != nil:
		return err
	case !isTrue(condition):
		return e.list(node.ElseList, dot)
	case with:
		dot = condition
	}
	return e.list(node.List, dot)
}

func (e *evaluation) loop(node *parse.RangeNode, dot reflect.Value) error {
	defer e.leave(len(e.variables))
	items, err := e.pipe(node.Pipe, dot)
	if err != nil {
		return err
	}
	if items.Kind() != reflect.Slice {
		return e.errorAt(node, fmt.Errorf("range can't iterate over %v", items))
	}
	if items.Len() == 0 {
		return e.list(node.ElseList, dot)
	}
	declared := len(e.variables)
	for i := range items.Len() {
		e.iterate(node.Pipe, declared, reflect.ValueOf(i), items.Index(i))
		err := e.list(node.List, items.Index(i))
		e.leave(declared)
		if errors.Is(err, errBreak) {
			break
		}
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

// iterate sets the variables of a range: the item, or the index and the item.
func (e *evaluation) iterate(pipe *parse.PipeNode, declared int, index, item reflect.Value) {
	values := []reflect.Value{item}
	if len(pipe.Decl) > 1 {
		values = []reflect.Value{index, item}
	}
	for i, of := range pipe.Decl {
		if pipe.IsAssign {
			e.assign(of.Ident[0], values[i])
		} else {
			e.variables[declared-len(pipe.Decl)+i].value = values[i]
		}
	}
}

// leave forgets the variables that a block declared.
func (e *evaluation) leave(declared int) { e.variables = e.variables[:declared] }

func (e *evaluation) assign(name string, value reflect.Value) {
	for i := len(e.variables) - 1; i >= 0; i-- {
		if e.variables[i].name == name {
			e.variables[i].value = value
			return
		}
	}
}

func (e *evaluation) pipe(pipe *parse.PipeNode, dot reflect.Value) (value reflect.Value, err error) {
	for _, command := range pipe.Cmds {
		if value, err = e.command(command, dot, value); err != nil {
			return reflect.Value{}, err
		}
	}
	for _, of := range pipe.Decl {
		if pipe.IsAssign {
			e.assign(of.Ident[0], value)
		} else {
			e.variables = append(e.variables, variable{of.Ident[0], value})
		}
	}
	return value, nil
}

// command returns the value of a command. piped is the value of the one before it, which is the last argument; invalid if there is none.
func (e *evaluation) command(command *parse.CommandNode, dot, piped reflect.Value) (reflect.Value, error) {
	first := command.Args[0]
	if name, ok := first.(*parse.IdentifierNode); ok {
		return e.function(command, name.Ident, command.Args[1:], dot, piped)
	}
	if len(command.Args) > 1 || piped.IsValid() {
		return reflect.Value{}, e.errorAt(first, fmt.Errorf("can't give argument to non-function %s", first))
	}
	return e.argument(first, dot)
}

func (e *evaluation) argument(node parse.Node, dot reflect.Value) (reflect.Value, error) {
	switch node := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.FieldNode:
		return e.fields(node, dot, node.Ident)
	case *parse.VariableNode:
		return e.fields(node, e.variable(node.Ident[0]), node.Ident[1:])
	case *parse.ChainNode:
		value, err := e.argument(node.Node, dot)
		if err != nil {
			return reflect.Value{}, err
		}
		return e.fields(node, value, node.Field)
	case *parse.PipeNode:
		return e.pipe(node, dot)
	case *parse.IdentifierNode:
		return e.function(node, node.Ident, nil, dot, reflect.Value{})
	case *parse.StringNode:
		return reflect.ValueOf(node.Text), nil
	case *parse.BoolNode:
		return reflect.ValueOf(node.True), nil
	case *parse.NumberNode:
		if node.IsInt {
			return reflect.ValueOf(int(node.Int64)), nil
		}
	}
	return reflect.Value{}, e.errorAt(node, fmt.Errorf("can't use %s as a value", node))
}

// variable returns the value of a variable. The parser rejects undeclared ones.
func (e *evaluation) variable(name string) reflect.Value {
	for i := len(e.variables) - 1; i > 0; i-- {
		if e.variables[i].name == name {
			return e.variables[i].value
		}
	}
	return e.variables[0].value
}

// fields follows the names of fields from a struct.
func (e *evaluation) fields(node parse.Node, value reflect.Value, names []string) (reflect.Value, error) {
	for _, name := range names {
		if value.Kind() != reflect.Struct || !value.FieldByName(name).IsValid() {
			return reflect.Value{}, e.errorAt(node, fmt.Errorf("can't evaluate field %s in type %s", name, value.Type()))
		}
		value = value.FieldByName(name)
	}
	return value, nil
}

// isTrue reports whether a value is not the zero value of its type; structs are always true.
func isTrue(value reflect.Value) bool {
	if value.Kind() == reflect.Slice {
		return value.Len() > 0
	}
	return value.Kind() == reflect.Struct || !value.IsZero()
}
