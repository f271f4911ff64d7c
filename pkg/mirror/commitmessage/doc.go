// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commitmessage renders the author and the message of commits, with trailers, from the templates of users or from
// built-in defaults.
//
// Parsing a template checks its fields and runs it on samples. Package texttemplate bounds its time and memory; the lists of
// its input are bounded here. Its input has no line breaks and no angle brackets, so that the name of a user or an object
// cannot pass for another line, an address or a trailer. Invisible characters, and those that change the direction of text,
// are escaped in names and in the message. If a template fails all the same, the default is used: a template never blocks a
// commit.
package commitmessage
