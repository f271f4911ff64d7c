// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirrortest

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Counted returns the value of a counter of the server with these labels, or the sum of all its series if it is given
// without labels.
func (s *AdminCluster) Counted(ctx context.Context, counter string) (sum float64, err error) {
	out, err := s.ReadServer(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if series != counter && !strings.HasPrefix(series, counter+"{") {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("failed to read %s: %w", counter, err)
		}
		sum += n
	}
	return sum, lines.Err()
}
