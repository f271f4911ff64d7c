// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notifications tests NotificationSinks on a real control plane, with a server that has only the documented permissions, and
// receivers that check messages as Slack, Microsoft Teams, mail servers and webhooks do, and that fail on request.
package notifications
