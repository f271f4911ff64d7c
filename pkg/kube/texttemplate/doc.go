// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package texttemplate runs the templates of users: a part of text/template whose time and memory are bounded.
//
// A template can use the fields of its input, conditions, variables, one level of range, and functions that make no text
// longer. It cannot call itself or methods, and it is stopped when its output is too long.
package texttemplate
