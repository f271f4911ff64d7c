// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// deflater makes lines small: facts repeat each other's users, groups and field names. It is made once, because a new one
// takes a megabyte and a millisecond.
type deflater struct {
	mu     sync.Mutex
	writer *flate.Writer
}

func newDeflater() *deflater {
	writer, _ := flate.NewWriter(nil, flate.BestSpeed) // only a level that does not exist fails
	return &deflater{writer: writer}
}

func (d *deflater) compress(lines []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	var small bytes.Buffer
	d.writer.Reset(&small)
	// A buffer does not fail.
	_, _ = d.writer.Write(lines)
	_ = d.writer.Close()
	return small.Bytes()
}

// decode returns the facts of a row.
func decode(row table.Row) ([]attribution.Fact, error) {
	decoder := json.NewDecoder(flate.NewReader(bytes.NewReader(row.Value)))
	var facts []attribution.Fact
	for {
		var fact attribution.Fact
		err := decoder.Decode(&fact)
		if errors.Is(err, io.EOF) {
			return facts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding row %s: %w", row.Key, err)
		}
		facts = append(facts, fact)
	}
}
