// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery sends messages to the receivers of NotificationSinks: Slack, Microsoft Teams, mail servers, HTTP servers, and the Events
// of a cluster.
//
// pkg/notification/format writes a message for its receiver. pkg/access/egress/outbound makes the requests: receivers and their responses
// are untrusted. A delivery takes 30 seconds at most. When the response of a receiver was lost, it is unknown whether it has the message,
// which is then sent again with the same ID.
//
// Credentials are read for each delivery, so that new ones are used at once. No result shows them. The URL of an incoming webhook is a
// credential: anyone who knows it can post.
//
// # Outcomes
//
// What a user can repair (a deleted channel, an expired token, a wrong recipient) is retried until it is repaired, and shown meanwhile.
// Only a message that the receiver will never accept, such as one that is too large, is rejected, so that it does not block those after it.
package delivery
