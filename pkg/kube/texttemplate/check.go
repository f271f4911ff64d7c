// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package texttemplate

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template/parse"
)

// fields are the fields available at one place of a template. A list has the fields of its items; every other field has
// nil.
type fields map[string]fields

// fieldsOf returns the fields of a struct.
func fieldsOf(data any) fields {
	known := fields{}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(data)) {
		switch {
		case field.Anonymous: // Its fields are among the visible ones.
		case field.Type.Kind() != reflect.Slice:
			known[field.Name] = nil
		case field.Type.Elem().Kind() == reflect.Struct:
			known[field.Name] = fieldsOf(reflect.Zero(field.Type.Elem()).Interface())
		default:
			known[field.Name] = fields{}
		}
	}
	return known
}

// check validates a template without running it. A valid template uses only known fields, and its work is bounded by its
// length times the length of one list: it cannot call itself, build text by printing repeatedly, or nest loops.
func check(tree *parse.Tree, known fields) error {
	c := checker{tree: tree, root: scope{fields: known}}
	c.list(tree.Root, c.root)
	return c.problem
}

// scope is the type of the dot at one place of a template.
type scope struct {
	fields fields
	// unknown is set if the fields cannot be determined without running the template.
	unknown bool
}

// checker walks through a template and keeps the first problem.
type checker struct {
	tree    *parse.Tree
	root    scope
	inRange bool
	problem error
}

func (c *checker) refuse(node parse.Node, problem string) {
	if c.problem == nil {
		where, _ := c.tree.ErrorContext(node)
		c.problem = located(errors.New("template: " + where + ": " + problem))
	}
}

func (c *checker) list(list *parse.ListNode, dot scope) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			c.pipe(node.Pipe, dot)
		case *parse.IfNode:
			c.branch(&node.BranchNode, dot, dot)
		case *parse.WithNode:
			c.branch(&node.BranchNode, dot, scope{unknown: true})
		case *parse.RangeNode:
			c.loop(node, dot)
		case *parse.TemplateNode:
			c.refuse(node, "must not use template, define or block")
		}
	}
}

// branch checks both branches; inside is the scope of the first.
func (c *checker) branch(node *parse.BranchNode, dot, inside scope) {
	c.pipe(node.Pipe, dot)
	c.list(node.List, inside)
	c.list(node.ElseList, dot)
}

func (c *checker) loop(node *parse.RangeNode, dot scope) {
	item, ok := c.listItem(node.Pipe, dot)
	if !ok || c.inRange {
		c.refuse(node, "must range over a list by its name, and not inside another range")
		return
	}
	c.inRange = true
	c.branch(&node.BranchNode, dot, item)
	c.inRange = false
}

// listItem returns the scope of a list's items if the pipe is only the name of a list.
func (c *checker) listItem(pipe *parse.PipeNode, dot scope) (scope, bool) {
	if len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return scope{}, false
	}
	var name string
	switch node := pipe.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		name = strings.Join(node.Ident, ".")
	case *parse.VariableNode:
		dot, name = c.root, strings.TrimPrefix(strings.Join(node.Ident, "."), "$.")
	}
	item := dot.fields[name]
	return scope{fields: item}, item != nil
}

func (c *checker) pipe(pipe *parse.PipeNode, dot scope) {
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			c.argument(argument, dot)
		}
	}
}

func (c *checker) argument(node parse.Node, dot scope) {
	switch node := node.(type) {
	case *parse.FieldNode:
		c.field(node, node.Ident, dot)
	case *parse.VariableNode:
		if node.Ident[0] == "$" && len(node.Ident) > 1 {
			c.field(node, node.Ident[1:], c.root)
		}
	case *parse.IdentifierNode:
		if !slices.Contains(functions(), node.Ident) {
			c.refuse(node, "must not use the function "+node.Ident+"; allowed are "+strings.Join(functions(), ", "))
		}
	case *parse.PipeNode:
		c.pipe(node, dot)
	case *parse.ChainNode:
		c.argument(node.Node, dot)
	}
}

func (c *checker) field(node parse.Node, names []string, dot scope) {
	if dot.unknown {
		return
	}
	if _, ok := dot.fields[names[0]]; !ok || len(names) > 1 {
		known := slices.Sorted(maps.Keys(dot.fields))
		c.refuse(node, "must not use ."+strings.Join(names, ".")+"; known here are ."+strings.Join(known, ", ."))
	}
}
