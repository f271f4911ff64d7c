// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxTemplateLength bounds a template, in bytes.
const maxTemplateLength = 4096

// templateFields are the fields that a template sees in one place. A field that is a list has the fields of its items; every
// other field has none.
type templateFields map[string]templateFields

func authorFields() templateFields {
	return templateFields{"Username": nil, "Name": nil, "Email": nil, "Groups": {}, "Cluster": nil}
}

func messageFields() templateFields {
	return templateFields{
		"Subject": nil, "Destination": nil, "Author": nil, "Attribution": nil, "Operation": nil,
		"Changes": {"Operation": nil, "Group": nil, "Version": nil, "Resource": nil, "Namespace": nil, "Name": nil},
	}
}

// templateFunctions are those that make nothing longer than what they are given.
func templateFunctions() []string {
	return []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice"}
}

// validateTemplate checks a Go text/template without running it. A template that passes knows its fields, and its work is
// bounded by its own length times the length of one list: it cannot call itself, repeat text by printing it into
// itself, or nest one loop in another.
func validateTemplate(text string, fields templateFields, path *field.Path) field.ErrorList {
	if len(text) > maxTemplateLength {
		return field.ErrorList{field.TooLong(path, "", maxTemplateLength)}
	}
	parsed, err := template.New("template").Parse(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be a Go text/template: "+err.Error())}
	}
	if parsed.Tree == nil {
		return nil
	}
	check := templateCheck{root: templateScope{fields: fields}}
	if len(parsed.Templates()) > 1 {
		check.refuse("must not use define or block")
	}
	check.list(parsed.Root, check.root)
	if check.problem == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, text, check.problem)}
}

// templateScope is what the dot stands for in one place of a template.
type templateScope struct {
	fields templateFields
	// unknown means that the fields cannot be told without running the template.
	unknown bool
}

// templateCheck walks through a template and keeps the first problem.
type templateCheck struct {
	root    templateScope
	inRange bool
	problem string
}

func (c *templateCheck) refuse(problem string) {
	if c.problem == "" {
		c.problem = problem
	}
}

func (c *templateCheck) list(list *parse.ListNode, dot templateScope) {
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
			c.branch(&node.BranchNode, dot, templateScope{unknown: true})
		case *parse.RangeNode:
			c.loop(node, dot)
		case *parse.TemplateNode:
			c.refuse("must not use template, define or block")
		}
	}
}

// branch checks both ways; inside is what the dot stands for in the first.
func (c *templateCheck) branch(node *parse.BranchNode, dot, inside templateScope) {
	c.pipe(node.Pipe, dot)
	c.list(node.List, inside)
	c.list(node.ElseList, dot)
}

func (c *templateCheck) loop(node *parse.RangeNode, dot templateScope) {
	item, ok := c.listItem(node.Pipe, dot)
	if !ok || c.inRange {
		c.refuse("must range over a list by its name, and not inside another range")
		return
	}
	c.inRange = true
	c.branch(&node.BranchNode, dot, item)
	c.inRange = false
}

// listItem returns the scope of a list's items when the pipe is nothing but the list.
func (c *templateCheck) listItem(pipe *parse.PipeNode, dot templateScope) (templateScope, bool) {
	if len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return templateScope{}, false
	}
	var name string
	switch node := pipe.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		name = strings.Join(node.Ident, ".")
	case *parse.VariableNode:
		dot, name = c.root, strings.TrimPrefix(strings.Join(node.Ident, "."), "$.")
	}
	item := dot.fields[name]
	return templateScope{fields: item}, item != nil
}

func (c *templateCheck) pipe(pipe *parse.PipeNode, dot templateScope) {
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			c.argument(argument, dot)
		}
	}
}

func (c *templateCheck) argument(node parse.Node, dot templateScope) {
	switch node := node.(type) {
	case *parse.FieldNode:
		c.field(node.Ident, dot)
	case *parse.VariableNode:
		if node.Ident[0] == "$" && len(node.Ident) > 1 {
			c.field(node.Ident[1:], c.root)
		}
	case *parse.IdentifierNode:
		if !slices.Contains(templateFunctions(), node.Ident) {
			c.refuse("must not use the function " + node.Ident + "; allowed are " + strings.Join(templateFunctions(), ", "))
		}
	case *parse.PipeNode:
		c.pipe(node, dot)
	case *parse.ChainNode:
		c.argument(node.Node, dot)
	}
}

func (c *templateCheck) field(names []string, dot templateScope) {
	if dot.unknown {
		return
	}
	if _, ok := dot.fields[names[0]]; !ok || len(names) > 1 {
		known := slices.Sorted(maps.Keys(dot.fields))
		c.refuse("must not use ." + strings.Join(names, ".") + "; known here are ." + strings.Join(known, ", ."))
	}
}
