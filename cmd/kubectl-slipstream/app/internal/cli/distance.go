// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "slices"

// maxSuggestions is the number of names that are suggested for a wrong one.
const maxSuggestions = 3

// longestName is the length of the longest name that an object may have.
const longestName = 253

// similar returns the names that may be meant by a wrong name, the most similar first.
func similar(wrong string, names []string) []string {
	if len(wrong) > longestName {
		return nil
	}
	most := max(2, len(wrong)/3)
	var found []string
	distances := map[string]int{}
	for _, name := range names {
		if max(len(name), len(wrong))-min(len(name), len(wrong)) > most {
			continue
		}
		if d := distance(wrong, name); d > 0 && d <= most {
			found, distances[name] = append(found, name), d
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return distances[a] - distances[b] })
	return found[:min(len(found), maxSuggestions)]
}

// distance returns the number of bytes that are inserted, deleted or replaced between two texts.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
