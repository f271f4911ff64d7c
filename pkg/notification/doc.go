// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notification notifies the receivers of NotificationSinks of what happens.
//
// Objects that change are observed (pkg/notification/observe), and each sink that selects what is found collects it in its queue, which the
// sink's worker stores (pkg/notification/ledger) and sends (pkg/notification/delivery). Changes are collected from a watch that continues
// where the sink's ledger ends; everything else is found again whenever its object is observed, and after each start all objects are. So
// nothing has to be stored before it is acknowledged, and a process that dies loses nothing: it has collected again what was not stored.
//
// A message is stored before it is sent and does not change until the receiver has accepted or rejected it. If the process dies in between, the
// message is sent again with the same ID.
package notification
