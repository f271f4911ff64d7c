// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncwindow answers whether work that begins by itself may begin at a time, and else when it may.
//
// Windows open by a schedule in the syntax of CronJobs and stay open for a time. Work may begin while a window that allows
// it is open, or at any time if there is none such, but never while one that denies it is open.
//
// A schedule is about what clocks in its time zone show. Where they skip a time, what it would have opened opens when they
// have skipped it, so that a window that denies leaves no hole. Where they show a time twice, a window opens twice.
package syncwindow
