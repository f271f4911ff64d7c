// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strconv"
)

const monthFormat = "2006-01"

// fileName is the name of a file of the archive. A month has several if they exceed maxFileBytes.
type fileName struct {
	month  string
	number int
}

var fileNamePattern = regexp.MustCompile(`^syncstatuses-(\d{4}-\d{2})-(\d{3,9})\.jsonl$`)

// String returns a name that sorts by time, for up to a thousand files in a month.
func (n fileName) String() string {
	return fmt.Sprintf("syncstatuses-%s-%03d.jsonl", n.month, n.number)
}

func (n fileName) compare(other fileName) int {
	return cmp.Or(cmp.Compare(n.month, other.month), cmp.Compare(n.number, other.number))
}

// newestFile returns the newest file of the archive. It ignores other files in the folder.
func newestFile(folder string) (newest fileName, found bool, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fileName{}, false, err
	}
	for _, entry := range entries {
		parts := fileNamePattern.FindStringSubmatch(entry.Name())
		if parts == nil {
			continue
		}
		number, err := strconv.Atoi(parts[2])
		if err != nil {
			continue
		}
		if name := (fileName{month: parts[1], number: number}); !found || name.compare(newest) > 0 {
			newest, found = name, true
		}
	}
	return newest, found, nil
}
