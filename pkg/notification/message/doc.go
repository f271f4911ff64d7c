// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package message defines what NotificationSinks send, whatever the receiver.
package message
