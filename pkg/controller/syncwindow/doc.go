// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncwindow decides whether automatic syncs are allowed to start at a time, and otherwise when. Messages of
// NotificationSinks follow the same rules.
//
// Windows open by a cron schedule and stay open for a duration. Syncs are allowed while an Allow window is open, or at any
// time if there is none, but never while a Deny window is open.
//
// Schedules refer to the wall clock of their time zone. A scheduled time that the clock skips takes effect when the skip
// ends, so that a Deny window leaves no gap. If the clock shows a time twice, the window opens twice.
package syncwindow
