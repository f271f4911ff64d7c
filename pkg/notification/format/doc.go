// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package format writes messages as receivers want them: for Slack, Teams, mail, webhooks and Events, and as plain text.
//
// Every format escapes its own markup and keeps the limits of its receiver, whatever a message says. What does not fit is
// counted. Message.Title and Message.Text replace what the format would write as title and text.
package format
