// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart shows what becomes of the values of the Helm chart, by both versions of helm: that the objects are what they
// should be, that every flag of the server can be set and every value counts, and that what cannot work is refused with a
// sentence. No cluster is needed; test/install installs the chart.
package chart
