// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart tests how helm renders the chart, in both major versions: that values have the intended effect, that every flag of the
// server can be set, and that invalid values are rejected with an explanation. It needs no cluster; test/install installs the chart.
package chart
