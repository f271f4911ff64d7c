// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commitmessage answers what a commit says: who its author is, and its message with the trailers, by the
// templates of users where they give any.
//
// A template that was parsed here knows its fields, was run on samples, and cannot take more than a bounded time and
// room whatever it is given: it calls no functions that make text longer, itself neither, loops over one list of bounded
// length, and is stopped when it has written too much. What it is given holds no line breaks and no angle brackets, so
// that the name of a user or an object cannot pass for another line, an address or a trailer. Characters that are not seen,
// or turn the direction of text, are written as escapes, in names and in the message as a whole. Where a template fails on
// what it is given all the same, the text without a template takes its place: no commit is held up by its wording.
package commitmessage
