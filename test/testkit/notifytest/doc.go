// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notifytest has receivers of notifications for tests: Slack, Microsoft Teams, HTTP servers and mail servers. They check what they
// receive against what the vendors document, and share no code with what sends it.
package notifytest
