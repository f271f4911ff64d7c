// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// printTable prints the targets, and then all results.
func printTable(out io.Writer, verdicts []verdict, results []result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row(table, "TARGET", "MEASURED", "WANTED", "")
	for _, v := range verdicts {
		row(table, v.what, v.measured(), v.wanted(), v.mark())
	}
	row(table)
	row(table, "BENCHMARK", "FIGURES")
	for _, r := range results {
		row(table, r.name, r.figures())
	}
	return table.Flush()
}

// row writes cells. A tabwriter keeps its errors for Flush.
func row(table *tabwriter.Writer, cells ...string) {
	_, _ = fmt.Fprintln(table, strings.Join(cells, "\t"))
}

// measured returns the value, or the minimum and maximum of several values.
func (v verdict) measured() string {
	if len(v.values) == 0 {
		return "-"
	}
	least, greatest := number(slices.Min(v.values)), number(slices.Max(v.values))
	if least == greatest {
		return least
	}
	return least + " to " + greatest
}

func (t target) wanted() string {
	if t.atLeast {
		return ">= " + number(t.limit)
	}
	return "<= " + number(t.limit)
}

func (v verdict) mark() string {
	switch {
	case len(v.values) == 0:
		return "not measured"
	case v.met():
		return "met"
	case v.acceptable():
		return "missed, accepted until " + number(v.accepted)
	default:
		return "FAILED"
	}
}

func (r result) figures() string {
	figures := make([]string, len(r.metrics))
	for i, m := range r.metrics {
		figures[i] = number(m.value) + " " + m.unit
	}
	return strings.Join(figures, ", ")
}

// number formats a value with three significant digits, or with all digits before the decimal point.
func number(value float64) string {
	if value >= 100 || value <= -100 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}
